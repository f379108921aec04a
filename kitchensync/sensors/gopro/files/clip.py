"""The chapters of one recording read as one video, with one timeline and exact frame times.

Chapter k + 1 begins where the frames of chapter k end, by their timestamps, never by the length of container or
sound.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import ExitStack
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kitchensync.sensors.errors import CannotJoin, UnreadableMedia
from kitchensync.sensors.gopro.files.card_names import siblings
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.sensors.gopro.files.picture_reader import Picture, PictureReader, index_at
from kitchensync.sensors.gopro.files.telemetry import Payload, Telemetry, picture_parts
from kitchensync.shell.forked_child import reopens_in_child

STAMP_AGREES_S = 0.5
"""Allowed deviation of timestamps from the frames' times, seconds."""
STAMP_DRIFT = 2e-4
"""Drift of the timestamps' clock against the frames' nominal rate, over chapters of half an hour."""


class Place(NamedTuple):
    """Position of a frame of the recording."""

    chapter: int
    "Index of the file, from 0."
    frame: int
    "Number of the frame in that file."


class Clip(Telemetry):
    """One recording: its chapters as one video, its telemetry as one."""

    def __init__(self, chapters: list[GoProMedia]) -> None:
        """Take opened chapters in their order. Raises `CannotJoin` if they are not of one recording."""
        if not chapters:
            raise CannotJoin("nothing", "no files were given")
        self.chapters = chapters
        first = chapters[0]
        self.path = first.path
        for other in chapters[1:]:
            pairs = (
                ("camera", first.serial, other.serial),
                ("video format", _format(first), _format(other)),
            )
            for what, expected, actual in pairs:
                if expected != actual:
                    why = f"another {what} ({actual}) than {first.path.name} ({expected})"
                    raise CannotJoin(other.path.name, why)

    @cached_property
    def starts_s(self) -> list[Fraction]:
        """Media time of the start of each chapter, exact seconds."""
        starts = [Fraction(0)]
        for chapter in self.chapters[:-1]:
            starts.append(starts[-1] + chapter.duration_s)
        return starts

    @property
    def duration_s(self) -> Fraction:
        """Seconds from the first frame to the end of the last frame, exact."""
        return self.starts_s[-1] + self.chapters[-1].duration_s

    @property
    def rate(self) -> Fraction:
        """Frames per second, exact, from the most common step of the first chapter. Raises UnreadableMedia."""
        return 1 / self.chapters[0].frame_period

    @cached_property
    def first_frames(self) -> list[int]:
        """Number of each chapter's first frame."""
        counts = [len(chapter.frame_pts) for chapter in self.chapters]
        return [0, *np.cumsum(counts)[:-1].tolist()]

    @cached_property
    def frame_times_s(self) -> np.ndarray:
        """Times of all frames, (n,) float64 seconds, the first is 0; each rounded once from exact integers."""
        times = []
        for start, chapter in zip(self.starts_s, self.chapters, strict=True):
            pts, base = chapter.frame_pts, chapter.time_base
            # start + (pts - pts0) * base over one common denominator: integers until the last division
            common = Fraction(1, start.denominator * base.denominator)
            units = int(start / common) + (pts - (pts[0] if len(pts) else 0)) * int(base / common)
            times.append(units / common.denominator)
        return np.concatenate(times)

    @cached_property
    def even_frames(self) -> np.ndarray:
        """Number of the frame that a video with the constant `rate` shows at k / rate, (m,) int64.

        Each frame once if all are within half a period of k / rate. Otherwise the nearest frame in time: frames are
        repeated or dropped, so that the video stays in sync with its sound.
        """
        times, rate = self.frame_times_s, float(self.rate)
        numbers = np.arange(len(times))
        if (np.abs(times - numbers / rate) < 0.5 / rate).all():
            return numbers
        shown_s = np.arange(round(self.duration_s * self.rate)) / rate
        return np.searchsorted(times, shown_s + 0.5 / rate) - 1

    @property
    def shown_as(self) -> bytes:
        """Bytes for a digest of frame times, and of `even_frames` if it repeats or drops frames."""
        even = self.even_frames
        varies = b"" if np.array_equal(even, np.arange(len(self.frame_times_s))) else even.tobytes()
        return self.frame_times_s.tobytes() + varies

    def locate(self, frame: int) -> Place:
        """Return the position of a frame. Raises UnreadableMedia."""
        if not 0 <= frame < len(self.frame_times_s):
            raise UnreadableMedia(self.path, f"it has {len(self.frame_times_s)} frames, no frame {frame}")
        chapter = bisect_right(self.first_frames, frame) - 1
        return Place(chapter, frame - self.first_frames[chapter])

    def pictures(self) -> ClipPictures:
        """Open the frames of all chapters for access by time or number (a context manager)."""
        return ClipPictures(self)

    @cached_property
    def payloads(self) -> list[Payload]:
        """All GPMF payloads of all chapters, on the recording's media time."""
        return [
            Payload(float(start) + payload.start_s, payload.duration_s, payload.data)
            for start, chapter in zip(self.starts_s, self.chapters, strict=True)
            for payload in chapter.payloads
        ]

    @cached_property
    def lost_before_s(self) -> list[float] | None:
        """Seconds missing before each chapter, by the timestamps, (chapters,).

        A chapter is missing if the telemetry has a gap and the frames would be shifted too; a payload in the file of
        the neighbouring chapter shifts no frame. None if the timestamps do not continue, or the camera writes none.
        """
        if len(self.chapters) == 1:
            return [0.0]
        spans = [_stamped_us(chapter) for chapter in self.chapters]
        lost, sum_s = [0.0], 0.0
        for (before, current), at in zip(pairwise(spans), self.starts_s[1:], strict=True):
            if before is None or current is None:
                return None
            assert spans[0] is not None
            gap_s = (current[0] - before[1]) / 1e6
            late_s = self.payloads[0].start_s + (current[0] - spans[0][0]) / 1e6 - float(at) - sum_s
            if gap_s < -stamps_agree_s(at):
                return None
            lost.append(late_s if min(gap_s, late_s) > stamps_agree_s(at) else 0.0)
            sum_s += lost[-1]
        return lost

    @property
    def has_stamps(self) -> bool:
        """Return whether every chapter's telemetry has camera-clock timestamps of its frames."""
        return all(picture_parts(chapter.stream_parts) for chapter in self.chapters)

    @property
    def telemetry_starts_s(self) -> list[float] | None:
        """Time of each chapter's first frame on the time of `gyroscope()`; None if it is unknown.

        The timestamps continue over all chapters, so a missing chapter leaves a gap of its length.
        """
        lost = self.lost_before_s
        if lost is None:
            return None
        return [float(at) + by for at, by in zip(self.starts_s, np.cumsum(lost).tolist(), strict=True)]

    @property
    def telemetry_late_s(self) -> list[float]:
        """Offset of each chapter's telemetry, read alone, from the clip's, seconds: whole payloads, or 0.

        A chapter that is read alone places its first payload at its first frame, even if the payload belongs to the
        neighbouring chapter.
        """
        starts, spans = self.telemetry_starts_s, [_stamped_us(chapter) for chapter in self.chapters]
        if starts is None or any(span is None for span in spans):
            return [0.0] * len(self.chapters)
        own = [
            chapter.payloads[0].start_s - (span or (0, 0))[0] / 1e6
            for chapter, span in zip(self.chapters, spans, strict=True)
        ]
        return [late - own[0] + start for late, start in zip(own, starts, strict=True)]


