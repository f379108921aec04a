"""Gyroscope, port 3807: about 315 samples a packet, 21 packets a second."""

from __future__ import annotations

from sensors.hololens.imu import SAMPLE, decoder, encode_samples

NAME = "gyroscope"
PORT = 3807
UNIT = "as sent, deg/s or rad/s (the format leaves it open; alignment decides)"
DTYPE = SAMPLE
"One sample: vinyl_ns, soc_ticks, xyz in `UNIT` in the sensor's frame, temperature."

decode = decoder(NAME)
"View a payload as (n,) samples; `BadPacket` when it is none."
encode = encode_samples
"Lay (n,) samples out as a payload."
