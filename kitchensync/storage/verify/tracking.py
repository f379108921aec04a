"""What a headset knew of itself, packet by packet: flags, poses, and sensors that repeat one value.

A headset that loses itself sends on, in time and whole: its poses are zero, and what else it says of the head is
stale. Nothing of that is a loss in the ledger.
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
SLOW_HZ = 10.0
HOLE_S = 2.0
"""Packets further apart are no longer one run: what lay between them nobody knows."""


class Tracking:
    """Takes the packets of one stream, file by file."""

    def __init__(self, stream: HeadsetStream | None) -> None:
        """Expect the packets of a stream of the headset, or of another sensor (None)."""
        flags, record = (stream.flags, stream.record) if stream is not None else (None, None)
        self.parts = flags.parts if flags is not None else {}
        """The parts that its payloads tell of; empty where only poses tell."""
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
        """Another file begins."""
        self._here = []

    def take_still(self, repeats: bool) -> None:
        """Take whether the samples of the next packet of an inertial sensor repeat those before."""
        self._here.append(frozenset({STILL} if repeats else ()))

    def take(self, payload: bytes) -> None:
        """Take the next payload; one of another size says nothing."""
        said: set[str] = set()
        if len(payload) == self._size:
            self._packets += 1
            flags = int.from_bytes(payload[self._at : self._at + 4], "little")
            seen = {part for part, bit in self.parts.items() if flags & bit}
            self._seen.update(seen)
            if HEAD in self.parts and HEAD not in seen:
                said.add(HEAD)
            if GAZE in seen and payload[self._gaze] == self._before[self._gaze]:
                said.add(GAZE)
        self._here.append(frozenset(said))
        self._before = payload

    def finish(self, rows: int, poses: npt.NDArray[np.float32] | None, *, is_sound: bool) -> None:
        """End a file of so many rows with its poses, (n, 4, 4), or None; one that is damaged tells nothing."""
        found = {kind: np.zeros(rows, bool) for kind in self._rows}
        if is_sound and len(self._here) == rows:
            for kind in found:
                found[kind] |= np.array([kind in said for said in self._here], bool)
        if is_sound and poses is not None:
            lost = poses[:, 3, 3] == 0  # an untracked one is all zero
            self._poses += len(poses)
            self._seen[POSE] += int(np.count_nonzero(~lost))
            found[HEAD] |= lost
        for kind, rows_here in found.items():
            self._rows[kind].append(rows_here)

    def shares(self) -> dict[str, float]:
        """Return part -> share of the packets, 0 to 1; empty for a stream that tells nothing."""
        found = {part: self._seen[part] / self._packets for part in self.parts if self._packets}
        return found | ({POSE: self._seen[POSE] / self._poses} if self._poses else {})

    def rows(self) -> dict[str, Mask]:
        """Return for each kind which packets tell it, (n,): head lost, gaze repeated, samples repeated."""
        return {
            kind: np.concatenate(parts) if parts else np.zeros(0, bool) for kind, parts in self._rows.items()
        }


def spans_of(rows: Mask, at_s: Floats, least_s: float = LOST_S) -> list[Span]:
    """Return (from, to) session seconds of each run of marked packets, each up to the next good one.

    `rows` (n,) and `at_s` (n,) in the order of arrival; runs shorter than `least_s` are left out. A hole in the
    packets, or a pause, ends a run at its last packet.
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
    """Return spans of several streams as one list, those that touch joined."""
    made: list[Span] = []
    for first, last in sorted(spans):
        if made and first <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], last)
        else:
            made.append((first, last))
    return made
