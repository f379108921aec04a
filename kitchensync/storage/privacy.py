"""Privacy pauses of a recording on the capture clock."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64, Mask
from kitchensync.storage.events import LogEvent, events_of
from kitchensync.storage.names import PART_OF
from kitchensync.storage.timeline.film_times import UNKNOWN

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import Manifest
    from kitchensync.storage.timeline.device_clock import HostClock

WRITERS = ("tablet", "tablet_late")
"""Logs of the tablet: during the recording, and of later arrivals."""
OPERATOR = "operator"
"""Log of the operator: marks, and pauses without a tablet."""
PAUSE, RESUME = "pause", "resume"
FOR_EVER = 2**62
"""End of a pause without a resume."""

LATE_NS = 30_000_000_000
"""Maximum plausible delay of a packet; above it, its arrival counts too."""
LONGEST_STEP_NS = 1_000_000_000  # a stream with rare packets must not hide minutes around a pause
AROUND = 2
"""Number of steps before and after its stamp that a packet may cover: batches, blocks of sound."""

Pauses = tuple[tuple[int, int], ...]
"""Spans of the capture clock, ns, both ends included."""


def pauses_of(recording: Path) -> Pauses:
    """Return the pauses of a recording, extended by the uncertainty of their touches. Raises BadEventLog."""
    by_tablet = pauses_in(event for writer in WRITERS for event in events_of(recording, writer))
    return tuple(sorted(by_tablet + pauses_in(events_of(recording, OPERATOR))))


def span_of(manifest: Manifest) -> tuple[float, float]:
    """Return the requested span of a cut recording, session seconds; infinite ends for a whole recording."""
    start_s, end_s = (
        manifest[PART_OF].get("session_s") or (None, None) if PART_OF in manifest else (None, None)
    )
    return float("-inf") if start_s is None else start_s, float("inf") if end_s is None else end_s


def all_but(first_ns: int, last_ns: int) -> Pauses:
    """Return the time before and after a span."""
    return (-FOR_EVER, first_ns - 1), (last_ns + 1, FOR_EVER)


def pauses_in(events: Iterable[LogEvent]) -> Pauses:
    """Return the pauses in events in their stored order, extended by the uncertainty.

    Nested pauses are merged, from the first start to the last end; a touch whose clock jumped back makes a pause
    begin earlier. An undo does not remove a pause.
    """
    groups: list[list[LogEvent]] = []
    for event in events:
        last = groups[-1] if groups else []
        resumed = sum(touch["kind"] == RESUME for touch in last)
        if event["kind"] == PAUSE and (not last or resumed):
            groups.append([event])
        elif event["kind"] == PAUSE or (event["kind"] == RESUME and 2 * resumed < len(last)):
            last.append(event)
    pauses = []
    for group in groups:
        touched = [(touch["host_ns"], int(touch.get("uncertainty_ns") or 0)) for touch in group]
        end_ns = max(at_ns + doubt_ns for at_ns, doubt_ns in touched)
        start_ns = min(at_ns - doubt_ns for at_ns, doubt_ns in touched)
        pauses.append((start_ns, end_ns if group[-1]["kind"] == RESUME else FOR_EVER))
    return tuple(pauses)


def in_pauses(taken_ns: Int64, bound_ns: Int64 | int, pauses: Pauses) -> Mask:
    """Return what may have been taken in a pause, (n,), including everything of unknown time."""
    unknown = taken_ns == UNKNOWN
    at_ns = np.where(unknown, 0, taken_ns).astype(np.int64)
    return overlaps(at_ns - bound_ns, at_ns + bound_ns, pauses) | (unknown & bool(pauses))


def overlaps(first_ns: Int64, last_ns: Int64, pauses: Pauses) -> Mask:
    """Return which spans (n,) and (n,) touch a pause, (n,)."""
    hidden = np.zeros(np.shape(first_ns), np.bool_)
    for start_ns, end_ns in pauses:
        hidden |= (last_ns >= start_ns) & (first_ns <= end_ns)
    return hidden


def hidden_packets(
    index: npt.NDArray[np.void], clock: HostClock | None, pauses: Pauses, *, around: int = AROUND
) -> Mask:
    """Return which packets may have content of a pause, (n,).

    `index` is (n,) of `layout.INDEX`, `clock` that of the device; without a clock only the arrival counts. `around`
    is the number of steps before and after its stamp that a packet may cover: 0 for pictures.
    """
    if not pauses or not len(index):
        return np.zeros(len(index), np.bool_)
    arrived_ns = index["host_ns"].astype(np.int64)
    by_arrival = overlaps(arrived_ns - LATE_NS, arrived_ns, pauses)
    if clock is None:
        return by_arrival
    ticks = index["device_ticks"].astype(np.int64)
    taken_ns = clock.to_host_ns(ticks, near_host_ns=arrived_ns)
    steps = np.diff(ticks)
    usual = np.median(steps[steps > 0]) if (steps > 0).any() else LONGEST_STEP_NS / 100
    doubt_ns = clock.bound_ns + around * min(round(100 * float(usual)), LONGEST_STEP_NS)
    odd = (taken_ns - doubt_ns > arrived_ns) | (taken_ns < arrived_ns - LATE_NS)
    return in_pauses(taken_ns, doubt_ns, pauses) | (odd & by_arrival)
