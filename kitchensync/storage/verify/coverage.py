"""Coverage of the session, delay and silence of a stream. Pure functions on arrays.

Device stamps are converted to the capture clock with the shortest delay of the stream. Streams of one device share
its clock, so that a stream with a jump of its stamps is placed by the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.shell.array_types import Floats, Mask
from kitchensync.storage.verify.session_span import SessionTimes
from kitchensync.storage.verify.thresholds import ADAPTIVE_S, PERIODS, TAIL_LATE_S, TAIL_S

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import StreamForm

Span = tuple[float, float]
"""Seconds of the session's axis, from and to."""

OTHER_CLOCK_S = 30.0
"""Difference of stamps from which a connection has another clock, because its device restarted."""
JUMPED_S = 1.0
"""Difference of a stream's stamps to the other streams of its device from which it is placed by them."""
STAMPED_HERE_NS = 1_000_000
"""Maximum usual time from stamp to arrival of stamps by the capture computer."""
FAST = 1.05
"""Maximum rate of a real clock; a simulation may be faster, and the capture clock stops during sleep."""


@dataclass(frozen=True)
class PlacedPackets:
    """The packets of one stream in order of arrival, seconds on the session's axis."""

    at_s: Floats
    "(n,) by the device's stamps."
    arrived_s: Floats
    "(n,) by the capture clock."
    own_session: Span | None = None
    "The session by the device's stamps if they are faster than the capture clock; then no packet counts as late."

    def only(self, rows: Mask) -> PlacedPackets:
        """Return some of them, `rows` (n,)."""
        return PlacedPackets(self.at_s[rows], self.arrived_s[rows], self.own_session)


@dataclass(frozen=True)
class Cover:
    """Coverage of the session by a stream."""

    share: float
    holes: list[Span]
    "Times between packets above the limit, without pauses, including the end."
    longest_silence_s: float
    latest_s: float


def place(indexes: Mapping[str, npt.NDArray[np.void]], zero_host_ns: int) -> dict[str, PlacedPackets]:
    """Place the streams of one device; `indexes`: (n,) of `layout.INDEX`, without empty ones."""
    filled = {name: index for name, index in indexes.items() if len(index)}
    if not filled:
        return {}
    zero_ticks = float(next(iter(filled.values()))["device_ticks"][0])
    stamps = {
        name: (index["device_ticks"].astype(np.float64) - zero_ticks) / 1e7 for name, index in filled.items()
    }
    arrivals = {name: (index["host_ns"] - zero_host_ns) / 1e9 for name, index in filled.items()}
    if all(_runs_ahead(index, stamps[name], arrivals[name]) for name, index in filled.items()):
        first_s, last_s = (max(float(part[at]) for part in stamps.values()) for at in (0, -1))
        return {name: PlacedPackets(stamps[name], stamps[name], (first_s, last_s)) for name in filled}
    quickest = {name: _quickest(filled[name], arrivals[name] - stamps[name]) for name in filled}
    usual = float(np.median([least for least, _ in quickest.values()]))
    placed = {}
    for name, (least, offsets) in quickest.items():
        reference = least if abs(least - usual) <= JUMPED_S else usual
        at_s = stamps[name] + np.where(np.isnan(offsets), reference, offsets)
        placed[name] = PlacedPackets(at_s, arrivals[name])
    return placed


def _runs_ahead(index: npt.NDArray[np.void], stamps_s: Floats, arrived_s: Floats) -> bool:
    """Return whether the clock is faster than any real one, by the longest run of the stream."""
    starts = _runs(index)
    longest = int(np.argmax(np.diff(np.append(starts, len(index)))))
    run = slice(starts[longest], starts[longest + 1] if longest + 1 < len(starts) else None)
    return bool(np.ptp(stamps_s[run]) > FAST * np.ptp(arrived_s[run]))


def _runs(index: npt.NDArray[np.void]) -> npt.NDArray[np.intp]:
    """Return the first row of every connection of every run of the producer."""
    epochs, connections = index["epoch_ms"].astype(np.int64), index["connection"].astype(np.int64)
    return np.concatenate(([0], np.flatnonzero((np.diff(epochs) != 0) | (np.diff(connections) != 0)) + 1))


