"""The part of a camera's film that is destroyed: whole groups of pictures from key to key, and the sound beside them.

The samples are written over where they lie: nothing else of the file moves or is coded anew, and its times stay.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from kitchensync.sensors.array_types import Int64, Mask
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.files.sample_tables import ChapterFile, ChapterTrack, read_chapter
from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.recording import Recording
from kitchensync.storage.redact.redactions import PICTURES, SOUND

SILENCE = {1: bytes.fromhex("00c800802380"), 2: bytes.fromhex("211004608c1c")}
"""A block of AAC without sound, by channels."""

Runs = list[list[int]]
"""[first, last] numbers of samples."""


def hidden_samples(recording: Recording, file: Path) -> dict[str, Runs]:
    """Return which samples of a film are to be destroyed, by handler of the track; nothing where none is."""
    chapter, found = read_chapter(file), {}
    pictures_s = open_media(file).frame_times_s
    for handler, track in _tracks(chapter):
        tables = track.tables
        if handler == PICTURES:
            shown = hidden_in_film(recording, file, pictures_s)
            hidden = _whole_groups(_as_stored(shown, tables.shifts, tables.durations), tables.sync)
        else:
            starts_s = (np.cumsum(tables.durations) - tables.durations) / track.timescale
            ends_s = starts_s + tables.durations / track.timescale
            hidden = hidden_in_film(recording, file, starts_s) | hidden_in_film(recording, file, ends_s)
        if hidden.any():
            found[handler] = [[first, end - 1] for first, end in marked_runs(hidden)]
    return found


def _tracks(chapter: ChapterFile) -> list[tuple[str, ChapterTrack]]:
    return [(key.handler, track) for key, track in chapter.tracks.items() if key.handler in (PICTURES, SOUND)]


def _as_stored(shown: Mask, shifts: Int64 | None, durations: Int64) -> Mask:
    """Bring what is known of pictures in the order shown to the order in which they are stored."""
    if shifts is None or len(shown) != len(shifts):
        return shown
    stored = np.empty_like(shown)
    stored[np.argsort(np.cumsum(durations) - durations + shifts, kind="stable")] = shown
    return stored


def _whole_groups(hidden: Mask, keys: Int64 | None) -> Mask:
    """Widen to whole groups of pictures: what hangs on a destroyed picture goes, and what it hangs on."""
    if keys is None or not hidden.any():
        return hidden
    group = np.searchsorted(keys, np.arange(len(hidden)), side="right")
    wide: Mask = np.isin(group, np.unique(group[hidden]))
    return wide


def blank(file: Path, runs: dict[str, Runs]) -> None:
    """Write over the samples of a film: pictures by zeros, sound by silence. Doing it again changes nothing.

    Raises OSError, UnreadableMedia.
    """
    with file.open("r+b") as film:
        for handler, track in _tracks(read_chapter(file)):
            silence = SILENCE.get(_channels(track.description), b"") if handler == SOUND else b""
            for first, last in runs.get(handler, []):
                for number in range(first, last + 1):
                    size = int(track.tables.sizes[number])
                    content = silence if len(silence) <= size else b""
                    os.pwrite(film.fileno(), content.ljust(size, b"\0"), int(track.tables.offsets[number]))
        os.fsync(film.fileno())


def _channels(description: bytes) -> int:
    """Read the number of channels of `mp4a` (stsd: 8 bytes, an entry's 8, 8 reserved, 8 of version); 0 for others."""
    if description[12:16] != b"mp4a" or len(description) < 34:
        return 0
    return int.from_bytes(description[32:34], "big")
