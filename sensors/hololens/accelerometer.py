"""Accelerometer, port 3806: about 93 samples a packet, 11.8 packets a second."""

from __future__ import annotations

import numpy as np

from sensors.hololens.imu import SAMPLE, decode_samples, encode_samples

NAME = "accelerometer"
PORT = 3806
UNIT = "m/s^2"
DTYPE = SAMPLE
"One sample: vinyl_ns, soc_ticks, xyz in `UNIT` in the sensor's frame, temperature."


def decode(payload: memoryview | bytes) -> np.ndarray:
    """View a payload as (n,) samples; `BadPacket` when it is none."""
    return decode_samples(NAME, payload)


def encode(samples: np.ndarray) -> bytes:
    """Lay (n,) samples out as a payload."""
    return encode_samples(samples)
