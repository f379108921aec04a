"""Tracking of a headset, packet by packet: flags, poses, and sensors that repeat one value.

A headset that loses tracking continues to send packets: its poses are zero, and its other values of the head are
stale. The ledger does not count this as a loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.hololens.headset_stream import SAMPLES, HeadsetStream
from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.shell.array_types import Floats, Mask
from kitchensync.storage.verify.coverage import Span
from kitchensync.storage.verify.thresholds import LOST_S, STILL_SLOW_S

POSE, HEAD, GAZE, STILL = "pose", "head", "gaze", "still"
SLOW_HZ = 10.0  # the magnetometer sends 4.5 packets a second, the accelerometer 11.8
HOLE_S = 2.0
"""Largest interval of packets in one run, seconds: tracking between them is not known."""


class Tracking:
    """Collects the tracking of one stream, file by file."""

    def __init__(self, stream: HeadsetStream | None) -> None:
        """Take the stream of the headset, or None for another sensor."""
        flags, record = (stream.flags, stream.record) if stream is not None else (None, None)
        self.parts = flags.parts if flags is not None else {}
        """The parts with flags in its payloads; empty if only poses show tracking."""
        self._at = flags.at if flags is not None else 0
        self._size = record.itemsize if record is not None else 0
        self._gaze = flags.gaze if flags is not None else slice(0, 0)
        self.is_inertial = stream is not None and stream.kind == SAMPLES
        self.least_still_s = STILL_SLOW_S if stream is not None and stream.nominal_hz < SLOW_HZ else LOST_S
        self._seen: Counter[str] = Counter()
        self._packets = self._poses = 0
        self._before = b""
        self._here: list[frozenset[str]] = []
        self._rows: dict[str, list[Mask]] = {HEAD: [], GAZE: [], STILL: []}

    def begin(self) -> None:
        """Begin another file."""
        self._here = []

    def take_still(self, repeats: bool) -> None:
        """Add the next packet of an inertial sensor: whether its samples repeat the previous ones."""
        self._here.append(frozenset({STILL} if repeats else ()))

    def take(self, payload: bytes) -> None:
        """Add the next payload; a payload of another size has no flags."""
        kinds: set[str] = set()
        if len(payload) == self._size:
            self._packets += 1
            flags = int.from_bytes(payload[self._at : self._at + 4], "little")
            tracked = {part for part, bit in self.parts.items() if flags & bit}
            self._seen.update(tracked)
            if HEAD in self.parts and HEAD not in tracked:
                kinds.add(HEAD)
            if GAZE in tracked and payload[self._gaze] == self._before[self._gaze]:
                kinds.add(GAZE)
        self._here.append(frozenset(kinds))
        self._before = payload

    def finish(self, rows: int, poses: npt.NDArray[np.float32] | None, *, is_sound: bool) -> None:
        """End a file with its number of rows, and poses (n, 4, 4) or None; a damaged file is ignored."""
        marks = {kind: np.zeros(rows, bool) for kind in self._rows}
        if is_sound and len(self._here) == rows:
            for kind in marks:
                marks[kind] |= np.array([kind in kinds for kinds in self._here], bool)
        if is_sound and poses is not None:
            lost = poses[:, 3, 3] == 0  # an untracked pose is all zero
            self._poses += len(poses)
            self._seen[POSE] += int(np.count_nonzero(~lost))
            marks[HEAD] |= lost
        for kind, rows_here in marks.items():
            self._rows[kind].append(rows_here)

    def shares(self) -> dict[str, float]:
        """Return part -> share of the packets, 0 to 1; empty for a stream without tracking."""
        shares_ = {part: self._seen[part] / self._packets for part in self.parts if self._packets}
        return shares_ | ({POSE: self._seen[POSE] / self._poses} if self._poses else {})

    def rows(self) -> dict[str, Mask]:
        """Return the marked packets by kind, (n,): head lost, gaze repeated, samples repeated."""
        return {
            kind: np.concatenate(parts) if parts else np.zeros(0, bool) for kind, parts in self._rows.items()
        }


def spans_of(rows: Mask, at_s: Floats, least_s: float = LOST_S) -> list[Span]:
    """Return (from, to) session seconds of each run of marked packets, up to the next unmarked packet.

    `rows` (n,) and `at_s` (n,) in order of arrival; runs shorter than `least_s` are left out. A gap in the packets,
    or a pause, ends a run at its last packet.
    """
    if not len(rows) or len(rows) != len(at_s):
        return []
    holes = np.flatnonzero(np.abs(np.diff(at_s)) > HOLE_S) + 1
    spans = []
    for start, stop in pairwise([0, *holes.tolist(), len(rows)]):
        times = at_s[start:stop]
        ends = np.append(times, times[-1])
        spans += [(float(times[first]), float(ends[end])) for first, end in marked_runs(rows[start:stop])]
    return [(first, last) for first, last in spans if last - first >= least_s]


def united(spans: Sequence[Span]) -> list[Span]:
    """Return the union of the spans of several streams."""
    joined: list[Span] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined
