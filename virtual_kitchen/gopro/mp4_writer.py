"""Write an MP4 as a GoPro lays it out: ftyp, a growing mdat, and moov at the end.

Samples go to the disk as they come; only their sizes and places stay in memory. Box contents follow a HERO-class
file: brand mp41, time scale 90000, QuickTime handlers with counted names, tracks video, sound, timecode, metadata.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from virtual_kitchen.gopro.mp4_boxes import box, full
from virtual_kitchen.gopro.mp4_track import TrackWriter, sample_tables, track_box

MOVIE_TIMESCALE = 90000
UNIX_TO_1904_S = 2082844800
MDAT_HEADER_BYTES = 16


class Mp4Writer:
    """Append samples of several tracks to a file and close it with the moov box."""

    def __init__(self, path: Path, *, leading: bytes = b"", hole_bytes: int = 0) -> None:
        """Start the file; leading is written first into mdat (a camera puts a block of ids there).

        hole_bytes of nothing come before mdat, in a free box: a large file that needs no room on the disk.
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
        """Append one sample, a chunk of its own, lasting duration in the track's time scale."""
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
        """Close without moov, as a camera that lost its power leaves the file."""
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
