"""The part of a camera's film that is destroyed: whole groups of pictures from key to key, and the sound beside them.

The samples are written over where they lie: nothing else of the file moves or is coded anew, and its times stay.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.film_part import silence_of
from kitchensync.sensors.gopro.mp4.sample_tables import ChapterFile, ChapterTrack, TrackId, read_chapter
from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.shell.array_types import Mask
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.recording import Recording
from kitchensync.storage.redact.redactions import PICTURES, SOUND, in_runs

Runs = list[list[int]]
"""[first, last] numbers of samples."""


def hidden_samples(recording: Recording, file: Path) -> dict[str, Runs]:
    """Return which samples of a film are to be destroyed, by handler of the track; nothing where none is."""
    hidden = hidden_of_tracks(recording, read_chapter(file))
    return {key.handler: runs_of(mask) for key, mask in hidden.items() if mask.any()}


def hidden_of_tracks(recording: Recording, chapter: ChapterFile) -> dict[TrackId, Mask]:
    """Return which samples of pictures and sound may show something of a pause, (n,) of each track."""
    found = {}
    for key, track in chapter.tracks.items():
        if key.handler == SOUND:
            found[key] = hidden_by_time(recording, chapter.path, track)
        elif key.handler == PICTURES:
            hidden, keys = hidden_pictures(recording, chapter.path, track), track.tables.sync
            if keys is not None and hidden.any():
                # what hangs on a destroyed picture goes, and what it hangs on
                group = np.searchsorted(keys, np.arange(len(hidden)), side="right")
                hidden = np.isin(group, np.unique(group[hidden]))
            found[key] = hidden
    return found


def hidden_pictures(recording: Recording, file: Path, track: ChapterTrack) -> Mask:
    """Return which pictures may show something of a pause, (n,) in the order in which they are stored."""
    shown = hidden_in_film(recording, file, open_media(file).frame_times_s)
    shifts, durations = track.tables.shifts, track.tables.durations
    if shifts is None or len(shown) != len(shifts):
        return shown
    stored = np.empty_like(shown)
    stored[np.argsort(np.cumsum(durations) - durations + shifts, kind="stable")] = shown
    return stored


def hidden_by_time(recording: Recording, file: Path, track: ChapterTrack) -> Mask:
    """Return which samples of a track may begin or end in a pause, (n,)."""
    later_s = float(open_media(file).later_s(track.description[12:16].decode("latin-1")))
    ends = np.cumsum(track.tables.durations)
    starts_s = (ends - track.tables.durations) / track.timescale + later_s
    ends_s = ends / track.timescale + later_s
    return hidden_in_film(recording, file, starts_s) | hidden_in_film(recording, file, ends_s)


def runs_of(marked: Mask) -> Runs:
    """Return [first, last] of each run of samples."""
    return [[first, end - 1] for first, end in marked_runs(marked)]


def blank(file: Path, runs: dict[str, Runs]) -> None:
    """Write zeros over pictures and silence over sound; again changes nothing. Raises OSError, UnreadableMedia."""
    with file.open("r+b") as film:
        for key, track in read_chapter(file).tracks.items():
            if key.handler not in (PICTURES, SOUND):
                continue
            silence = silence_of(track) if key.handler == SOUND else b""
            gone = in_runs(runs.get(key.handler, []), len(track.tables.sizes))
            for number in np.flatnonzero(gone):
                size = int(track.tables.sizes[number])
                content = silence if len(silence) <= size else b""
                os.pwrite(film.fileno(), content.ljust(size, b"\0"), int(track.tables.offsets[number]))
        os.fsync(film.fileno())
