"""The sample that all three inertial sensors share, 32 bytes each.

Axes and frame: the sensor's own (rig extrinsics are a download). Stamps are kept as sent: all samples of a
batch carry the same `soc_ticks` (a driver fault), `kitchensync.storage.timeline.stamps` spreads them.
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
    """View a payload as (n,) samples of dtype `SAMPLE`; `BadPacket` if it is no multiple of 32 bytes."""
    if len(payload) % SAMPLE.itemsize:
        raise BadPacket(name, f"{len(payload)} bytes, not a multiple of {SAMPLE.itemsize}")
    return np.frombuffer(payload, SAMPLE)


def encode_samples(samples: np.ndarray) -> bytes:
    """Lay samples out as a payload: the inverse of `decode_samples`."""
    return np.ascontiguousarray(samples, SAMPLE).tobytes()


class RepeatedSamples:
    """Tells of each payload whether its samples repeat the last one before them: those of a live sensor never do."""

    def __init__(self) -> None:
        """Begin without a sample."""
        self._last = b""

    def repeats(self, payload: bytes | memoryview) -> bool:
        """Take the next payload; one that holds no samples repeats nothing."""
        if not len(payload) or len(payload) % SAMPLE.itemsize:
            return False
        xyz = np.frombuffer(payload, SAMPLE)["xyz"]
        before, self._last = self._last, xyz[-1].tobytes()
        return before == self._last and bool((xyz == xyz[-1]).all())


def inertial_stream(
    name: str, *, nominal_hz: float, max_payload_bytes: int, unit: str, bits_per_s: float, **facts: Any
) -> HeadsetStream:
    """Make the stream of one inertial sensor; `facts` are fields of `HeadsetStream`."""

    def check(payload: bytes, form: Format) -> None:
        if not np.isfinite(decode_samples(name, payload)["xyz"]).all():
            raise BadPacket(name, "samples that are no numbers")

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
