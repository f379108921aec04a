"""Whether a verdict on a recording is right, by the truth of the virtual kitchen; pure.

What covers the session is worked out from the stamps that were sent and are here, not asked of `verify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
LEAST_FOR_PASS, LEAST_FOR_WARN = 0.95, 0.5
DOUBT = 0.05
"""The session of a recording of a few seconds is known to some tenths of a second: so near to 0.5 both are right."""
PERIODS, ADAPTIVE_S, TAIL_S = 3.0, 0.5, 1.0
"""Packets so far apart cover the time between them; so much may lack at the end, on its way when all was stopped."""
LATE_S = 1.0
"""A packet that arrives later than this after its stamp, as on a computer with too much to do, may be a warning."""
TICKS_PER_S = 10_000_000

Ticks = npt.NDArray[np.int64]


def coverage(stamps: Ticks, start_ticks: int, stop_ticks: int, step_s: float) -> float:
    """Return the share of a session (0 to 1) in which stamps (n,) are no further apart than `step_s`."""
    if stop_ticks <= start_ticks:
        return 1.0
    if not len(stamps):
        return 0.0
    last = int(stamps.max())
    end = last if 0 <= stop_ticks - last <= TAIL_S * TICKS_PER_S else stop_ticks
    inside = stamps[(stamps > start_ticks) & (stamps < end)]
    before = int(np.max(stamps[stamps <= start_ticks], initial=min(start_ticks, int(stamps.min()))))
    moments = np.concatenate(([before], np.sort(inside), [end]))
    lefts, rights = np.maximum(moments[:-1], start_ticks), moments[1:]
    is_hole = np.diff(moments) > step_s * TICKS_PER_S
    return 1.0 - float((rights - lefts)[is_hole].sum()) / max(end - start_ticks, 1)


def latest_s(host_ns: Ticks, device_ticks: Ticks) -> float:
    """Return how much later than the quickest packet of a stream the latest one arrived."""
    return float(np.ptp(host_ns - 100 * device_ticks)) / 1e9 if len(host_ns) else 0.0


def longest_step_s(nominal_hz: float, *, adaptive: bool) -> float:
    """Return how far apart packets of a stream may be, seconds."""
    return max(PERIODS / nominal_hz if nominal_hz > 0 else 0.0, ADAPTIVE_S if adaptive else 0.0)


def session_end_ns(
    planned_ns: Iterable[int], stopped: Mapping[str, Any], faults: Iterable[Mapping[str, Any]]
) -> int:
    """Return when, on the host's clock, a recording was over: as planned, at a stop, or with its recorder's end."""
    killed = [int(fault["start_host_ns"]) for fault in faults if fault["kind"] == "kill_supervisor"]
    said = [int(stopped["host_ns"])] if "host_ns" in stopped and not killed else []
    return min([*planned_ns, *killed, *said])


def taken_for_an_end(name: str, ended: str, faults: Iterable[Mapping[str, Any]]) -> str:
    """Return what is wrong where a stream that died is said to have ended in good order, else ""."""
    dead = [
        fault["kind"]
        for fault in faults
        if fault["kind"] == "headset_dies" or (fault["kind"] == "dead_port" and fault["target"] == name)
    ]
    return f"{name}: ended by its device, though {dead[0]}" if dead and ended == "ended_by_device" else ""


def wrong_verdict(status: str, lost: int, covered: float, *, is_untouched: bool = False) -> str:
    """Return what is wrong with a verdict, "" where it is right.

    Packets or films are `lost`, the stream that covers least covers `covered`; `is_untouched`: no fault was done and
    nothing came late.
    """
    whole = not lost and covered >= LEAST_FOR_PASS
    if status not in (PASS, WARN, FAIL):
        return status
    if status == PASS and not whole:
        return f"PASS, though {lost} are lost and {covered:.2f} is covered"
    if status == FAIL and covered >= LEAST_FOR_WARN + DOUBT:
        return f"FAIL, though every loss has a name and {covered:.2f} is covered"
    if status != PASS and whole and is_untouched:
        return f"{status}, though nothing was done and nothing is lost"
    return ""
