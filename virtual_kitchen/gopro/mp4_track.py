"""One track of an MP4: what was written of it, its sample tables and its box."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field

from virtual_kitchen.gopro.mp4_boxes import box, full

U32_LIMIT = 1 << 32


@dataclass
class TrackWriter:
    """One track's description and what was written of it so far."""

    track_id: int
    handler: bytes
    name: str
    timescale: int
    entry: bytes
    media_header: bytes
    width: int = 0
    height: int = 0
    volume: int = 0
    has_edit: bool = False
    timecode_track: int | None = None
    sizes: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    durations: list[int] = field(default_factory=list)
    sync: list[int] | None = None

    @property
    def duration(self) -> int:
        """Media duration in the track's time scale."""
        return sum(self.durations)


def sample_tables(
    entry: bytes, durations: list[int], sizes: list[int], offsets: list[int], sync: list[int] | None
) -> bytes:
    """Return stbl for samples that are each a chunk of their own; 64-bit offsets only when one needs them."""
    runs = [(len(list(group)), value) for value, group in itertools.groupby(durations)]
    is_large = bool(offsets) and offsets[-1] >= U32_LIMIT
    parts = [
        full(b"stsd", 0, struct.pack(">I", 1), entry),
        full(b"stts", 0, struct.pack(">I", len(runs)), *(struct.pack(">II", *run) for run in runs)),
        full(b"stsc", 0, struct.pack(">IIII", 1, 1, 1, 1)),
        full(b"stsz", 0, struct.pack(f">II{len(sizes)}I", 0, len(sizes), *sizes)),
        full(
            b"co64" if is_large else b"stco",
            0,
            struct.pack(f">I{len(offsets)}{'Q' if is_large else 'I'}", len(offsets), *offsets),
        ),
    ]
    if sync is not None:
        parts.append(full(b"stss", 0, struct.pack(f">I{len(sync)}I", len(sync), *sync)))
    return box(b"stbl", *parts)


def track_box(
    track: TrackWriter, created_1904_s: int, movie_duration: int, tables: bytes, matrix: bytes
) -> bytes:
    """Return trak: header, references, edit list, media."""
    times = struct.pack(">II", created_1904_s, created_1904_s)
    header = times + struct.pack(">IIII", track.track_id, 0, movie_duration, 0) + bytes(4)
    header += struct.pack(">HHHH", 0, 0, track.volume, 0) + matrix
    header += struct.pack(">II", track.width << 16, track.height << 16)
    parts = [full(b"tkhd", 15, header)]
    if track.timecode_track is not None:
        parts.append(box(b"tref", box(b"tmcd", struct.pack(">I", track.timecode_track))))
    if track.has_edit:
        edit = struct.pack(">IIiHH", 1, movie_duration, 0, 1, 0)
        parts.append(box(b"edts", full(b"elst", 0, edit)))
    parts.append(_media(track, times, tables))
    return box(b"trak", *parts)


def _media(track: TrackWriter, times: bytes, tables: bytes) -> bytes:
    name = track.name.encode("latin-1").ljust(11)
    handler = b"mhlr" + track.handler + bytes(12) + bytes([len(name)]) + name
    reference = full(b"dref", 0, struct.pack(">I", 1), full(b"alis", 1))
    return box(
        b"mdia",
        full(b"mdhd", 0, times, struct.pack(">IIHH", track.timescale, track.duration, 0, 0)),
        full(b"hdlr", 0, handler),
        box(b"minf", track.media_header, box(b"dinf", reference), tables),
    )
