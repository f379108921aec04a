"""The recorder's clock: integers of nanoseconds since boot, and one link to wall time."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

ANCHOR_TRIES = 5
TIMEX_BYTES, TIME_ERROR = 512, 5
"""More than `struct timex` has, all 0: it asks. The answer of a kernel whose UTC nobody keeps."""


@dataclass(frozen=True)
class UtcAnchor:
    """One moment read on both clocks of this computer."""

    host_ns: int
    "CLOCK_MONOTONIC, nanoseconds."
    utc_ns: int
    "UTC, nanoseconds since 1970-01-01, as good as this computer's NTP."
    bound_ns: int = 0
    "How far apart the two readings may be."
    slept_ns: int = 0
    "How long this computer had slept since it was started: meanwhile CLOCK_MONOTONIC stands still."
    synchronized: bool = False
    "The kernel says that its UTC is kept by another clock (NTP)."


def host_ns() -> int:
    """Read CLOCK_MONOTONIC in integer nanoseconds, the one clock that every host stamp is on."""
    return time.monotonic_ns()


def utc_anchor() -> UtcAnchor:
    """Read both clocks as near to one moment as can be: the tightest of a few tries.

    The monotonic reading is the middle of the two that enclose the UTC reading.
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
    bound_ns = (wide_ns + 1) // 2
    return UtcAnchor(before + wide_ns // 2, utc_ns, bound_ns, slept_ns(), _is_synchronized())


def slept_ns() -> int:
    """Return how long this computer has slept since it was started; 0 where the system does not say."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
    if boot_clock is None:
        return 0
    # Who is held between the two readings reads too little.
    return max(time.clock_gettime_ns(boot_clock) - time.monotonic_ns() for _ in range(ANCHOR_TRIES))


def _is_synchronized() -> bool:
    """Ask the kernel whether another clock keeps its UTC; False where it cannot be asked."""
    ask = _adjtimex()
    return ask is not None and 0 <= ask(ctypes.create_string_buffer(TIMEX_BYTES)) < TIME_ERROR


@cache
def _adjtimex() -> Callable[..., int] | None:
    return ctypes.CDLL(None).adjtimex if sys.platform == "linux" else None


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
