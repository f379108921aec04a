"""Magnetometer, port 3808: about 11 samples a packet, 4.5 packets a second; `temperature` is padding."""

from __future__ import annotations

import numpy as np

from sensors.hololens.imu import SAMPLE, decode_samples, encode_samples

NAME = "magnetometer"
PORT = 3808
UNIT = "as sent, thought to be microtesla"
DTYPE = SAMPLE
"One sample: vinyl_ns, soc_ticks, xyz in `UNIT` in the sensor's frame, temperature."


def decode(payload: memoryview | bytes) -> np.ndarray:
    """View a payload as (n,) samples; `BadPacket` when it is none."""
    return decode_samples(NAME, payload)


def encode(samples: np.ndarray) -> bytes:
    """Lay (n,) samples out as a payload."""
    return encode_samples(samples)
