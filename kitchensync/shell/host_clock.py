"""The recorder's clock, integer nanoseconds since boot, and its relation to UTC."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

ANCHOR_TRIES = 5  # one that the scheduler interrupts is wide, and the tightest counts
TIMEX_BYTES, TIME_ERROR = 512, 5
"""Buffer larger than `struct timex`, all 0 to only read; the state that adjtimex returns without NTP."""


@dataclass(frozen=True)
class UtcAnchor:
    """One moment read on both clocks of this computer."""

    host_ns: int
    "CLOCK_MONOTONIC, nanoseconds."
    utc_ns: int
    "UTC, nanoseconds since 1970-01-01, as accurate as this computer's NTP."
    bound_ns: int = 0
    "Bound of the time between the two readings."
    slept_ns: int = 0
    "Total suspend time since boot, during which CLOCK_MONOTONIC stands still."
    synchronized: bool = False
    "Whether the kernel reports that UTC is synchronized (NTP)."


def host_ns() -> int:
    """Read CLOCK_MONOTONIC in integer nanoseconds, the clock of every host timestamp."""
    return time.monotonic_ns()


def utc_anchor() -> UtcAnchor:
    """Read both clocks as simultaneously as possible: the tightest of a few tries.

    The monotonic time is the midpoint of the two readings around the UTC reading.
    """
    best: tuple[int, int, int] | None = None
    for _ in range(ANCHOR_TRIES):
        before = time.monotonic_ns()
        utc_ns = time.time_ns()
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = after - before, before, utc_ns
    assert best is not None
    wide_ns, before, utc_ns = best
    bound_ns, asleep_ns = (wide_ns + 1) // 2, slept_ns()
    ask = _adjtimex()
    is_synchronized = ask is not None and 0 <= ask(ctypes.create_string_buffer(TIMEX_BYTES)) < TIME_ERROR
    return UtcAnchor(before + wide_ns // 2, utc_ns, bound_ns, asleep_ns, is_synchronized)


def slept_ns() -> int:
    """Return the total suspend time since boot; 0 if the system does not report it."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
    if boot_clock is None:
        return 0
    # A delay between the two readings makes the difference too small, so take the largest.
    return max(time.clock_gettime_ns(boot_clock) - time.monotonic_ns() for _ in range(ANCHOR_TRIES))


@cache
def _adjtimex() -> Callable[..., int] | None:
    return ctypes.CDLL(None).adjtimex if sys.platform == "linux" else None


PROBE = np.dtype(
    [
        ("host_send_ns", "<i8"),  # CLOCK_MONOTONIC just before the request was sent
        ("host_receive_ns", "<i8"),  # CLOCK_MONOTONIC just after the answer arrived
        ("device_ticks", "<i8"),  # the device's clock in its answer, 100 ns ticks
        ("utc_filetime", "<i8"),  # the device's UTC (100 ns since 1601), 0 if not requested
    ]
)


def decode(payload: bytes) -> npt.NDArray[np.void]:
    """Decode the probes of a payload, (n,) of PROBE, without a copy."""
    return np.frombuffer(payload, PROBE)


def encode(host_send_ns: int, host_receive_ns: int, device_ticks: int, utc_filetime: int = 0) -> bytes:
    """Encode one probe."""
    return np.array((host_send_ns, host_receive_ns, device_ticks, utc_filetime), PROBE).tobytes()
