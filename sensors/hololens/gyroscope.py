"""Gyroscope, port 3807: about 315 samples a packet, 21 packets a second."""

from __future__ import annotations

import numpy as np

from sensors.hololens.imu import SAMPLE, decode_samples, encode_samples

NAME = "gyroscope"
PORT = 3807
UNIT = "as sent, deg/s or rad/s (the format leaves it open; alignment decides)"
DTYPE = SAMPLE
"One sample: vinyl_ns, soc_ticks, xyz in `UNIT` in the sensor's frame, temperature."


def decode(payload: memoryview | bytes) -> np.ndarray:
    """View a payload as (n,) samples; `BadPacket` when it is none."""
    return decode_samples(NAME, payload)


def encode(samples: np.ndarray) -> bytes:
    """Lay (n,) samples out as a payload."""
    return encode_samples(samples)