def _quickest(index: npt.NDArray[np.void], delay_s: Floats) -> tuple[float, Floats]:
    """Return the shortest delay of the stream's first clock, and (n,) offsets, NaN for packets of that clock."""
    starts = _runs(index)
    least = np.minimum.reduceat(delay_s, starts)
    is_first = np.abs(least - least[0]) <= OTHER_CLOCK_S
    offsets = np.where(is_first, np.nan, least)
    return float(least[is_first].min()), np.repeat(offsets, np.diff(np.append(starts, len(index))))


def is_adaptive(name: str, description: StreamForm) -> bool:
    """Return whether a stream has a variable rate, by its entry in the manifest, else by its name."""
    spec = STREAMS.get(name.rpartition("/")[2])
    return bool(description.get("adaptive", spec is not None and spec.adaptive))


def is_stamped_here(index: npt.NDArray[np.void]) -> bool:
    """Return whether the stamps of a stream, `index` (n,), are its arrivals because its sensor has no clock.

    The clock of a device has another zero, so its stamps are not just before those of the capture clock.
    """
    waited_ns = index["host_ns"] - 100 * index["device_ticks"].astype(np.int64)
    return bool(len(index) and waited_ns.min() >= 0 and np.median(waited_ns) <= STAMPED_HERE_NS)


def is_irregular(name: str, description: StreamForm, index: npt.NDArray[np.void]) -> bool:
    """Return whether steps up to `ADAPTIVE_S` are normal, because of a variable rate or jitter of arrivals."""
    return is_adaptive(name, description) or is_stamped_here(index)


def longest_step_s(nominal_hz: float, *, adaptive: bool) -> float:
    """Return the maximum covered time between packets."""
    return max(PERIODS / nominal_hz, ADAPTIVE_S if adaptive else 0.0)


def cover(placed: PlacedPackets, session: SessionTimes, step_s: float, pauses: Sequence[Span] = ()) -> Cover:
    """Measure a stream; `pauses` are not part of the session."""
    start_s, stop_s = placed.own_session or (session.start_s, session.stop_s)
    at_s, arrived_s = np.unique(placed.at_s), placed.arrived_s
    late_s = arrived_s - placed.at_s
    # until the stop, without the packets on their way at that moment
    end_s = stop_s - min(max(float(late_s[-1]), 0.0), TAIL_LATE_S)
    last_s = float(at_s[-1])
    end_s = last_s if 0.0 < end_s - last_s <= TAIL_S else end_s
    lefts = np.concatenate(([min(start_s, at_s[0])], at_s))
    rights = np.append(at_s, max(end_s, last_s))
    is_hole = (rights - lefts > step_s) & (rights > start_s) & (lefts < end_s)
    edges = zip(lefts[is_hole].tolist(), rights[is_hole].tolist(), strict=True)
    holes = without([(max(left, start_s), min(right, end_s)) for left, right in edges], pauses)
    asked_s = length_of(without([(start_s, end_s)], pauses))
    share = 1.0 - length_of(holes) / asked_s if asked_s > 0 else 1.0
    inside = arrived_s[(arrived_s > start_s) & (arrived_s < stop_s)]
    moments = np.concatenate(([start_s], inside, [max(stop_s, start_s)]))
    if not pauses:
        silent_s = float(np.diff(moments).max())
    else:
        spans = [(float(a), float(b)) for a, b in pairwise(moments)]
        silent_s = max((b - a for a, b in without(spans, pauses)), default=0.0)
    return Cover(
        share=min(max(share, 0.0), 1.0),
        holes=holes,
        longest_silence_s=silent_s,
        latest_s=max(float(late_s.max()), 0.0),
    )


def without(spans: Sequence[Span], pauses: Sequence[Span]) -> list[Span]:
    """Cut the pauses out of the spans."""
    remaining = list(spans)
    for start_s, end_s in pauses:
        parts = []
        for a, b in remaining:
            parts += [part for part in ((a, min(b, start_s)), (max(a, end_s), b)) if part[1] > part[0]]
        remaining = parts
    return remaining


def length_of(spans: Sequence[Span]) -> float:
    """Return the total length of spans, seconds."""
    return sum(b - a for a, b in spans)
