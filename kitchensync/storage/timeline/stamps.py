"""Repair of batch stamps: one line over the whole recording instead of one stamp per batch.

All samples of a HoloLens inertial batch have the host tick of the first one. The sensor's own clock (vinyl, ns) is
smooth, so host ticks are rebuilt as `soc = A + B vinyl`. A host stamp can only be late, so the line is the lower
envelope of the first samples of batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kitchensync.shell.array_types import Floats, Int64
from kitchensync.storage.errors import BadStamps

TICKS_PER_S = 10_000_000
TICKS_PER_MS = 10_000.0
NOMINAL_TICKS_PER_NS = 0.01
ENVELOPE_PERCENTILE = 5.0  # delay only adds, but the minimum would follow a single early stamp
JUMP_TICKS = 5 * TICKS_PER_MS  # a larger lasting change of level is another clock, not a late stamp
SIDE_BATCHES = 20  # number of batches for the level before and after a suspected jump
BLOCK_BATCHES = 20
MOST_BLOCKS = 60  # the slope is the median over all pairs of blocks, which grow with the square
MOST_FIRSTS = 60_000
STEPS_TOLD = 100  # number of batches for the usual step of a sensor clock


@dataclass(frozen=True, slots=True)
class StampLine:
    """One continuous stretch: `ticks = soc0 + offset + ticks_per_ns (vinyl - vinyl0)`."""

    first_sample: int
    first_batch: int
    vinyl0_ns: int
    soc0_ticks: int
    offset_ticks: float
    ticks_per_ns: float

    def ticks(self, vinyl_ns: Int64) -> Int64:
        """Return stamps of samples of this stretch, int64 ticks; floats are only used relative to the epoch."""
        since = (vinyl_ns - self.vinyl0_ns).astype(np.float64)
        return self.soc0_ticks + np.rint(self.offset_ticks + self.ticks_per_ns * since).astype(np.int64)


@dataclass(frozen=True, slots=True)
class StampRepair:
    """The repaired clock of one inertial stream, with facts about the device."""

    lines: tuple[StampLine, ...]
    samples: int
    batches: int
    lost_batches: int
    rate_hz: float
    rate_ppm: float
    jitter_ms: float
    latest_ms: float
    bend_ms: float
    earliest_ms: float = 0.0  # distance of the earliest stamp below the line

    def ticks(self, vinyl_ns: Int64, *, first_sample: int = 0) -> Int64:
        """Repaired ticks (n,) int64 of the samples `first_sample ...` whose sensor stamps are `vinyl_ns`."""
        out = np.empty(len(vinyl_ns), dtype=np.int64)
        starts = [line.first_sample - first_sample for line in self.lines] + [len(vinyl_ns)]
        for line, start, stop in zip(self.lines, starts[:-1], starts[1:], strict=True):
            piece = slice(max(start, 0), max(stop, 0))
            out[piece] = line.ticks(vinyl_ns[piece])
        return out

    def report(self) -> dict[str, object]:
        """What the alignment file says about this stream."""
        return {
            "rate_hz": round(self.rate_hz, 4),
            "rate_ppm": round(self.rate_ppm, 3),
            "jitter_ms": round(self.jitter_ms, 4),
            "earliest_ms": round(self.earliest_ms, 4),
            "latest_ms": round(self.latest_ms, 3),
            "bend_ms": round(self.bend_ms, 4),
            "samples": self.samples,
            "batches": self.batches,
            "lost": self.lost_batches,
            "stretches": len(self.lines),
            "stamp": "vinyl_line",
        }


class BatchStamps:
    """Gathers what the repair of a long stream needs, batch by batch."""

    def __init__(self) -> None:
        """Begin with none."""
        self._vinyl_ns: list[int] = []
        self._soc_ticks: list[int] = []
        self._counts: list[int] = []
        self._steps_ns: list[float] = []

    def add(self, vinyl_ns: Int64, soc_ticks: Int64) -> None:
        """Take the stamps (n,) of the next batch; an empty one says nothing."""
        if len(vinyl_ns) == 0:
            return
        self._vinyl_ns.append(int(vinyl_ns[0]))
        self._soc_ticks.append(int(soc_ticks[0]))
        self._counts.append(len(vinyl_ns))
        if len(vinyl_ns) > 1 and len(self._steps_ns) < STEPS_TOLD:
            self._steps_ns.append(sample_step_ns(vinyl_ns))

    def repair(self) -> StampRepair | None:
        """Fit the line; None without any sample."""
        if not self._counts:
            return None
        firsts = np.concatenate([[0], np.cumsum(self._counts)]).astype(np.int64)
        return repair_batches(
            np.array(self._vinyl_ns, dtype=np.int64),
            np.array(self._soc_ticks, dtype=np.int64),
            firsts[:-1],
            samples=int(firsts[-1]),
            step_ns=float(np.median(self._steps_ns)) if self._steps_ns else 0.0,
        )


def repair_stamps(vinyl_ns: Int64, soc_ticks: Int64) -> StampRepair:
    """Fit the lower-envelope line of one stream.

    `vinyl_ns` (n,) sensor clock, ns; `soc_ticks` (n,) host clock, 100 ns, equal inside a batch; both int64.
    Raises BadStamps when they are empty or unequal in length.
    """
    if len(vinyl_ns) != len(soc_ticks):
        raise BadStamps(f"{len(vinyl_ns)} sensor stamps but {len(soc_ticks)} host stamps")
    if len(vinyl_ns) == 0:
        raise BadStamps("no samples")
    changes = np.flatnonzero(soc_ticks[1:] != soc_ticks[:-1]) + 1
    firsts = np.concatenate([np.zeros(1, dtype=np.int64), changes.astype(np.int64)])
    firsts = firsts[:: max(1, len(firsts) // MOST_FIRSTS)]
    return repair_batches(
        vinyl_ns[firsts], soc_ticks[firsts], firsts, samples=len(vinyl_ns), step_ns=sample_step_ns(vinyl_ns)
    )


def repair_batches(
    vinyl_first: Int64, soc_first: Int64, firsts: Int64, *, samples: int, step_ns: float
) -> StampRepair:
    """Fit the line from the batch firsts alone: stamps (b,) int64, and the sample number (b,) of each.

    `samples` counts all samples, `step_ns` is their usual distance on the sensor clock. So a long recording need
    not be in memory. Raises BadStamps without any batch.
    """
    if len(firsts) == 0:
        raise BadStamps("no samples")
    slope = rough_slope(vinyl_first, soc_first)
    breaks = find_breaks(vinyl_first, soc_first, slope)
    lines, late, bend = [], [], 0.0
    for start, stop in pairwise(breaks):
        line, residual, bent = fit_stretch(vinyl_first[start:stop], soc_first[start:stop], slope)
        lines.append(
            StampLine(
                int(firsts[start]),
                start,
                line.vinyl0_ns,
                line.soc0_ticks,
                line.offset_ticks,
                line.ticks_per_ns,
            )
        )
        late.append(residual)
        bend = max(bend, bent)
    residuals = np.concatenate(late)
    longest = max(range(len(lines)), key=lambda k: breaks[k + 1] - breaks[k])
    ticks_per_ns = lines[longest].ticks_per_ns
    return StampRepair(
        lines=tuple(lines),
        samples=samples,
        batches=len(firsts),
        lost_batches=count_lost(vinyl_first, breaks),
        rate_hz=TICKS_PER_S / (step_ns * ticks_per_ns) if step_ns > 0 else 0.0,
        rate_ppm=(ticks_per_ns / NOMINAL_TICKS_PER_NS - 1.0) * 1e6,
        jitter_ms=float(1.4826 * np.median(np.abs(residuals - np.median(residuals)))) / TICKS_PER_MS,
        latest_ms=float(residuals.max()) / TICKS_PER_MS,
        bend_ms=bend / TICKS_PER_MS,
        earliest_ms=_earliest(residuals) / TICKS_PER_MS,
    )


def sample_step_ns(vinyl_ns: Int64) -> float:
    """Return the usual distance of samples on the sensor clock, ns, from the start of a long recording."""
    steps = np.diff(vinyl_ns[:1_000_000])
    steps = steps[steps > 0]
    return float(np.mean(steps[steps < 2.0 * np.median(steps)])) if len(steps) else 0.0


def rough_slope(vinyl_first: Int64, soc_first: Int64) -> float:
    """Return ticks per sensor nanosecond, the median over long differences, robust to jumps and late stamps."""
    lag = max(1, min(200, len(vinyl_first) // 3))
    run = (vinyl_first[lag:] - vinyl_first[:-lag]).astype(np.float64)
    rise = (soc_first[lag:] - soc_first[:-lag]).astype(np.float64)
    usable = (run > 0) & (rise > 0)
    if not usable.any():
        return NOMINAL_TICKS_PER_NS
    slope = float(np.median(rise[usable] / run[usable]))
    return slope if 0.5 < slope / NOMINAL_TICKS_PER_NS < 2.0 else NOMINAL_TICKS_PER_NS


def find_breaks(vinyl_first: Int64, soc_first: Int64, slope: float) -> list[int]:
    """Return the batch indices where vinyl jumped or restarted, with 0 and the count.

    A lost batch moves both clocks alike, and a late stamp is followed by normal ones, so neither is a break.
    """
    count = len(vinyl_first)
    level = _residual(vinyl_first, soc_first, slope)
    breaks = [0]
    for at in np.flatnonzero(np.abs(np.diff(level)) > JUMP_TICKS) + 1:
        before = level[max(breaks[-1], at - SIDE_BATCHES) : at]
        after = level[at : at + SIDE_BATCHES]
        jump = abs(float(np.percentile(after, 20) - np.percentile(before, 20)))
        is_certain = min(len(before), len(after)) >= 5 or jump > 20 * JUMP_TICKS
        if jump > JUMP_TICKS and is_certain:
            breaks.append(int(at))
    return [*breaks, count]


def fit_stretch(vinyl_first: Int64, soc_first: Int64, slope: float) -> tuple[StampLine, Floats, float]:
    """Return the lower envelope line of one stretch, the residuals above it (ticks), and its bend (ticks)."""
    seconds = (vinyl_first - vinyl_first[0]).astype(np.float64) * 1e-9
    level = _residual(vinyl_first, soc_first, slope)
    tilt, bend = 0.0, 0.0
    if len(level) >= 2 * BLOCK_BATCHES:
        for _ in range(2):
            blocks_s, low = _block_lows(seconds, level - tilt * seconds)
            i, j = np.triu_indices(len(blocks_s), 1)
            run = blocks_s[j] - blocks_s[i]
            tilt += float(np.median((low[j] - low[i])[run > 0] / run[run > 0])) if (run > 0).any() else 0.0
        blocks_s, low = _block_lows(seconds, level - tilt * seconds)
        bend = float(np.ptp(np.array([np.median(part) for part in np.array_split(low, 3) if len(part)])))
    residual = level - tilt * seconds
    offset = float(np.percentile(residual, ENVELOPE_PERCENTILE))
    line = StampLine(0, 0, int(vinyl_first[0]), int(soc_first[0]), offset, slope + tilt * 1e-9)
    return line, residual - offset, bend


def count_lost(vinyl_first: Int64, breaks: list[int]) -> int:
    """Return the number of missing batches inside the stretches by the sensor clock."""
    lost = 0
    for start, stop in pairwise(breaks):
        steps = np.diff(vinyl_first[start:stop]).astype(np.float64)
        steps = steps[steps > 0]
        if len(steps):
            lost += int(np.maximum(np.rint(steps / np.median(steps)) - 1, 0).sum())
    return lost


def _residual(vinyl_first: Int64, soc_first: Int64, slope: float) -> Floats:
    since = (vinyl_first - vinyl_first[0]).astype(np.float64)
    residual: Floats = (soc_first - soc_first[0]).astype(np.float64) - slope * since
    return residual


def _block_lows(seconds: Floats, level: Floats) -> tuple[Floats, Floats]:
    blocks = min(MOST_BLOCKS, len(level) // BLOCK_BATCHES)
    parts = np.array_split(np.arange(len(level)), blocks)
    low = [np.percentile(level[part], ENVELOPE_PERCENTILE) for part in parts]
    return np.array([seconds[part].mean() for part in parts]), np.array(low)


def _earliest(residuals: Floats) -> float:
    """Return the distance of the earliest stamps below the line; one in a thousand may be wrong."""
    rank = len(residuals) // 1000
    return max(-float(np.partition(residuals, rank)[rank]), 0.0)
