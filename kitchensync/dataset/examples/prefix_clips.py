"""Write the video of each example, cut at its end, and one frame a second of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from kitchensync.dataset.promqa.questions import PromqaExample, seconds_of
from kitchensync.dataset.source.source_films import open_film
from kitchensync.storage.copies.derived import may_write
from kitchensync.storage.exports.cut_films import (
    count_pictures,
    each_second,
    numbered_jpegs,
    times_shown,
    write_beginning,
)
from kitchensync.storage.exports.film import write_small_film
from kitchensync.storage.options.outputs import write_into, written

if TYPE_CHECKING:
    from fractions import Fraction

    from kitchensync.dataset.source.source_data import SourceData
HEIGHT = 360


@dataclass(frozen=True)
class PrefixWish:
    """What to write beside the list `out`: clips, frames, and whether to overwrite.

    `small_film` returns the small video of an own recording, None if it does not exist yet.
    """

    out: Path
    clips: bool
    frames: bool
    force: bool
    small_film: Callable[[Path], Path | None]

    @property
    def clips_folder(self) -> Path:
        """The folder of clips."""
        return self.out.with_suffix(".clips")

    @property
    def frames_folder(self) -> Path:
        """The folder of frames."""
        return self.out.with_suffix(".frames")


class _OfPrefix(TypedDict, total=False):
    clip_frames: int
    last_frame_s: float
    clip: str
    frames: list[str]


def frame_name(recording: str, number: int) -> str:
    """Return the file name of a frame; clips that show it share it."""
    return f"{recording}/{number:06d}.jpg"


def write_prefixes(
    source: SourceData, recording: str, rows: Iterable[PromqaExample], wish: PrefixWish
) -> bool:
    """Write clips and frames of one recording, and add their names to its rows; False if its video is missing.

    A row gets `clip`, `clip_frames`, `last_frame_s` and `frames`. Raises OutputRefused, UnreadableMedia.
    """
    if wish.clips:
        may_write(wish.clips_folder)
    with _film_to_cut(source, recording, wish) as to_cut:
        if to_cut is None:
            return False
        film, fps, times = to_cut
        by_end: dict[int, _OfPrefix] = {}
        frames: set[int] = set()
        for row in rows:
            end_s = seconds_of(row["end_time"])
            if end_s not in by_end:
                count = min(len(times), max(1, ceil(end_s * fps)))
                fields: _OfPrefix = {
                    "clip_frames": count,
                    "last_frame_s": round(float((count - 1) / fps), 4),
                }
                if wish.clips:
                    clip = wish.clips_folder / f"{recording}_{end_s}.mp4"
                    if wish.force or not clip.exists() or count_pictures(clip) != count:
                        with written(clip, force=wish.force, ending=".mp4") as part:
                            write_beginning(film, part, times, count)
                    fields["clip"] = f"{clip.parent.name}/{clip.name}"
                if wish.frames:
                    numbers = each_second(fps, count)
                    fields["frames"] = [
                        f"{wish.frames_folder.name}/{frame_name(recording, n)}" for n in numbers
                    ]
                    frames.update(numbers)
                by_end[end_s] = fields
            row.update(by_end[end_s])
        for number, content in numbered_jpegs(film, frames):
            write_into(wish.frames_folder, {frame_name(recording, number): content}, force=wish.force)
    return True


@contextmanager
def _film_to_cut(
    source: SourceData, recording: str, wish: PrefixWish
) -> Iterator[tuple[Path, Fraction, list[Fraction]] | None]:
    """Yield a video with frames in order, its rate and frame times; make a temporary one if there is none."""
    with open_film(source, recording) as film:
        if film is None:
            yield None
            return
        fps = film.clip.rate
        if recording in source.own:
            small_film = wish.small_film(source.own[recording].path)
            paths = [small_film] if small_film else []
        else:
            paths = [chapter.path for chapter in film.clip.chapters]
        times = times_shown(paths[0]) if len(paths) == 1 else None
        if times and len(times) == len(film.clip.even_frames):
            yield paths[0], fps, times
            return
        small = wish.out.with_name(f"{wish.out.name}.{recording}.part.mp4")
        small.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_small_film(film.clip, small, height=HEIGHT, hidden=film.hidden)
            yield small, fps, times_shown(small) or []
        finally:
            small.unlink(missing_ok=True)
