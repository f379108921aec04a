"""A part of a film as a file: the samples outside of it are emptied, and every other keeps its number and its time.

So what counts the film's pictures, or goes by its seconds, holds for the part as it is.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kitchensync.sensors.gopro.mp4.join import Tracks, copy_range, file_type, write_moov
from kitchensync.sensors.gopro.mp4.sample_tables import (
    ChapterFile,
    ChapterTrack,
    SampleTables,
    TrackId,
    read_chapter,
)
from kitchensync.shell.array_types import Mask

NO_PICTURE = bytes(4)
NO_TELEMETRY = b"DEVC\x01\x01\x00\x00"
"""A device that says nothing, in GPMF."""
SILENCE = {1: bytes.fromhex("00c800802380"), 2: bytes.fromhex("211004608c1c")}
"""A block of AAC without sound, by channels."""


def write_part(chapter: ChapterFile, target: Path, stays: Mapping[TrackId, Mask]) -> None:
    """Write a film with the samples that stay, (n,) of each track; others are empty.

    Raises OSError, UnreadableMedia.
    """
    with chapter.path.open("rb") as source, target.open("xb") as out:
        out.write(file_type(chapter.path))
        header_at = out.tell()
        out.write(struct.pack(">I4sQ", 1, b"mdat", 0))
        tracks = _write_samples(chapter, stays, source, out)
        end_at = out.tell()
        out.seek(header_at + 8)
        out.write(struct.pack(">Q", end_at - header_at))
        out.seek(end_at)
        write_moov(chapter.moov, tracks, out)
        out.flush()
        os.fsync(out.fileno())


def pictures_of_part(path: Path) -> dict[str, Any]:
    """Return `pictures` and `seconds` of what `write_part` kept of a film. Raises UnreadableMedia."""
    for key, track in read_chapter(path).tracks.items():
        if key.handler == "vide":
            kept = track.tables.sizes > len(NO_PICTURE)
            seconds = float(track.tables.durations[kept].sum()) / track.timescale
            return {"pictures": int(kept.sum()), "seconds": round(seconds, 3)}
    return {}


def needed(tables: SampleTables, shown: Mask) -> Mask:
    """Return which pictures the decoder needs for those that are to be shown, (n,) in the order of the file.

    From the key picture before the first on; where pictures that hang on it are shown before it, from the key before.
    """
    needs = np.zeros_like(shown)
    if not shown.any():
        return needs
    first, last = np.flatnonzero(shown)[[0, -1]].tolist()
    keys = np.arange(len(shown)) if tables.sync is None else tables.sync
    at = max(int(np.searchsorted(keys, first, side="right")) - 1, 0)
    if tables.shifts is not None and at:
        shown_at = np.cumsum(tables.durations) - tables.durations + tables.shifts
        at -= int(shown_at[keys[at] : last + 1].min() < shown_at[keys[at]])
    needs[int(keys[at]) : last + 1] = True
    return needs


def silence_of(track: ChapterTrack) -> bytes:
    """Return a block without sound as it would stand in a track; nothing where nobody knows one."""
    return SILENCE.get(_channels(track.description), b"")


def _channels(description: bytes) -> int:
    """Read the number of channels of `mp4a` (stsd: 8 bytes, an entry's 8, 8 reserved, 8 of version); 0 for others."""
    if description[12:16] != b"mp4a" or len(description) < 34:
        return 0
    return int.from_bytes(description[32:34], "big")


def _empty(key: TrackId, track: ChapterTrack) -> bytes:
    return NO_TELEMETRY if key.format == "gpmd" else silence_of(track) or NO_PICTURE


def _write_samples(
    chapter: ChapterFile, stays: Mapping[TrackId, Mask], source: BinaryIO, out: BinaryIO
) -> Tracks:
    """Write one empty sample for each track, then those that stay in the order in which they lie in the film."""
    places = np.concatenate([
        np.stack([track.tables.offsets, track.tables.offsets + track.tables.sizes], axis=1)[stays[key]]
        for key, track in chapter.tracks.items()
    ])  # fmt: skip
    places = places[np.argsort(places[:, 0], kind="stable")]
    empty = {key: _empty(key, track) for key, track in chapter.tracks.items()}
    empty_at = {}
    for key, content in empty.items():
        empty_at[key] = out.tell()
        out.write(content)
    begins = np.flatnonzero(np.diff(places[:, 1], prepend=-1) != places[:, 1] - places[:, 0])
    starts, ends = places[begins, 0], places[np.append(begins[1:], len(places))[: len(begins)] - 1, 1]
    moved = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        moved.append(out.tell() - start)
        for _ in copy_range(source, out, start, end):
            pass
    for key, track in chapter.tracks.items():
        tables, kept = track.tables, stays[key]
        run = np.searchsorted(starts, tables.offsets[kept], side="right") - 1
        tables.offsets[kept] += np.array(moved, np.int64)[run]
        tables.offsets[~kept] = empty_at[key]
        tables.sizes = np.where(kept, tables.sizes, len(empty[key]))
    return {key: (track, track.tables) for key, track in chapter.tracks.items()}
