"""Find and open the videos of a data set or of own recordings, and count their frames."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from kitchensync.dataset.source.data_set import GOPRO
from kitchensync.dataset.source.film_frames import FilmFrames
from kitchensync.dataset.source.source_data import SourceData
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
"""Table of capture times beside a video, in a lab's own release."""


@dataclass(frozen=True)
class OpenFilm:
    """An open video, and which of its frames are hidden, (n,); None if none is."""

    clip: Clip
    hidden: Mask | None = None


def frames_of_film(source: SourceData, recording: str, fps: Fraction) -> FilmFrames:
    """Return the frames of a video: from the recording, its table in the release, or its length at `fps`.

    Raises BadGraph if none of them is there.
    """
    if recording in source.own:
        with source.open_own(recording) as own:
            return FilmFrames(len(own.frames), own.frames.fps, own.hidden, own.frames.capture_ns)
    if (table := _path(source.folder, TIMES, recording)) is not None:
        return _read_frames(table)
    if recording not in source.data.lengths_s:
        raise BadGraph(VIDEOS, recording, "the length of its video is not known; add its line")
    return FilmFrames(int(Fraction(str(source.data.lengths_s[recording])) * fps), fps)


def _read_frames(table: Path) -> FilmFrames:
    try:
        with open_arrays(table) as arrays:
            return FilmFrames.of(arrays)
    except DAMAGED as error:
        raise BadGraph(
            table.name, "", f"is not a table of frames ({error}); release the data set again"
        ) from error


@contextmanager
def open_film(source: SourceData, recording: str) -> Iterator[OpenFilm | None]:
    """Open the video of a recording; None if the folder of the data set does not have it."""
    if recording in source.own:
        with source.open_own(recording) as own:
            yield OpenFilm(own.clip, own.hidden)
    elif (film := _path(source.folder, FILM, recording)) is not None:
        table = _path(source.folder, TIMES, recording)
        yield OpenFilm(Clip([open_media(film)]), _read_frames(table).hidden if table else None)
    else:
        yield None


def _path(folder: Path | None, place: str, recording: str) -> Path | None:
    """Return a file of a recording; None if it does not exist or the recording's name is a path."""
    try:
        path = folder / place.format(check_recording_id(recording)) if folder else None
    except BadName:
        return None
    return path if path is not None and path.is_file() else None
