"""MP4 boxes that libav does not expose: time code, the camera's header, edit lists, rotation, time scales.

ISO 14496-12: a box is u32 size, 4 letters, contents; size 1 = u64 size follows, 0 = to the end.
"""

from __future__ import annotations

import errno
import math
import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kitchensync.sensors.errors import UnreadableMedia
from kitchensync.shell.files_on_disk import open_file

MAX_MOOV_BYTES = 256 * 1024 * 1024  # `moov` is read into memory as a whole
MAX_TOP_BOXES = 10_000  # a hostile file may be nothing but empty boxes of 8 bytes
MAX_FRAGMENTS = 1_000_000  # a fragmented file has a `moof` and an `mdat` for each fragment
MAX_SAMPLES = 3_000_000
"""Largest number of samples of a video: 28 hours at 30 frames per second."""
CONTAINERS = {"moov", "trak", "mdia", "minf", "stbl", "moof", "traf", "udta"}
COUNTED = {"stts", "ctts", "stsc", "stco", "co64", "stss"}
"""Tables with version and flags, a count, and that number of rows of four bytes or more."""


class Box(NamedTuple):
    """One box inside `moov`."""

    kind: str
    data: memoryview


class Track(NamedTuple):
    """The description of one track in `moov`."""

    track_id: int
    format: str
    "Sample description, e.g. avc1, mp4a, tmcd, gpmd."
    description: memoryview
    "The first sample description, after its 8-byte header."
    reorders: bool
    "True if frames are shown in another order than stored (ctts)."
    timescale: int
    "Units of `EditPart.media_time` per second."
    edits: tuple[EditPart, ...]
    "The edit list; empty without one."
    table: memoryview
    "Its sample tables (stbl)."
    clockwise_deg: int
    "Rotation that players apply, from the matrix of the track header."


class EditPart(NamedTuple):
    """One entry of an edit list."""

    duration: int
    "In units of the movie's time scale."
    media_time: int
    "Start of the shown part, in the track's time scale; -1: nothing is shown for `duration`."


class TopBox(NamedTuple):
    """One box at the top of a file."""

    kind: str
    start: int
    "First byte of its contents."
    end: int


def top_boxes(file: BinaryIO, file_bytes: int, most: int = MAX_TOP_BOXES) -> Iterator[TopBox]:
    """List the boxes at the top of a file by reading only their headers; stop at a box that does not fit."""
    at = 0
    for _ in range(most):
        file.seek(at)
        header = file.read(16)
        if len(header) < 8:
            return
        size, kind = struct.unpack_from(">I4s", header)
        start = at + 8
        if size == 1:
            if len(header) < 16:
                return
            size, start = struct.unpack_from(">Q", header, 8)[0], at + 16
        elif size == 0:
            size = file_bytes - at
        if at + size < start or at + size > file_bytes:
            return
        yield TopBox(kind.decode("latin-1"), start, at + size)
        at += size


def has_moov(path: Path) -> bool:
    """Return whether an MP4 is finished, which means that its index (`moov`) is complete."""
    with open_file(path) as file:
        return any(box.kind == "moov" for box in top_boxes(file, path.stat().st_size))


def looks_like_mp4(path: Path) -> bool:
    """Return whether a file begins like an MP4."""
    with open_file(path) as file:
        return file.read(8)[4:] in (b"ftyp", b"moov", b"mdat", b"free", b"wide", b"skip")


def read_moov(path: Path) -> memoryview:
    """Read the contents of `moov`. Raises `UnreadableMedia` if it is missing or too large."""
    with open_file(path) as file:
        for box in top_boxes(file, path.stat().st_size):
            if box.kind == "moov":
                if box.end - box.start > MAX_MOOV_BYTES:
                    raise UnreadableMedia(path, f"its index claims {box.end - box.start} bytes")
                file.seek(box.start)
                return memoryview(file.read(box.end - box.start))
    raise UnreadableMedia(
        path, "no index (moov): the recording was cut short or the copy is incomplete; copy it again"
    )


def check_counts(path: Path) -> None:
    """Check that an MP4 does not claim too many samples: libav allocates memory for each. Raises OSError."""
    samples = 0
    with open_file(path) as file:
        for top in top_boxes(file, path.stat().st_size, MAX_FRAGMENTS):
            if top.kind in CONTAINERS:
                file.seek(top.start)
                data = memoryview(file.read(min(top.end - top.start, MAX_MOOV_BYTES)))
                for table in _tables(data):
                    samples += _samples_of(table, path)
    if samples > MAX_SAMPLES:
        why = f"its index claims {samples} samples, the limit is {MAX_SAMPLES}"
        raise OSError(errno.EINVAL, why, str(path))


def _tables(data: memoryview, depth: int = 0) -> Iterator[list[Box]]:
    """Yield for each container its boxes that are not containers."""
    inner = list(boxes(data))
    yield [box for box in inner if box.kind not in CONTAINERS]
    for box in inner:
        if box.kind in CONTAINERS and depth < len(CONTAINERS):
            yield from _tables(box.data, depth + 1)


def _samples_of(table: list[Box], path: Path) -> int:
    """Count the samples that libav allocates; for uncompressed sound it allocates chunks. Raises OSError."""
    count, is_coded = 0, True
    for kind, data in table:
        _, first, second = struct.unpack_from(">III", bytes(data[:12]).ljust(12, b"\0"))
        rows = first if kind in COUNTED else second if kind == "stsz" and not first else 0
        if rows > max(MAX_SAMPLES, len(data)):
            raise OSError(
                errno.EINVAL, f"box {kind}: claims {rows} entries, more than it has bytes", str(path)
            )
        if kind == "stsz":
            count = second
        elif kind == "trun":
            count += first
        elif kind == "stts":
            is_coded = first != 1 or bytes(data[12:16]) != b"\0\0\0\1"
    return count if is_coded else 0


