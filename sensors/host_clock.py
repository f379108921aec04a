"""The recorder's clock: integers of nanoseconds since boot, and one link to wall time."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

ANCHOR_TRIES = 5


@dataclass(frozen=True)
class UtcAnchor:
    """One moment read on both clocks of this computer."""

    host_ns: int
    "CLOCK_MONOTONIC, nanoseconds."
    utc_ns: int
    "UTC, nanoseconds since 1970-01-01, as good as this computer's NTP."


def host_ns() -> int:
    """Read CLOCK_MONOTONIC in integer nanoseconds, the one clock that every host stamp is on."""
    return time.monotonic_ns()


def utc_anchor() -> UtcAnchor:
    """Read both clocks as near to one moment as can be: the tightest of a few tries.

    The monotonic reading is the middle of the two that enclose the UTC reading.
    """
    best: tuple[int, UtcAnchor] | None = None
    for _ in range(ANCHOR_TRIES):
        before = time.monotonic_ns()
        utc_ns = time.time_ns()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = after - before, UtcAnchor(before + (after - before) // 2, utc_ns)
    assert best is not None
    return best[1]


PROBE = np.dtype(
    [
        ("host_send_ns", "<i8"),  # CLOCK_MONOTONIC just before the question left
        ("host_receive_ns", "<i8"),  # CLOCK_MONOTONIC just after the answer came
        ("device_ticks", "<i8"),  # the device's answer, 100 ns ticks
        ("utc_filetime", "<i8"),  # its UTC (100 ns since 1601), 0 where it was not asked
    ]
)


def decode(payload: bytes) -> npt.NDArray[np.void]:
    """Read the probes of a payload, (n,) of PROBE, without a copy."""
    return np.frombuffer(payload, PROBE)


def encode(host_send_ns: int, host_receive_ns: int, device_ticks: int, utc_filetime: int = 0) -> bytes:
    """Write one probe."""
    return np.array((host_send_ns, host_receive_ns, device_ticks, utc_filetime), PROBE).tobytes()
