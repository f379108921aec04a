"""Where everything of one camera file lies: its tracks, their samples, its data; damage is named by its box."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sensors.errors import UnreadableMedia
from sensors.gopro.boxes import boxes, find, read_moov, top_boxes
from sensors.gopro.sample_tables import SampleTables, read_tables


class TrackId(NamedTuple):
    """What makes a track the same in every chapter."""

    handler: str
    format: str
    nth: int


@dataclass
class ChapterTrack:
    """One track of one chapter."""

    number: int
    "Place in moov, from 1."
    timescale: int
    description: bytes
    tables: SampleTables


@dataclass
class ChapterFile:
    """One chapter: its tracks, and where its data lie."""

    path: Path
    moov: memoryview
    tracks: dict[TrackId, ChapterTrack]
    data: list[tuple[int, int]] = field(default_factory=list)
    "(first byte, end) of each mdat."


def read_chapter(path: Path) -> ChapterFile:
    """Read where everything of a file lies; `UnreadableMedia` names the box that is wrong."""
    try:
        moov, file_bytes = read_moov(path), path.stat().st_size
        with path.open("rb") as file:
            data = [(top.start, top.end) for top in top_boxes(file, file_bytes) if top.kind == "mdat"]
    except OSError as error:
        raise UnreadableMedia(path, (error.strerror or str(error)).lower()) from error
    chapter = ChapterFile(path, moov, {}, data)
    for number, entry in enumerate((b for b in boxes(moov) if b.kind == "trak"), 1):
        key, track = _read_track(path, number, entry.data, file_bytes)
        same = sum(other.handler == key.handler and other.format == key.format for other in chapter.tracks)
        chapter.tracks[key._replace(nth=same)] = track
        _check_inside(chapter, number, track.tables)
    if not chapter.tracks:
        raise UnreadableMedia(path, "box moov: no tracks")
    return chapter


def _read_track(path: Path, number: int, trak: memoryview, file_bytes: int) -> tuple[TrackId, ChapterTrack]:
    def need(*kinds: str) -> memoryview:
        found = find(trak, *kinds)
        if found is None:
            raise UnreadableMedia(path, f"box {kinds[-1]} of track {number}: missing or cut short")
        return found

    handler, header, stbl = need("mdia", "hdlr"), need("mdia", "mdhd"), need("mdia", "minf", "stbl")
    description = need("mdia", "minf", "stbl", "stsd")
    at = 20 if len(header) and header[0] == 1 else 12
    if len(header) < at + 8 or len(handler) < 12 or len(description) < 16:
        raise UnreadableMedia(path, f"box mdhd, hdlr or stsd of track {number}: cut short")
    timescale = struct.unpack_from(">I", header, at)[0]
    if not timescale:
        raise UnreadableMedia(path, f"box mdhd of track {number}: no time scale")
    key = TrackId(bytes(handler[8:12]).decode("latin-1"), bytes(description[12:16]).decode("latin-1"), 0)
    tables = read_tables(path, str(number), stbl, file_bytes)
    return key, ChapterTrack(number, timescale, bytes(description), tables)


def _check_inside(chapter: ChapterFile, number: int, tables: SampleTables) -> None:
    """Every sample must lie in one of the data boxes."""
    inside = np.zeros(len(tables), bool)
    for start, end in chapter.data:
        inside |= (tables.offsets >= start) & (tables.offsets + tables.sizes <= end)
    if not inside.all():
        raise UnreadableMedia(chapter.path, f"box stco of track {number}: samples lie outside of mdat")
