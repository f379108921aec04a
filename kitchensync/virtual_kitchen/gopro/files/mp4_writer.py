"""Write an MP4 as a GoPro lays it out: ftyp, a growing mdat, and moov at the end.

Samples are written as they come; only their sizes and offsets stay in memory. Box contents follow a HERO-class
file: brand mp41, time scale 90000, QuickTime handlers with counted names, tracks video, sound, timecode, metadata.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

U32_LIMIT = 1 << 32  # stco has 32-bit offsets, beyond it is co64


@dataclass
class TrackWriter:
    """The description of one track and its samples so far."""

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
    """Return stbl with one sample per chunk; 64-bit offsets only if needed."""
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


def box(kind: bytes, *parts: bytes) -> bytes:
    """Return a box with its 32-bit size."""
    return struct.pack(">I4s", 8 + sum(map(len, parts)), kind) + b"".join(parts)


def full(kind: bytes, flags: int, *parts: bytes) -> bytes:
    """Return a box that begins with version 0 and 24 bits of flags."""
    return box(kind, struct.pack(">I", flags), *parts)


VIDEO_HEADER = full(b"vmhd", 1, bytes(8))
SOUND_HEADER = full(b"smhd", 0, bytes(4))
METADATA_HEADER = box(b"gmhd", full(b"gmin", 0, bytes(12)), full(b"gpmd", 0))
GPMF_ENTRY = box(b"gpmd", bytes(6), struct.pack(">HI", 1, 0))
"""Sample description of a GPMF track."""


def timecode_header() -> bytes:
    """Return gmhd of a timecode track: white Helvetica of ten points."""
    info = struct.pack(">HHHH", 21, 0, 10, 0) + bytes(6) + b"\xff" * 6 + b"\x09Helvetica"
    mode = struct.pack(">HHHHHH", 0x40, 0x8000, 0x8000, 0x8000, 0, 0)
    return box(b"gmhd", full(b"gmin", 0, mode), box(b"tmcd", full(b"tcmi", 1, info)))


def video_entry(codec: bytes, width: int, height: int, compressor: str, configuration: bytes) -> bytes:
    """Return the sample description hvc1 or avc1 with its configuration box (hvcC or avcC)."""
    name = compressor.encode("latin-1")
    body = bytes(6) + struct.pack(">H", 1) + bytes(16) + struct.pack(">HH", width, height)
    body += struct.pack(">IIIH", 0x480000, 0x480000, 0, 1)
    body += bytes([len(name)]) + name.ljust(31, b"\0") + struct.pack(">Hh", 24, -1)
    return box(codec, body, box(b"hvcC" if codec == b"hvc1" else b"avcC", configuration))


def aac_entry(channels: int, rate_hz: int, bits_per_s: int, configuration: bytes) -> bytes:
    """Return the sample description mp4a with an elementary stream descriptor."""
    specific = _descriptor(5, configuration)
    decoder = _descriptor(
        4, bytes([0x40, 0x15, 0, 0x20, 0]), struct.pack(">II", bits_per_s, bits_per_s), specific
    )
    stream = _descriptor(3, struct.pack(">HB", 0, 0), decoder, _descriptor(6, b"\x02"))
    body = (
        bytes(6) + struct.pack(">H", 1) + bytes(8) + struct.pack(">HHhHI", channels, 16, 0, 0, rate_hz << 16)
    )
    return box(b"mp4a", body, full(b"esds", 0, stream))


def _descriptor(tag: int, *parts: bytes) -> bytes:
    data = b"".join(parts)
    return bytes([tag, 0x80, 0x80, 0x80, len(data)]) + data


def timecode_entry(timescale: int, frame_duration: int, frames_per_s: int, *, is_drop_frame: bool) -> bytes:
    """Return the sample description tmcd: 24-hour wrap, frames counted since midnight."""
    flags = 3 if is_drop_frame else 2
    body = bytes(6) + struct.pack(">HIIIIBB", 1, 0, flags, timescale, frame_duration, frames_per_s, 0)
    return box(b"tmcd", body)


MOVIE_TIMESCALE = 90000  # of mvhd in real GoPro files
UNIX_TO_1904_S = 2082844800  # times in MP4 count from 1904
MDAT_HEADER_BYTES = 16  # always the 64-bit form, as chunk offsets depend on it before the size is known


class Mp4Writer:
    """Append samples of several tracks to a file and close it with the moov box."""

    def __init__(self, path: Path, *, leading: bytes = b"", hole_bytes: int = 0) -> None:
        """Start the file; `leading` comes first in mdat (a camera puts a block of ids there).

        `hole_bytes` empty bytes come before mdat, in a free box: a large file that takes no space on the disk.
        """
        self._file: BinaryIO = path.open("wb")
        self._file.write(box(b"ftyp", b"mp41", struct.pack(">I", 0x20131018), b"mp41"))
        if hole_bytes:
            self._file.write(struct.pack(">I4sQ", 1, b"free", MDAT_HEADER_BYTES + hole_bytes))
            self._file.seek(hole_bytes, 1)
        self._mdat_start = self._file.tell()
        self._file.write(struct.pack(">I4sQ", 1, b"mdat", MDAT_HEADER_BYTES))
        self._file.write(leading)
        self.tracks: list[TrackWriter] = []

    @property
    def written_bytes(self) -> int:
        """Bytes of the file so far."""
        return self._file.tell()

    def add_track(self, track: TrackWriter) -> TrackWriter:
        """Register a track; the order of the calls is the order in moov."""
        self.tracks.append(track)
        return track

    def write_sample(self, track: TrackWriter, data: bytes, duration: int, *, is_sync: bool = True) -> None:
        """Append one sample as a separate chunk; `duration` is in the track's time scale."""
        track.offsets.append(self._file.tell())
        track.sizes.append(len(data))
        track.durations.append(duration)
        if track.sync is not None and is_sync:
            track.sync.append(len(track.sizes))
        self._file.write(data)

    def finish(self, *, created_utc_s: int, user_data: bytes) -> int:
        """Patch mdat's size, write moov and close; return the file's bytes."""
        end = self._file.tell()
        self._file.write(self._movie(created_utc_s + UNIX_TO_1904_S, user_data))
        total = self._file.tell()
        self._file.seek(self._mdat_start + 8)
        self._file.write(struct.pack(">Q", end - self._mdat_start))
        self._file.close()
        return total

    def abandon(self) -> None:
        """Close without moov, as after a power loss."""
        self._file.close()

    def _movie(self, created_1904_s: int, user_data: bytes) -> bytes:
        longest = max(_movie_time(track) for track in self.tracks)
        head = struct.pack(">IIII", created_1904_s, created_1904_s, MOVIE_TIMESCALE, longest)
        rest = struct.pack(">IHH8x", 0x10000, 0x100, 0) + _unit_matrix() + bytes(24)
        rest += struct.pack(">I", len(self.tracks) + 1)
        object_descriptor = bytes.fromhex("10808080 07004fff ff0000ff")
        return box(
            b"moov",
            full(b"mvhd", 0, head, rest),
            box(b"udta", user_data),
            full(b"iods", 0, object_descriptor),
            *(self._track(track, created_1904_s) for track in self.tracks),
        )

    def _track(self, track: TrackWriter, created_1904_s: int) -> bytes:
        tables = sample_tables(track.entry, track.durations, track.sizes, track.offsets, track.sync)
        return track_box(track, created_1904_s, _movie_time(track), tables, _unit_matrix())


def _movie_time(track: TrackWriter) -> int:
    return track.duration * MOVIE_TIMESCALE // track.timescale


def _unit_matrix() -> bytes:
    return struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