def _stamped_us(chapter: GoProMedia) -> tuple[int, int] | None:
    """Return the camera-clock timestamps of the start and end of a chapter's telemetry, us."""
    parts = [part for _, part in picture_parts(chapter.stream_parts)]
    if not parts:
        return None
    first, last = (part.integer("STMP") or 0 for part in (parts[0], parts[-1]))
    return first, last + round(parts[-1].count * float(chapter.frame_period) * 1e6)


def stamps_agree_s(since_s: Fraction | float) -> float:
    """Return the allowed deviation of timestamps from the frames' times, seconds, `since_s` after the first frame."""
    return STAMP_AGREES_S + STAMP_DRIFT * float(since_s)


class ClipPictures:
    """Random access to the frames of all chapters."""

    def __init__(self, clip: Clip) -> None:
        self._clip = clip
        self._stack = ExitStack()
        self._open: dict[int, PictureReader] = {}
        reopens_in_child(self)

    def leave_to_parent(self) -> object:
        """Forget the files that the parent process has open."""
        parents_files = self._stack, self._open
        self._stack, self._open = ExitStack(), {}
        return parents_files

    def __enter__(self) -> ClipPictures:
        """Return the reader; files are opened on access."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close all files."""
        self._stack.__exit__(None, None, None)
        self._open.clear()

    def at(self, time_s: float, width: int | None = None) -> Picture:
        """Decode the frame at a media time of the recording."""
        return self.number(index_at(self._clip.frame_times_s, time_s), width)

    def number(self, frame: int, width: int | None = None) -> Picture:
        """Decode a frame by its number in the recording; `pts` is that in its chapter."""
        place = self._clip.locate(frame)
        if place.chapter not in self._open:
            reader = self._clip.chapters[place.chapter].pictures()
            self._open[place.chapter] = self._stack.enter_context(reader)
        picture = self._open[place.chapter].number(place.frame, width)
        return picture._replace(number=frame, time_s=float(self._clip.frame_times_s[frame]))


def open_clip(*paths: Path | str) -> Clip:
    """Open one recording from its files in order, or from one file, whose other chapters are in the same folder.

    Raises `CannotJoin` if a chapter is missing or of another recording, `UnreadableMedia` if one is damaged.
    """
    files = [Path(path) for path in paths]
    if len(files) == 1 and (chapters := siblings(files[0])) is not None:
        if chapters.missing:
            why = f"chapter {chapters.missing[0]} of recording {chapters.number} is missing"
            raise CannotJoin(files[0].name, why)
        files = list(chapters.paths)
    clip = Clip([open_media(path) for path in files])
    for lost_s, chapter in zip(clip.lost_before_s or [], clip.chapters, strict=False):
        if lost_s:
            why = f"its timestamps are {lost_s:+.3f} s from the end of the previous chapter; is a chapter missing?"
            raise CannotJoin(chapter.path.name, why)
    return clip


def _format(media: GoProMedia) -> str:
    video = media.video
    return f"{video.codec} {video.width}x{video.height} {video.rate}" if video is not None else "no frames"
