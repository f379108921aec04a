"""The sample type of all three inertial sensors, 32 bytes.

Axes and frame are the sensor's own (extrinsics to the rig can be downloaded). Timestamps are stored as sent: all
samples of a batch have the same `soc_ticks` (a fault of the driver), which `kitchensync.storage.timeline.stamps`
corrects.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.hololens.headset_stream import SAMPLES, HeadsetStream
from kitchensync.sensors.stream import Format

SAMPLE = np.dtype(
    [
        ("vinyl_ns", "<i8"),  # sensor clock, ns (u64 on the wire, never near 2^63)
        ("soc_ticks", "<i8"),  # device ticks, 100 ns, the domain of the packet stamp
        ("xyz", "<f4", (3,)),  # unit: see each sensor
        ("temperature", "<f4"),  # degrees C; padding on the magnetometer
    ]
)


def decode_samples(name: str, payload: memoryview | bytes) -> np.ndarray:
    """View a payload as (n,) samples of dtype `SAMPLE`. Raises `BadPacket` if it is not a multiple of 32 bytes."""
    if len(payload) % SAMPLE.itemsize:
        raise BadPacket(name, f"{len(payload)} bytes, not a multiple of {SAMPLE.itemsize}")
    return np.frombuffer(payload, SAMPLE)


def encode_samples(samples: np.ndarray) -> bytes:
    """Encode samples as a payload, the inverse of `decode_samples`."""
    return np.ascontiguousarray(samples, SAMPLE).tobytes()


class RepeatedSamples:
    """Detects payloads that only repeat the last sample before them, which a live sensor never sends."""

    def __init__(self) -> None:
        self._last = b""

    def repeats(self, payload: bytes | memoryview) -> bool:
        """Return whether the next payload only repeats the last sample; False for one without samples."""
        if not len(payload) or len(payload) % SAMPLE.itemsize:
            return False
        xyz = np.frombuffer(payload, SAMPLE)["xyz"]
        before, self._last = self._last, xyz[-1].tobytes()
        return before == self._last and bool((xyz == xyz[-1]).all())


def inertial_stream(
    name: str, *, nominal_hz: float, max_payload_bytes: int, unit: str, bits_per_s: float, **facts: Any
) -> HeadsetStream:
    """Return the stream of one inertial sensor; `facts` are fields of `HeadsetStream`."""

    def check(payload: bytes, form: Format) -> None:
        if not np.isfinite(decode_samples(name, payload)["xyz"]).all():
            raise BadPacket(name, "samples that are not numbers")

    return HeadsetStream(
        name,
        nominal_hz,
        max_payload_bytes,
        record=SAMPLE,
        check=check,
        decode=lambda payload: decode_samples(name, payload),
        encode=encode_samples,
        kind=SAMPLES,
        is_default=True,
        details=lambda _: {"codec": "imu samples", "unit": unit, "loses": []},
        bits_per_s=lambda _: bits_per_s,
        **facts,
    )