def boxes(data: memoryview) -> Iterator[Box]:
    """List the boxes inside a box; stop at a box that does not fit."""
    at = 0
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        start = 8
        if size == 1 and at + 16 <= len(data):
            size, start = struct.unpack_from(">Q", data, at + 8)[0], 16
        elif size == 0:
            size = len(data) - at
        if size < start or at + size > len(data):
            return
        yield Box(kind.decode("latin-1"), data[at + start : at + size])
        at += size


def find(data: memoryview, *path: str) -> memoryview | None:
    """Return the contents of the first box along a path of kinds, None if it is missing."""
    for kind in path:
        inner = next((box.data for box in boxes(data) if box.kind == kind), None)
        if inner is None:
            return None
        data = inner
    return data


def tracks(moov: memoryview) -> list[Track]:
    """Return the tracks that have a header and a sample description."""
    described = (_track(box.data) for box in boxes(moov) if box.kind == "trak")
    return [track for track in described if track is not None]


def _track(trak: memoryview) -> Track | None:
    header, table = find(trak, "tkhd"), find(trak, "mdia", "minf", "stbl")
    stsd = find(table, "stsd") if table is not None else None
    if header is None or table is None or stsd is None or len(header) < 24 or len(stsd) < 16:
        return None
    track_id = struct.unpack_from(">I", header, 20 if header[0] == 1 else 12)[0]
    entry = next(boxes(stsd[8:]), None)
    if entry is None:
        return None
    reorders = find(table, "ctts") is not None
    units, edits = timescale(find(trak, "mdia", "mdhd")), read_edits(find(trak, "edts", "elst"))
    at, clockwise_deg = 52 if header[0] == 1 else 40, 0
    if len(header) >= at + 8:  # else the header is cut short before its matrix
        along, across = struct.unpack_from(">ii", header, at)
        clockwise_deg = round(math.degrees(math.atan2(across, along))) % 360
    return Track(track_id, entry.kind, entry.data, reorders, units, edits, table, clockwise_deg)


def timescale(header: memoryview | None) -> int:
    """Read the units per second from `mdhd` or `mvhd`; 0 if it is missing or cut short."""
    at = 20 if header and header[0] == 1 else 12
    return struct.unpack_from(">I", header, at)[0] if header is not None and len(header) >= at + 4 else 0


def read_edits(elst: memoryview | None) -> tuple[EditPart, ...]:
    """Read the complete entries of an edit list; their rate is ignored, as no camera changes it."""
    if elst is None or len(elst) < 8:
        return ()
    layout = struct.Struct(">QqI" if elst[0] == 1 else ">IiI")
    count = min(struct.unpack_from(">I", elst, 4)[0], (len(elst) - 8) // layout.size)
    return tuple(EditPart(*layout.unpack_from(elst, 8 + k * layout.size)[:2]) for k in range(count))


def edit_shift_s(edits: tuple[EditPart, ...], units: int, movie_units: int) -> Fraction:
    """Return the time of a track's time 0 in the movie, seconds; if negative, the samples before 0 are hidden.

    ISO 14496-12, 8.6.6. If there are several parts, the first shown one counts.
    """
    empty = Fraction(0)
    for edit in edits:
        if edit.media_time >= 0:
            return empty - Fraction(edit.media_time, units)
        empty += Fraction(edit.duration, movie_units)
    return empty


class TimecodeFormat(NamedTuple):
    """The sample description of a `tmcd` track."""

    drop_frame: bool
    timescale: int
    frame_duration: int
    "In units of 1 / timescale seconds."


def timecode_format(description: memoryview) -> TimecodeFormat | None:
    """Read a `tmcd` description: 6 reserved, u16 index, u32 reserved, u32 flags, u32 timescale, u32 duration."""
    if len(description) < 24:
        return None
    flags, timescale, duration = struct.unpack_from(">III", description, 12)
    if timescale == 0 or duration == 0:
        return None
    return TimecodeFormat(bool(flags & 1), timescale, duration)


def printed(frames: int, timecode: TimecodeFormat) -> str:
    """Format a time code as players do: hh:mm:ss:ff, or hh:mm:ss;ff for drop frame.

    Drop frame (SMPTE 12M): the numbers 0 and 1 (0 to 3 at 60) are skipped in each minute that is not a multiple of
    ten. Without it, 29.97 frames per second that are counted as 30 run 0.1 % slow, up to 86 s before midnight.
    """
    nominal = max(1, round(timecode.timescale / timecode.frame_duration))
    sign = ":"
    if timecode.drop_frame and nominal % 30 == 0:
        dropped = nominal // 15
        per_ten = 600 * nominal - 9 * dropped
        per_minute = 60 * nominal - dropped
        tens, rest = divmod(frames, per_ten)
        frames += 9 * dropped * tens
        if rest >= 60 * nominal:
            frames += dropped * ((rest - 60 * nominal) // per_minute + 1)
        sign = ";"
    seconds, frame = divmod(frames, nominal)
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{sign}{frame:02}"


def wall_clock(seconds: float) -> str:
    """Format seconds since midnight as hh:mm:ss.mmm."""
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000 % 24:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"
