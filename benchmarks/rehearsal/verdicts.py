"""Whether a verdict on a recording is right, by the truth of the virtual kitchen alone; pure."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
LEAST_FOR_PASS, LEAST_FOR_WARN = 0.95, 0.5
DOUBT = 0.05  # a short session is known to tenths of a second: this near to 0.5 both verdicts are right
PERIODS, ADAPTIVE_S = 3.0, 0.5  # packets that far apart cover the time between them
TAIL_S = 1.0  # may lack at the end
LATE_NS = 1_000_000_000  # a packet that late, as on a busy computer, may be worth a warning
TICKS_PER_S = 10_000_000

Index = npt.NDArray[np.void]
"""Packets of a stream (n,), `kitchensync.storage.chunks.layout.INDEX`."""


def coverage(stamps: npt.NDArray[np.int64], start_ticks: int, stop_ticks: int, step_s: float) -> float:
    """Return the share of a session (0 to 1) in which stamps (n > 0,) are at most `step_s` apart."""
    last = int(stamps.max())
    end = last if 0 <= stop_ticks - last <= TAIL_S * TICKS_PER_S else stop_ticks
    moments = np.sort([min(start_ticks, int(stamps.min())), *stamps[stamps < end], end])
    steps = np.diff(np.maximum(moments, start_ticks))
    holes = steps[np.diff(moments) > step_s * TICKS_PER_S]
    return 1.0 - float(holes.sum()) / max(end - start_ticks, 1)


def longest_step_s(nominal_hz: float, *, adaptive: bool) -> float:
    """Return how far apart packets of a stream may be, seconds."""
    return max(PERIODS / nominal_hz if nominal_hz > 0 else 0.0, ADAPTIVE_S if adaptive else 0.0)


def is_late(index: Index) -> bool:
    """Return whether a packet came much later than the quickest one."""
    return bool(len(index) and np.ptp(index["host_ns"] - 100 * index["device_ticks"]) > LATE_NS)


def quickest_ns(index: Index) -> int:
    """Return how far the host's clock is ahead of the stamps, by the quickest packet."""
    return int(np.min(index["host_ns"] - 100 * index["device_ticks"]))


def session_end_ns(
    planned_ns: Iterable[int], stopped: Mapping[str, Any], faults: Iterable[Mapping[str, Any]]
) -> int:
    """Return when a recording ended on the host's clock: as planned, stopped, or with its killed recorder."""
    killed = [int(fault["start_host_ns"]) for fault in faults if fault["kind"] == "kill_supervisor"]
    stop = [int(stopped["host_ns"])] if "host_ns" in stopped else []
    return min([*planned_ns, *(killed or stop)])


def wrong_verdict(status: str, lost: int, covered: float, *, is_untouched: bool = False) -> str:
    """Return what is wrong with a verdict, "" where it is right.

    `lost` packets and films are not stored, the worst stream covers the share `covered`; `is_untouched`: no fault was
    injected and nothing came late.
    """
    is_whole = not lost and covered >= LEAST_FOR_PASS
    if status not in (PASS, WARN, FAIL):
        return status
    if status == PASS and not is_whole:
        return f"PASS, though {lost} are lost and {covered:.2f} is covered"
    if status == FAIL and covered >= LEAST_FOR_WARN + DOUBT:
        return f"FAIL, though every loss has a name and {covered:.2f} is covered"
    if status != PASS and is_whole and is_untouched:
        return f"{status}, though nothing was done and nothing is lost"
    return ""
