"""Magnetometer, port 3808: about 11 samples a packet, 4.5 packets a second; `temperature` is padding."""

from __future__ import annotations

from sensors.hololens.imu import SAMPLE, decoder, encode_samples

NAME = "magnetometer"
PORT = 3808
UNIT = "as sent, thought to be microtesla"
DTYPE = SAMPLE
"One sample: vinyl_ns, soc_ticks, xyz in `UNIT` in the sensor's frame, temperature."

decode = decoder(NAME)
"View a payload as (n,) samples; `BadPacket` when it is none."
encode = encode_samples
"Lay (n,) samples out as a payload."
