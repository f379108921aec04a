"""The films of ProMQA's examples: each stopped where its example ends, and one picture a second of it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipe_app.releases.given_films import open_film
from storage.exports.clips import can_be_cut, count_pictures, pictures_each_second, write_beginning
from storage.exports.film import rate_of, write_small_film
from storage.shell.outputs import write_into, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from recipe_app.releases.given_data import GivenData

HEIGHT = 360


@dataclass(frozen=True)
class PrefixWish:
    """What is written beside the list: whether films, whether pictures, and over what is there."""

    out: Path
    clips: bool
    frames: bool
    force: bool


def write_prefixes(
    found: GivenData, recording: str, rows: Iterable[dict[str, Any]], wish: PrefixWish
) -> bool:
    """Write what is wished of one recording, and name it in its rows; False where its film is not here.

    A row gets `clip`, `clip_frames`, `last_frame_s` and `frames`. Raises CannotWrite, UnreadableMedia.
    """
    with _to_cut(found, recording, wish) as cut:
        if cut is None:
            return False
        film, fps, count = cut
        by_end: dict[int, dict[str, Any]] = {}
        for row in rows:
            end_s = seconds_of(row["end_time"])
            if end_s not in by_end:
                by_end[end_s] = _write(
                    film, fps, min(count, max(1, ceil(end_s * fps))), f"{recording}_{end_s}", wish
                )
            row |= by_end[end_s]
    return True


def seconds_of(end_time: str) -> int:
    """Return hh:mm:ss as seconds."""
    hours, minutes, seconds = map(int, end_time.split(":"))
    return hours * 3600 + minutes * 60 + seconds


@contextmanager
def _to_cut(
    found: GivenData, recording: str, wish: PrefixWish
) -> Iterator[tuple[Path, Fraction, int] | None]:
    """Lend a film whose pictures stand in order, its rate, and how many it has; one is made where there is none."""
    with open_film(found, recording) as film:
        if film is None:
            yield None
            return
        fps, paths = rate_of(film.take), [chapter.path for chapter in film.take.chapters]
        count = len(film.take.frame_times_s)
        if recording not in found.own and len(paths) == 1 and can_be_cut(paths[0]):
            yield paths[0], fps, count
            return
        small = wish.out.with_name(f"{wish.out.name}.{recording}.part.mp4")
        try:
            write_small_film(film.take, small, height=HEIGHT, hidden=film.hidden)
            yield small, fps, count
        finally:
            small.unlink(missing_ok=True)


def _write(film: Path, fps: Fraction, pictures: int, name: str, wish: PrefixWish) -> dict[str, Any]:
    said: dict[str, Any] = {"clip_frames": pictures, "last_frame_s": round(float((pictures - 1) / fps), 4)}
    if wish.clips:
        clip = wish.out.with_suffix(".clips") / f"{name}.mp4"
        if wish.force or not clip.exists() or count_pictures(clip) != pictures:
            with written(clip, force=wish.force, ending=".mp4") as part:
                write_beginning(film, part, pictures)
        said["clip"] = f"{clip.parent.name}/{clip.name}"
    if wish.frames:
        folder = wish.out.with_suffix(".frames")
        said["frames"] = []
        for number, content in pictures_each_second(film, fps, pictures):
            path = f"{name}/{number:06d}.jpg"
            write_into(folder, {path: content}, force=wish.force)
            said["frames"].append(f"{folder.name}/{path}")
    return said
