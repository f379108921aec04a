"""When every picture of a camera's film was taken, on the capture clock, and where a moment is in the film.

Seconds of the film are the number of a picture divided by the film's rate: the same in every small film of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sensors.array_types import Int64
from storage.exports.film import rate_of
from storage.privacy import UNKNOWN
from storage.reading.alignments import film_clocks
from storage.timeline.film_place import FilmPlace

if TYPE_CHECKING:
    from sensors.gopro.files.clip import Clip
    from storage.recording import Recording

EVENT_PLACES = Path("sync") / "events.json"
HOLE_NS = 500_000_000
"""Pictures this far apart have a hole between them: what happened there is not in the film."""


@dataclass(frozen=True)
class FilmFrames:
    """All pictures of a clip: `capture_ns` (n,) int64 or UNKNOWN, `bound_ns` (n,); `why` some are not known."""

    fps: Fraction
    capture_ns: Int64
    bound_ns: Int64
    why: str = ""

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.capture_ns)

    @property
    def is_placed(self) -> bool:
        """Tell whether it is known of any picture when it was taken."""
        return len(self._known) > 0

    def knots(self, every: int) -> list[list[list[int]]]:
        """Return the pieces of the film without a hole, each as [number, capture ns] of its first, some and last.

        Every so many pictures is one; when the others were taken lies on the straight line between.
        """
        known, at_ns = self._known, self._known_ns
        if not len(known):
            return []
        holes = np.flatnonzero((np.diff(at_ns) > HOLE_NS) | (np.diff(known) > 1)) + 1
        pairs = np.split(np.column_stack([known, at_ns]), holes)
        return [piece[sorted({*range(0, len(piece), every), len(piece) - 1})].tolist() for piece in pairs]

    def place(self, host_ns: int, uncertainty_ns: int = 0) -> FilmPlace:
        """Return where a moment is in the film; the nearest place, and why, where the film does not show it."""
        if not len(self._known):
            return FilmPlace(0.0, 0.0, self.why or "nothing tells when its pictures were taken")
        after = int(np.searchsorted(self._known_ns, host_ns, side="right"))
        before = max(after - 1, 0)
        bound_s = (int(self.bound_ns[self._known[before]]) + uncertainty_ns) / 1e9
        if after == 0:
            first = int(self._known[0])
            return FilmPlace(
                self._seconds(first), bound_s, "before the first picture" if not first else self.why
            )
        number, since_ns = int(self._known[before]), host_ns - int(self._known_ns[before])
        if after == len(self._known):
            return self._behind_the_last(number, since_ns, bound_s)
        step_ns = int(self._known_ns[after]) - int(self._known_ns[before])
        step = int(self._known[after]) - number
        if step == 1 and step_ns > HOLE_NS:
            return FilmPlace(self._seconds(number + 1), bound_s, "no picture near it")
        outside = self.why if step > 1 else ""
        return FilmPlace(self._seconds(number + Fraction(step * since_ns, max(step_ns, 1))), bound_s, outside)

    def _behind_the_last(self, number: int, since_ns: int, bound_s: float) -> FilmPlace:
        into = since_ns * self.fps / 10**9
        if into <= 1:
            return FilmPlace(self._seconds(number + into), bound_s)
        is_end = number == len(self) - 1
        return FilmPlace(self._seconds(number + 1), bound_s, "after the last picture" if is_end else self.why)

    def _seconds(self, number: Fraction | int) -> float:
        return round(float(number / self.fps), 3)

    @cached_property
    def _known(self) -> Int64:
        return np.flatnonzero(self.capture_ns != UNKNOWN)

    @cached_property
    def _known_ns(self) -> Int64:
        return np.maximum.accumulate(self.capture_ns[self._known])


def film_frames(recording: Recording, camera: str, clip: Clip) -> FilmFrames:
    """Say of each picture of a clip when it was taken, chapter by chapter, as `sync` aligned them."""
    total = len(clip.frame_times_s)
    capture_ns, bound_ns = np.full(total, UNKNOWN), np.zeros(total, np.int64)
    clocks, why = film_clocks(recording.path, recording.readable)
    by_file = {clock.file: clock for clock in clocks}
    for first, chapter in zip(clip.first_frames, clip.chapters, strict=True):
        clock = by_file.get(chapter.path)
        host = recording.device_clock(clock.headset) if clock is not None else None
        bound_s = clock.bound_s(chapter.frame_times_s) if clock is not None else None
        if clock is not None and host is not None and bound_s is not None:
            here = slice(first, first + len(chapter.frame_times_s))
            capture_ns[here] = host.to_host_ns(clock.taken_at(chapter.frame_times_s))
            bound_ns[here] = host.bound_ns + np.rint(bound_s * 1e9).astype(np.int64)
    if not clocks and not recording.main_headset:
        return _by_events(recording, camera, clip) or FilmFrames(
            rate_of(clip),
            capture_ns,
            bound_ns,
            "no headset was there, and the start of the film is not known",
        )
    return FilmFrames(rate_of(clip), capture_ns, bound_ns, "; ".join(why))


def _by_events(recording: Recording, camera: str, clip: Clip) -> FilmFrames | None:
    """Without a headset: by where `sync` placed an event after the shutter; None where it placed none."""
    starts = {f"{camera}/{c.path.name}": s for c, s in zip(clip.chapters, clip.starts_s, strict=True)}
    for host_ns, place in _placed(recording.path, f"{camera}/video"):
        if place["frame"] is not None and place.get("file") in starts:
            shown_ns = host_ns + round(place["dt_ms"] * 1e6)
            start_ns = shown_ns - round((place["media_s"] + float(starts[place["file"]])) * 1e9)
            capture_ns = start_ns + np.rint(clip.frame_times_s * 1e9).astype(np.int64)
            bound_ns = np.full(len(capture_ns), round(place["uncertainty_ms"] * 1e6))
            return FilmFrames(rate_of(clip), capture_ns, bound_ns)
    return None


def _placed(recording: Path, video: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        content = json.loads((recording / EVENT_PLACES).read_text(encoding="utf-8"))
        yield from (
            (one["host_ns"], one["frames"][video]) for one in content["events"] if video in one["frames"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return
