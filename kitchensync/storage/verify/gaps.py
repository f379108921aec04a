"""Where a stream has holes, seen from its stamps, its connections and its ledger: pure, arrays in, gaps out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt

from kitchensync.storage.ledger import SUSPEND, DeclaredLossNote
from kitchensync.storage.reading.swaps import DEVICE_SWAP
from kitchensync.storage.redact.redactions import REDACTED
from kitchensync.storage.verify.coverage import OTHER_CLOCK_S

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import RedactedChunkForm


class Gap(TypedDict):
    """A hole of a stream, from the last packet before it to the first after it."""

    start_ticks: int
    end_ticks: int
    cause: str


Hold = tuple[int, int, str]
"""(start, end) in host_ns of a time in which nobody received, and the cause."""

LONG_STEP = 1.75
"""A step between stamps of more than this many usual steps is a hole."""

QUICKEST_OF = 200
"""So many last packets are asked for the one that was on its way for the shortest time."""

HELD_BY = (SUSPEND, DEVICE_SWAP, "restart", "backpressure")
"""Why nobody received for a while, in the order in which they are believed: sleep, a battery or card that was
changed, a held process, a held queue."""

OUTSIDE = ("network", "reconnect")
"""Causes of a closed connection that only say that it closed: a hold that the gap falls into says why."""

AFTERMATH_NS = 1_000_000_000
"""So long after a hold a device may still leave out what it could not send."""

USUAL_STEPS = 8
"""With fewer packets than this nobody can say what a usual step is."""


def find_gaps(
    index: npt.NDArray[np.void],
    closings: Sequence[tuple[int, str]],
    holds: Sequence[Hold] = (),
    harmless_ticks: int = 0,
    redacted: Sequence[tuple[int, int, str]] = (),
    losses: Sequence[tuple[int, int, str]] = (),
) -> list[Gap]:
    """Name the holes of a stream.

    `index` is (n,) of `layout.INDEX`; `closings` are the closed connections as the recorder noted them: the number of
    the packet that came next, and the cause; of several before one packet the first counts. A new run of the producer
    is `restart`, a new connection takes its noted cause, a hole in the sequence that of the first of `losses` (first,
    last, cause) that meets it, else `declared_loss`, and a long step of the device's stamps inside one connection is
    `device_rate`. What falls into one of `holds` takes its cause, unless the ledger says more. Of a stream that
    changes its rate by itself, or is stamped on arrival, steps up to `harmless_ticks` are no holes. Of `redacted`
    (first, last, cause) the cause is that.
    """
    if len(index) < 2:
        return []
    ticks = index["device_ticks"].astype(np.int64)
    steps = np.diff(ticks)
    new_run = np.diff(index["epoch_ms"].astype(np.int64)) != 0
    new_connection = (np.diff(index["connection"].astype(np.int64)) != 0) & ~new_run
    lost = (np.diff(index["seq"].astype(np.int64)) > 1) & ~new_run & ~new_connection
    late = (steps > max(LONG_STEP * usual_step(steps), harmless_ticks)) & ~new_run & ~new_connection & ~lost
    seqs = index["seq"].astype(np.int64)
    gaps: list[Gap] = []
    for row in np.flatnonzero(new_run | new_connection | lost | late).tolist():
        wanted = [why for first, last, why in redacted if seqs[row] < first and last < seqs[row + 1]]
        if wanted:
            cause = wanted[0]
        elif new_run[row]:
            cause = "restart"
        elif new_connection[row]:
            noted = (cause for seq, cause in closings if seqs[row] < seq <= seqs[row + 1])
            cause = next(noted, "reconnect")
            if cause in OUTSIDE:
                cause = _held(index, row, holds) or (DEVICE_SWAP if _starts_anew(index, row) else cause)
        elif lost[row]:
            lost_to = (why for first, last, why in losses if first < seqs[row + 1] and seqs[row] < last)
            cause = next(lost_to, DeclaredLossNote.kind)
        else:
            cause = _held(index, row, holds) or "device_rate"
        gaps.append({"start_ticks": int(ticks[row]), "end_ticks": int(ticks[row + 1]), "cause": cause})
    return gaps


def redacted_ends(index: npt.NDArray[np.void], chunks: Sequence[RedactedChunkForm]) -> list[Gap]:
    """Name what was destroyed before the first packet that is left, and behind the last."""
    if not len(index):
        return []
    first, last = index[0], index[-1]
    before = [one for one in chunks if one["seq"][1] < first["seq"]]
    behind = [one for one in chunks if one["seq"][0] > last["seq"]]
    ends = [(min(one["ticks"][0] for one in before), int(first["device_ticks"]), before[0])] if before else []
    ends += [(int(last["device_ticks"]), max(one["ticks"][1] for one in behind), behind[0])] if behind else []
    return [
        {"start_ticks": start, "end_ticks": end, "cause": one.get("cause", REDACTED)}
        for start, end, one in ends
    ]


def _held(index: npt.NDArray[np.void], row: int, holds: Sequence[Hold]) -> str:
    """Return the cause of the hold that the hole after `row` falls into, "" where it falls into none.

    The hole lies where nothing arrived, or where its stamps say: what a device had sent before it was held up is
    received late, so that the hole's neighbours may arrive together.
    """
    if not holds:
        return ""
    around = index[max(row + 2 - QUICKEST_OF, 0) : row + 2]
    behind_ns = int(np.min(around["host_ns"] - 100 * around["device_ticks"].astype(np.int64)))
    spans = [
        (int(index["host_ns"][row]), int(index["host_ns"][row + 1])),
        tuple(100 * int(index["device_ticks"][at]) + behind_ns for at in (row, row + 1)),
    ]
    met = {
        cause
        for start, end, cause in holds
        for first, last in spans
        if start <= last and first <= end + AFTERMATH_NS
    }
    return next((cause for cause in HELD_BY if cause in met), "")


def _starts_anew(index: npt.NDArray[np.void], row: int) -> bool:
    """Return whether the clock after `row` is another one: the device was switched off, or it is another device."""
    before, after = index[row], index[row + 1]
    arrived_ns = int(after["host_ns"]) - int(before["host_ns"])
    passed_ns = 100 * (int(after["device_ticks"]) - int(before["device_ticks"]))
    return abs(passed_ns - arrived_ns) > OTHER_CLOCK_S * 1e9


def early_end(index: npt.NDArray[np.void], closed_ns: int, nominal_hz: float, cause: str) -> Gap:
    """Return the gap at the end of a stream (at least one packet) whose connection was closed at `closed_ns`.

    What was on the way then is lost: every stamp up to the device's time at that moment, which the quickest of the
    last packets tells, and two more packets, since a device notices a closed connection only when it sends.
    """
    ticks, host = index["device_ticks"].astype(np.int64), index["host_ns"]
    last_ticks = int(ticks[-1])
    behind_ns = int(np.min(host[-QUICKEST_OF:] - 100 * ticks[-QUICKEST_OF:]))
    step = usual_step(np.diff(ticks))
    if not np.isfinite(step):
        step = 1e7 / nominal_hz if nominal_hz else 1e7
    end_ticks = max((closed_ns - behind_ns) // 100, last_ticks) + 2 * round(step)
    return {"start_ticks": last_ticks, "end_ticks": end_ticks, "cause": cause}


def usual_step(steps: npt.NDArray[np.int64]) -> float:
    """Return the median step of the stamps, or infinity where there are too few to tell."""
    forward = steps[steps > 0]
    return float(np.median(forward)) if len(forward) >= USUAL_STEPS else float("inf")


def stamps_that_go_back(index: npt.NDArray[np.void]) -> int:
    """Count the packets whose device stamp is not later than the one before."""
    return int(np.count_nonzero(np.diff(index["device_ticks"].astype(np.int64)) <= 0))


def missing_ranges(seqs: npt.NDArray[np.uint64], received: int) -> list[list[int]]:
    """Return [first, last] of every run of producer numbers below `received` that are not in `seqs`."""
    known = np.unique(seqs[seqs < received]).astype(np.int64)
    before = np.concatenate(([-1], known))
    after = np.concatenate((known, [received]))
    holes = np.flatnonzero(after - before > 1)
    return [[int(before[hole]) + 1, int(after[hole]) - 1] for hole in holes]


def uncovered(part: list[int], ranges: list[tuple[int, int]]) -> bool:
    """Return whether some number of [first, last] lies in none of the ranges."""
    next_number = part[0]
    for first, last in sorted(ranges):
        if first > next_number:
            break
        next_number = max(next_number, last + 1)
    return next_number <= part[1]
