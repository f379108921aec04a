"""Read and write the sample tables of an MP4 track: offset, size and duration of every sample.

ISO/IEC 14496-12, 8.6 and 8.7. Tables are checked against the file's length, so that damaged ones are reported.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kitchensync.sensors.errors import UnreadableMedia
from kitchensync.sensors.gopro.mp4.boxes import MAX_SAMPLES, Box, boxes, find, read_moov, top_boxes

U32_LIMIT = 1 << 32  # offsets from here on need `co64` instead of `stco`
PER_SAMPLE = {"stts", "ctts", "stsc", "stsz", "stco", "co64", "stss", "sdtp"}
DROPPED = {"sbgp", "sgpd", "stps", "padb", "subs", "saiz", "saio"}
"Optional tables of samples."


@dataclass
class SampleTables:
    """One track's samples in one file."""

    sizes: np.ndarray
    "(n,) int64 bytes."
    offsets: np.ndarray
    "(n,) int64 offsets in the file."
    durations: np.ndarray
    "(n,) int64 in the track's time scale."
    shifts: np.ndarray | None
    "(n,) int64 composition offsets (ctts); None if frames are shown in stored order."
    sync: np.ndarray | None
    "(k,) int64 numbers of the key samples, from 0; None: all are key samples."
    dependencies: bytes | None
    "sdtp: one byte per sample."

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.sizes)


class _Reader:
    """Reads the tables of one stbl; errors name the damaged box."""

    def __init__(self, path: Path, track: str, stbl: memoryview) -> None:
        self._path, self._track = path, track
        self._boxes = {box.kind: box for box in boxes(stbl)}

    def bad(self, kind: str, why: str) -> UnreadableMedia:
        return UnreadableMedia(self._path, f"box {kind} of track {self._track}: {why}")

    def has(self, kind: str) -> bool:
        return kind in self._boxes

    def rows(self, kind: str, columns: int, wide: bool = False) -> np.ndarray:
        """Read a u32 count and that number of rows of u32 (u64 if `wide`) after version and flags."""
        box: Box | None = self._boxes.get(kind)
        if box is None:
            raise self.bad(kind, "missing")
        if len(box.data) < 8:
            raise self.bad(kind, "cut short")
        count = struct.unpack_from(">I", box.data, 4)[0]
        width = 8 if wide else 4
        if count > MAX_SAMPLES or 8 + count * columns * width > len(box.data):
            raise self.bad(kind, f"claims {count} entries, has {len(box.data) - 8} bytes")
        values = np.frombuffer(box.data, ">u8" if wide else ">u4", count * columns, 8)
        return values.astype(np.int64).reshape(count, columns)

    def repeated(self, kind: str, count: int, *, signed: bool = False) -> np.ndarray:
        """Expand runs (count, value) to `count` values."""
        runs = self.rows(kind, 2)
        if runs[:, 0].sum() != count:
            raise self.bad(kind, f"covers {runs[:, 0].sum()} samples of {count}")
        values = runs[:, 1]
        if signed:
            values = values.astype(np.uint32).view(np.int32).astype(np.int64)
        return np.repeat(values, runs[:, 0])

    def sizes(self, file_bytes: int) -> np.ndarray:
        box = self._boxes.get("stsz")
        if box is None:
            raise self.bad("stsz", "missing")
        if len(box.data) < 12:
            raise self.bad("stsz", "cut short")
        same, count = struct.unpack_from(">II", box.data, 4)
        if count > MAX_SAMPLES or same * count > file_bytes or (not same and 12 + 4 * count > len(box.data)):
            raise self.bad("stsz", f"claims {count} sizes, has {len(box.data) - 12} bytes")
        if same:
            return np.full(count, same, np.int64)
        return np.frombuffer(box.data, ">u4", count, 12).astype(np.int64)

    def offsets(self, sizes: np.ndarray) -> np.ndarray:
        chunks = self.rows("co64", 1, wide=True) if self.has("co64") else self.rows("stco", 1)
        runs = self.rows("stsc", 3)
        if not len(sizes):
            return np.empty(0, np.int64)
        first = runs[:, 0] - 1
        if not len(runs) or first[0] != 0 or np.any(np.diff(first) <= 0) or first[-1] >= len(chunks):
            raise self.bad("stsc", "its chunks are not in order")
        lasting = np.diff(np.append(first, len(chunks)))
        per_chunk = np.repeat(runs[:, 1], lasting)
        if per_chunk.sum() != len(sizes):
            raise self.bad("stsc", f"covers {per_chunk.sum()} samples of {len(sizes)}")
        before = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        starts = np.concatenate([[0], np.cumsum(per_chunk)[:-1]])
        within = before - np.repeat(before[np.minimum(starts, len(before) - 1)], per_chunk)
        offsets: np.ndarray = np.repeat(chunks[:, 0], per_chunk) + within
        return offsets


def read_tables(path: Path, track: str, stbl: memoryview, file_bytes: int) -> SampleTables:
    """Read the tables of a track. Raises `UnreadableMedia` with the name of a missing or damaged box."""
    reader = _Reader(path, track, stbl)
    if reader.has("stz2"):
        raise reader.bad("stz2", "compact sizes are not supported")
    sizes = reader.sizes(file_bytes)
    offsets = reader.offsets(sizes)
    if len(sizes) and (offsets.min() < 0 or int((offsets + sizes).max()) > file_bytes):
        raise reader.bad("co64" if reader.has("co64") else "stco", "points past the end of the file")
    shifts = reader.repeated("ctts", len(sizes), signed=True) if reader.has("ctts") else None
    sync = reader.rows("stss", 1)[:, 0] - 1 if reader.has("stss") else None
    if sync is not None and len(sync) and (sync.min() < 0 or sync.max() >= len(sizes)):
        raise reader.bad("stss", "lists samples that do not exist")
    sdtp = find(stbl, "sdtp")
    flags = bytes(sdtp[4:]) if sdtp is not None and len(sdtp) == 4 + len(sizes) else None
    return SampleTables(sizes, offsets, reader.repeated("stts", len(sizes)), shifts, sync, flags)


