"""Find the gaps of a stream by its stamps, connections and ledger. Pure functions on arrays."""

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
    """A gap of a stream, from the last packet before it to the first after it."""

    start_ticks: int
    end_ticks: int
    cause: str


Hold = tuple[int, int, str]
"""(start, end) in host_ns of a time without reception, and the cause."""

LONG_STEP = 1.75
"""A step between stamps is a gap if it is longer than this many usual steps."""

QUICKEST_OF = 200
"""Number of last packets in which the one with the shortest delay is searched."""

HELD_BY = (SUSPEND, DEVICE_SWAP, "restart", "backpressure")
"""Causes of a hold, the most reliable first: sleep, change of battery or card, restart, full queue."""

OUTSIDE = ("network", "reconnect")
"""Unspecific causes of a closed connection; the cause of a hold at the same time is used instead."""

AFTERMATH_NS = 1_000_000_000
"""Time after a hold in which a device may still drop packets."""

USUAL_STEPS = 8
"""Minimum number of steps for the usual step."""


def find_gaps(
    index: npt.NDArray[np.void],
    closings: Sequence[tuple[int, str]],
    holds: Sequence[Hold] = (),
    harmless_ticks: int = 0,
    redacted: Sequence[tuple[int, int, str]] = (),
    losses: Sequence[tuple[int, int, str]] = (),
) -> list[Gap]:
    """Find the gaps of a stream and their causes.

    `index` is (n,) of `layout.INDEX`; `closings` are the closed connections of the ledger: number of the next packet,
    and cause; of several before one packet the first counts. The cause is

    - that of `redacted` (first, last, cause) if a destroyed range lies in the gap;
    - `restart` at a new run of the producer;
    - the one in `closings` at a new connection;
    - in a sequence with missing numbers that of the first of `losses` (first, last, cause) with one of them, else
      `declared_loss`;
    - `device_rate` at a long step of the device's stamps in one connection.

    A gap in one of `holds` has its cause, unless the ledger has a more specific one. In a stream with a variable
    rate, or stamped on arrival, steps up to `harmless_ticks` are no gaps.
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
        causes = [why for first, last, why in redacted if seqs[row] < first and last < seqs[row + 1]]
        if causes:
            cause = causes[0]
        elif new_run[row]:
            cause = "restart"
        elif new_connection[row]:
            matching = (cause for seq, cause in closings if seqs[row] < seq <= seqs[row + 1])
            cause = next(matching, "reconnect")
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
    """Return the gaps of destroyed packets before the first packet and after the last."""
    if not len(index):
        return []
    first, last = index[0], index[-1]
    earlier = [chunk for chunk in chunks if chunk["seq"][1] < first["seq"]]
    later = [chunk for chunk in chunks if chunk["seq"][0] > last["seq"]]
    ends = (
        [(min(chunk["ticks"][0] for chunk in earlier), int(first["device_ticks"]), earlier[0])]
        if earlier
        else []
    )
    ends += (
        [(int(last["device_ticks"]), max(chunk["ticks"][1] for chunk in later), later[0])] if later else []
    )
    return [
        {"start_ticks": start, "end_ticks": end, "cause": chunk.get("cause", REDACTED)}
        for start, end, chunk in ends
    ]


def _held(index: npt.NDArray[np.void], row: int, holds: Sequence[Hold]) -> str:
    """Return the cause of the hold in which the gap after `row` lies, or "".

    The gap is compared by arrival and by stamp: packets sent before the hold may arrive late, together with the next.
    """
    if not holds:
        return ""
    last_packets = index[max(row + 2 - QUICKEST_OF, 0) : row + 2]
    behind_ns = int(np.min(last_packets["host_ns"] - 100 * last_packets["device_ticks"].astype(np.int64)))
    spans = [
        (int(index["host_ns"][row]), int(index["host_ns"][row + 1])),
        tuple(100 * int(index["device_ticks"][at]) + behind_ns for at in (row, row + 1)),
    ]
    causes = {
        cause
        for start, end, cause in holds
        for first, last in spans
        if start <= last and first <= end + AFTERMATH_NS
    }
    return next((cause for cause in HELD_BY if cause in causes), "")


def _starts_anew(index: npt.NDArray[np.void], row: int) -> bool:
    """Return whether the clock after `row` is another one: a restarted or another device."""
    before, after = index[row], index[row + 1]
    arrived_ns = int(after["host_ns"]) - int(before["host_ns"])
    passed_ns = 100 * (int(after["device_ticks"]) - int(before["device_ticks"]))
    return abs(passed_ns - arrived_ns) > OTHER_CLOCK_S * 1e9


def early_end(index: npt.NDArray[np.void], closed_ns: int, nominal_hz: float, cause: str) -> Gap:
    """Return the gap at the end of a stream (at least one packet) whose connection was closed at `closed_ns`.

    Lost are the packets on their way at that moment, by the delay of the quickest of the last packets, and two more:
    a device notices a closed connection only when it sends.
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
    """Return the median step of the stamps, or infinity if there are too few."""
    forward = steps[steps > 0]
    return float(np.median(forward)) if len(forward) >= USUAL_STEPS else float("inf")


def stamps_that_go_back(index: npt.NDArray[np.void]) -> int:
    """Count the packets whose device stamp is not later than the one before."""
    return int(np.count_nonzero(np.diff(index["device_ticks"].astype(np.int64)) <= 0))


def missing_ranges(seqs: npt.NDArray[np.uint64], received: int) -> list[list[int]]:
    """Return [first, last] of every run of producer numbers below `received` that are not in `seqs`."""
    received_seqs = np.unique(seqs[seqs < received]).astype(np.int64)
    before = np.concatenate(([-1], received_seqs))
    after = np.concatenate((received_seqs, [received]))
    holes = np.flatnonzero(after - before > 1)
    return [[int(before[hole]) + 1, int(after[hole]) - 1] for hole in holes]


def uncovered(part: list[int], ranges: list[tuple[int, int]]) -> bool:
    """Return whether a number of [first, last] is in none of the ranges."""
    next_number = part[0]
    for first, last in sorted(ranges):
        if first > next_number:
            break
        next_number = max(next_number, last + 1)
    return next_number <= part[1]
