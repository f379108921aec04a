"""Accelerometer, port 3806: about 93 samples a packet, 11.8 packets a second."""

from __future__ import annotations

from sensors.hololens.imu import SAMPLE, decoder, encode_samples

NAME = "accelerometer"
PORT = 3806
UNIT = "m/s^2"
DTYPE = SAMPLE
"One sample: vinyl_ns, soc_ticks, xyz in `UNIT` in the sensor's frame, temperature."

decode = decoder(NAME)
"View a payload as (n,) samples; `BadPacket` when it is none."
encode = encode_samples
"Lay (n,) samples out as a payload."