def concatenate(parts: list[SampleTables]) -> SampleTables:
    """Concatenate the samples of one track in several files; offsets are not changed."""
    begins = np.cumsum([0, *(len(part) for part in parts)])
    shifts = None
    if any(part.shifts is not None for part in parts):
        all_shifts = [np.zeros(len(part), np.int64) if part.shifts is None else part.shifts for part in parts]
        shifts = np.concatenate(all_shifts)
    sync = None
    if any(part.sync is not None for part in parts):
        keys = [np.arange(len(part)) if part.sync is None else part.sync for part in parts]
        sync = np.concatenate([begin + numbers for begin, numbers in zip(begins[:-1], keys, strict=True)])
    flags = [part.dependencies for part in parts]
    return SampleTables(
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate([part.durations for part in parts]),
        shifts,
        sync,
        b"".join(flag for flag in flags if flag is not None) if None not in flags else None,
    )


def box(kind: str, *parts: bytes | memoryview) -> bytes:
    """Encode a box."""
    return struct.pack(">I4s", 8 + sum(map(len, parts)), kind.encode("latin-1")) + b"".join(parts)


def write_tables(stbl: memoryview, tables: SampleTables) -> bytes:
    """Encode stbl with new tables of samples and unchanged descriptions; neighbouring samples form a chunk."""
    kept = [box(part.kind, part.data) for part in boxes(stbl) if part.kind not in PER_SAMPLE | DROPPED]
    chunk_starts, per_chunk = _chunks(tables)
    wide = len(tables) > 0 and int(tables.offsets.max()) >= U32_LIMIT
    places = tables.offsets[chunk_starts].astype(">u8" if wide else ">u4")
    changes = np.flatnonzero(np.diff(per_chunk, prepend=-1))
    layout = np.stack([changes + 1, per_chunk[changes], np.ones(len(changes), np.int64)], axis=1)
    written = [
        _rows("stts", _runs(tables.durations)),
        _rows("stsc", layout),
        box("stsz", struct.pack(">III", 0, 0, len(tables)), tables.sizes.astype(">u4").tobytes()),
        box("co64" if wide else "stco", struct.pack(">II", 0, len(places)), places.tobytes()),
    ]
    if tables.shifts is not None:
        signed = bool((tables.shifts < 0).any())
        written.append(_rows("ctts", _runs(tables.shifts), version=int(signed)))
    if tables.sync is not None:
        written.append(_rows("stss", tables.sync[:, None] + 1))
    if tables.dependencies is not None:
        written.append(box("sdtp", bytes(4), tables.dependencies))
    return box("stbl", *kept, *written)


def _chunks(tables: SampleTables) -> tuple[np.ndarray, np.ndarray]:
    """Return start and length of chunks; a new one begins where a sample does not directly follow its predecessor."""
    if not len(tables):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ends = tables.offsets[:-1] + tables.sizes[:-1]
    starts = np.concatenate([[0], np.flatnonzero(tables.offsets[1:] != ends) + 1])
    return starts, np.diff(np.append(starts, len(tables)))


def _runs(values: np.ndarray) -> np.ndarray:
    """Return runs (count, value)."""
    if not len(values):
        return np.empty((0, 2), np.int64)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1])
    return np.stack([np.diff(np.append(starts, len(values))), values[starts]], axis=1)


def _rows(kind: str, rows: np.ndarray, version: int = 0) -> bytes:
    data = (rows & 0xFFFFFFFF).astype(">u4").tobytes()
    return box(kind, struct.pack(">BxxxI", version, len(rows)), data)


class TrackId(NamedTuple):
    """Identity of a track in all chapters."""

    handler: str
    format: str
    nth: int


@dataclass
class ChapterTrack:
    """One track of one chapter."""

    number: int
    "Position in moov, from 1."
    timescale: int
    description: bytes
    tables: SampleTables


@dataclass
class ChapterFile:
    """One chapter: its tracks and its data boxes."""

    path: Path
    moov: memoryview
    tracks: dict[TrackId, ChapterTrack]
    data: list[tuple[int, int]] = field(default_factory=list)
    "(first byte, end) of each mdat."


def read_chapter(path: Path) -> ChapterFile:
    """Read the tracks of a file. Raises `UnreadableMedia` with the name of a damaged box."""
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
        tables = track.tables
        inside = np.zeros(len(tables), bool)
        for start, end in data:
            inside |= (tables.offsets >= start) & (tables.offsets + tables.sizes <= end)
        if not inside.all():
            raise UnreadableMedia(path, f"box stco of track {number}: samples are outside of mdat")
    if not chapter.tracks:
        raise UnreadableMedia(path, "box moov: no tracks")
    return chapter


def _read_track(path: Path, number: int, trak: memoryview, file_bytes: int) -> tuple[TrackId, ChapterTrack]:
    def need(*kinds: str) -> memoryview:
        contents = find(trak, *kinds)
        if contents is None:
            raise UnreadableMedia(path, f"box {kinds[-1]} of track {number}: missing or cut short")
        return contents

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
