"""The films of a data set or of own recordings: where they are, and how many pictures they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from kitchensync.dataset.source.data_set import GOPRO
from kitchensync.dataset.source.film_pictures import FilmOf
from kitchensync.dataset.source.given_data import GivenData
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.shell.array_types import Mask
from kitchensync.storage.errors import BadName
from kitchensync.storage.exports.arrays_file import DAMAGED, open_arrays
from kitchensync.storage.names import check_recording_id
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import VIDEOS

FILM = GOPRO.format("360p", "{}", "360p") + ".mp4"
TIMES = GOPRO.format("360p", "{}", "360p") + "_frames.npz"
"""When each picture was taken, as a lab's own release says it beside the film."""


@dataclass(frozen=True)
class OpenFilm:
    """A film to read, and which of its pictures are not to be seen, (n,); None where all are."""

    clip: Clip
    hidden: Mask | None = None


def film_of(found: GivenData, recording: str, fps: Fraction) -> FilmOf:
    """Return what is known of a film: from the recording, the release's own table, or its length at `fps`.

    Raises BadGraph where not even its length is known.
    """
    if recording in found.own:
        with found.open_own(recording) as own:
            return FilmOf(len(own.frames), own.frames.fps, own.hidden, own.frames.capture_ns)
    if (table := _path(found.folder, TIMES, recording)) is not None:
        return _told(table)
    if recording not in found.data.lengths_s:
        raise BadGraph(VIDEOS, recording, "the length of its film is not known; add its line")
    return FilmOf(int(Fraction(str(found.data.lengths_s[recording])) * fps), fps)


def _told(table: Path) -> FilmOf:
    try:
        with open_arrays(table) as arrays:
            return FilmOf.of(arrays)
    except DAMAGED as error:
        raise BadGraph(
            table.name, "", f"is no table of pictures ({error}); release the data set again"
        ) from error


@contextmanager
def open_film(found: GivenData, recording: str) -> Iterator[OpenFilm | None]:
    """Lend the film of a recording; None where the folder of the data set does not hold it."""
    if recording in found.own:
        with found.open_own(recording) as own:
            yield OpenFilm(own.clip, own.hidden)
    elif (film := _path(found.folder, FILM, recording)) is not None:
        table = _path(found.folder, TIMES, recording)
        yield OpenFilm(Clip([open_media(film)]), _told(table).hidden if table else None)
    else:
        yield None


def _path(folder: Path | None, place: str, recording: str) -> Path | None:
    """Return a file of a recording, None where it is not there; a name that is a path names no file."""
    try:
        path = folder / place.format(check_recording_id(recording)) if folder else None
    except BadName:
        return None
    return path if path is not None and path.is_file() else None
