"""Films that stop where an example ends, and a picture a second of each, up to its last one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from kitchensync.dataset.promqa.questions import PromqaExample, seconds_of
from kitchensync.dataset.source.given_films import open_film
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

    from kitchensync.dataset.source.given_data import GivenData
HEIGHT = 360


@dataclass(frozen=True)
class PrefixWish:
    """What is written beside the list: whether films, whether pictures, and over what is there.

    `small_film` gives the small film of an own recording, None where it is not made yet.
    """

    out: Path
    clips: bool
    frames: bool
    force: bool
    small_film: Callable[[Path], Path | None]

    @property
    def pictures(self) -> Path:
        """The folder of pictures."""
        return self.out.with_suffix(".frames")


class _OfPrefix(TypedDict, total=False):
    clip_frames: int
    last_frame_s: float
    clip: str
    frames: list[str]


def picture_name(recording: str, number: int) -> str:
    """Name a picture of a film; clips that show it share it."""
    return f"{recording}/{number:06d}.jpg"


def write_prefixes(found: GivenData, recording: str, rows: Iterable[PromqaExample], wish: PrefixWish) -> bool:
    """Write what is wished of one recording, and name it in its rows; False where its film is not here.

    A row gets `clip`, `clip_frames`, `last_frame_s` and `frames`. Raises OutputRefused, UnreadableMedia.
    """
    if wish.clips:
        may_write(wish.out.with_suffix(".clips"))
    with _to_cut(found, recording, wish) as cut:
        if cut is None:
            return False
        film, fps, times = cut
        by_end: dict[int, _OfPrefix] = {}
        wanted: set[int] = set()
        for row in rows:
            end_s = seconds_of(row["end_time"])
            if end_s not in by_end:
                pictures = min(len(times), max(1, ceil(end_s * fps)))
                said: _OfPrefix = {
                    "clip_frames": pictures,
                    "last_frame_s": round(float((pictures - 1) / fps), 4),
                }
                if wish.clips:
                    clip = wish.out.with_suffix(".clips") / f"{recording}_{end_s}.mp4"
                    if wish.force or not clip.exists() or count_pictures(clip) != pictures:
                        with written(clip, force=wish.force, ending=".mp4") as part:
                            write_beginning(film, part, times, pictures)
                    said["clip"] = f"{clip.parent.name}/{clip.name}"
                if wish.frames:
                    numbers = each_second(fps, pictures)
                    said["frames"] = [
                        f"{wish.pictures.name}/{picture_name(recording, number)}" for number in numbers
                    ]
                    wanted.update(numbers)
                by_end[end_s] = said
            row.update(by_end[end_s])
        for number, content in numbered_jpegs(film, wanted):
            write_into(wish.pictures, {picture_name(recording, number): content}, force=wish.force)
    return True


@contextmanager
def _to_cut(
    found: GivenData, recording: str, wish: PrefixWish
) -> Iterator[tuple[Path, Fraction, list[Fraction]] | None]:
    """Lend a film whose pictures stand in order, its rate and their times; one is made where there is none."""
    with open_film(found, recording) as film:
        if film is None:
            yield None
            return
        fps = film.clip.rate
        if recording in found.own:
            made = wish.small_film(found.own[recording].path)
            paths = [made] if made else []
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
