"""A part of a video as a file: samples outside of the part are emptied, the others keep their numbers and times.

So frame numbers and media times of the whole video are valid for the part.
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
"""A GPMF device without streams."""
SILENCE = {1: bytes.fromhex("00c800802380"), 2: bytes.fromhex("211004608c1c")}
"""A silent AAC frame, by number of channels."""


def write_part(chapter: ChapterFile, target: Path, stays: Mapping[TrackId, Mask]) -> None:
    """Write a video with the samples that stay, (n,) for each track; the others are empty.

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
    """Return `pictures` and `seconds`, the number and duration of the frames in a part. Raises UnreadableMedia."""
    for key, track in read_chapter(path).tracks.items():
        if key.handler == "vide":
            kept = track.tables.sizes > len(NO_PICTURE)
            seconds = float(track.tables.durations[kept].sum()) / track.timescale
            return {"pictures": int(kept.sum()), "seconds": round(seconds, 3)}
    return {}


def needed(tables: SampleTables, shown: Mask) -> Mask:
    """Return a mask of the frames that the decoder needs for the shown frames, (n,) in the order of the file.

    It begins at the key frame before the first shown frame, or at the previous key frame if dependent frames are
    shown before that one.
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
    """Return a silent sample for a sound track; empty if its format is not supported."""
    description = track.description
    if description[12:16] != b"mp4a" or len(description) < 34:
        return b""
    # stsd: 8 bytes, header of the entry 8, reserved 8, version 8, then the number of channels.
    return SILENCE.get(int.from_bytes(description[32:34], "big"), b"")


def _write_samples(
    chapter: ChapterFile, stays: Mapping[TrackId, Mask], source: BinaryIO, out: BinaryIO
) -> Tracks:
    """Write one empty sample for each track, then the samples that stay in the order of the original file."""
    places = np.concatenate([
        np.stack([track.tables.offsets, track.tables.offsets + track.tables.sizes], axis=1)[stays[key]]
        for key, track in chapter.tracks.items()
    ])  # fmt: skip
    places = places[np.argsort(places[:, 0], kind="stable")]
    empty, empty_at = {}, {}
    for key, track in chapter.tracks.items():
        empty[key] = NO_TELEMETRY if key.format == "gpmd" else silence_of(track) or NO_PICTURE
        empty_at[key] = out.tell()
        out.write(empty[key])
    # Neighbouring samples are copied together, as runs.
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
