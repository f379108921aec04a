"""Repair of batch stamps by one line over the whole recording: `sensors.stamps`, with the errors of this side."""

from __future__ import annotations

from sensors import stamps
from sensors.array_types import Int64
from sensors.errors import BadStamps
from sensors.stamps import TICKS_PER_MS, TICKS_PER_S, StampLine, StampRepair, sample_step_ns
from sync.errors import BadArrays


def repair_stamps(vinyl_ns: Int64, soc_ticks: Int64) -> StampRepair:
    """Fit the lower-envelope line of one stream, see `sensors.stamps.repair_stamps`. Raises BadArrays."""
    try:
        return stamps.repair_stamps(vinyl_ns, soc_ticks)
    except BadStamps as error:
        raise BadArrays("gyroscope stamps", error.why) from error


def repair_batches(
    vinyl_first: Int64, soc_first: Int64, firsts: Int64, *, samples: int, step_ns: float
) -> StampRepair:
    """Fit the line from the batch firsts alone, see `sensors.stamps.repair_batches`. Raises BadArrays."""
    try:
        return stamps.repair_batches(vinyl_first, soc_first, firsts, samples=samples, step_ns=step_ns)
    except BadStamps as error:
        raise BadArrays("gyroscope stamps", error.why) from error


__all__ = [
    "TICKS_PER_MS",
    "TICKS_PER_S",
    "StampLine",
    "StampRepair",
    "repair_batches",
    "repair_stamps",
    "sample_step_ns",
]
