"""Join the chapters of one recording into one MP4 without changing samples, tracks or times.

Nothing is decoded, and samples keep their order: the data of the chapters follow each other in one `mdat`, and `moov`
is that of the first chapter with new tables.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from kitchensync.sensors.errors import CannotJoin, UnreadableMedia
from kitchensync.sensors.gopro.mp4 import strip
from kitchensync.sensors.gopro.mp4.boxes import (
    Box,
    boxes,
    edit_shift_s,
    find,
    read_edits,
    timescale,
    top_boxes,
)
from kitchensync.sensors.gopro.mp4.sample_tables import (
    ChapterFile,
    ChapterTrack,
    SampleTables,
    TrackId,
    box,
    concatenate,
    read_chapter,
    write_tables,
)

COPY_BYTES = 8 << 20
MDAT_HEADER_BYTES = 16  # with the size as u64, since joined chapters may exceed 4 GiB
Progress = Callable[[int, int], None]


class Joined(NamedTuple):
    """A joined file."""

    path: Path
    bytes: int
    sha256: str
    chapters: list[str]
    frames: int
    stripped: list[str]
    "Names of what was removed; empty without strip_location."


def join(
    paths: list[Path],
    target: Path,
    *,
    strip_location: bool = False,
    replace: bool = False,
    progress: Progress | None = None,
) -> Joined:
    """Join chapters in their order to `target`, which must not exist unless `replace` is set.

    With `strip_location` the file has no GPS records, locations or serial number; their bytes are zeros. Raises
    `CannotJoin` if the files are not chapters of one recording, `UnreadableMedia` if one is damaged.
    """
    if target.exists() and not replace:
        raise CannotJoin(target.name, "it exists and is never overwritten; choose another name")
    chapters = [read_chapter(path) for path in paths]
    _check_same(chapters)
    part = target.with_name(target.name + ".part")
    try:
        part.unlink(missing_ok=True)  # it could be a link to another file, which must not be overwritten
        removed: list[str] = []
        with part.open("x+b") as out:
            tracks = _write_data(chapters, out, progress)
            if strip_location:
                # fdsc is the camera's recovery data, which may contain anything.
                kept = {key: track for key, track in tracks.items() if key.format != "fdsc"}
                telemetry = [tables for key, (_, tables) in tracks.items() if key.format == "gpmd"]
                removed = strip.strip_data(out, telemetry, [tables for _, tables in kept.values()])
                tracks = kept
            write_moov(chapters[0].moov, tracks, out, strip_location=strip_location)
            out.flush()
            os.fsync(out.fileno())
            if strip_location:
                strip.check_no_serial(out, [chapter.moov for chapter in chapters], target)
            digest = _hash(out)
        os.replace(part, target)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise CannotJoin(target.name, (error.strerror or str(error)).lower()) from error
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    frames = sum(len(tables) for key, (_, tables) in tracks.items() if key.handler == "vide")
    return Joined(target, target.stat().st_size, digest, [path.name for path in paths], frames, removed)


def _check_same(chapters: list[ChapterFile]) -> None:
    first = chapters[0]
    for other in chapters[1:]:
        if other.tracks.keys() != first.tracks.keys():
            raise CannotJoin(other.path.name, f"it has other tracks than {first.path.name}")
        for key, track in other.tracks.items():
            same = track.description == first.tracks[key].description
            if key.handler in ("vide", "soun") and not same:
                why = f"its {key.format} has another encoding than that of {first.path.name}"
                raise CannotJoin(other.path.name, why)
            if track.timescale != first.tracks[key].timescale:
                raise CannotJoin(other.path.name, f"its {key.format} has another time scale")
    serials = {strip.header_text(chapter.moov, "CASN") for chapter in chapters}
    if len(serials) > 1:
        raise CannotJoin(first.path.name, "the files come from different cameras")


# --- writing ------------------------------------------------------------------------------------

Tracks = dict[TrackId, tuple[ChapterTrack, SampleTables]]


def _write_data(chapters: list[ChapterFile], out: BinaryIO, progress: Progress | None) -> Tracks:
    """Write ftyp and all data; return every track with its tables in the new file."""
    out.write(file_type(chapters[0].path))
    header_at = out.tell()
    out.write(struct.pack(">I4sQ", 1, b"mdat", 0))
    total = sum(end - start for chapter in chapters for start, end in chapter.data)
    for chapter in chapters:
        moved = []
        with chapter.path.open("rb") as source:
            for start, end in chapter.data:
                moved.append((start, end, out.tell()))
                for _ in copy_range(source, out, start, end):
                    if progress is not None:
                        progress(out.tell() - header_at - MDAT_HEADER_BYTES, total)
        for track in chapter.tracks.values():
            track.tables.offsets = _moved(track.tables.offsets, moved)
    end_at = out.tell()
    out.seek(header_at + 8)
    out.write(struct.pack(">Q", end_at - header_at))
    out.seek(end_at)
    return _joined_tables(chapters)


def file_type(path: Path) -> bytes:
    """Return the ftyp box of a file, or that of cameras if it has none."""
    with path.open("rb") as file:
        for top in top_boxes(file, path.stat().st_size):
            if top.kind == "ftyp":
                file.seek(top.start)
                return box("ftyp", file.read(top.end - top.start))
    return box("ftyp", b"mp41", struct.pack(">I", 0x20131018), b"mp41")


def copy_range(source: BinaryIO, out: BinaryIO, start: int, end: int) -> Iterator[int]:
    """Copy the bytes [start, end), and yield the size of each block. Raises OSError."""
    source.seek(start)
    remaining = end - start
    while remaining:
        block = source.read(min(COPY_BYTES, remaining))
        if not block:
            raise OSError("the file ends early")
        out.write(block)
        remaining -= len(block)
        yield len(block)


def _moved(offsets: np.ndarray, moved: list[tuple[int, int, int]]) -> np.ndarray:
    new = offsets.copy()
    for start, end, target in moved:
        inside = (offsets >= start) & (offsets < end)
        new[inside] = offsets[inside] - start + target
    return new


def _joined_tables(chapters: list[ChapterFile]) -> Tracks:
    """Concatenate the tables; the time code keeps its first sample, sound and telemetry follow the video's time."""
    tracks: Tracks = {}
    videos = [_video_of(chapter) for chapter in chapters]
    lengths = [Fraction(int(video.tables.durations.sum()), video.timescale) for video in videos]
    for key, first in chapters[0].tracks.items():
        parts = [chapter.tracks[key].tables for chapter in chapters]
        if key.format == "tmcd":
            tables = parts[0]
            total = round(sum(lengths, Fraction(0)) * first.timescale)
            if len(tables):
                tables.durations[-1] = max(0, total - int(tables.durations[:-1].sum()))
            tracks[key] = (first, tables)
            continue
        if key.handler != "vide":
            _follow_video(parts, _begins(chapters, key, lengths), first.timescale)
        tracks[key] = (first, concatenate(parts))
    return tracks


def _video_of(chapter: ChapterFile) -> ChapterTrack:
    for key, track in chapter.tracks.items():
        if key.handler == "vide":
            return track
    raise UnreadableMedia(chapter.path, "no video track")


def _begins(chapters: list[ChapterFile], key: TrackId, lengths: list[Fraction]) -> list[Fraction]:
    """Return the start of each chapter of a track, seconds, relative to its video by its own edit list.

    They are relative to the first chapter, since the joined file has only the edit lists of that one.
    """
    later_s = [
        _later_s(chapter, chapter.tracks[key]) - _later_s(chapter, _video_of(chapter)) for chapter in chapters
    ]
    return [sum(lengths[:k], Fraction(0)) + at_s - later_s[0] for k, at_s in enumerate(later_s)]


def _later_s(chapter: ChapterFile, track: ChapterTrack) -> Fraction:
    """Return the time of a track's time 0 in the movie, seconds, by its edit list."""
    trak = [box.data for box in boxes(chapter.moov) if box.kind == "trak"][track.number - 1]
    movie_units = timescale(find(chapter.moov, "mvhd")) or 1000
    return edit_shift_s(read_edits(find(trak, "edts", "elst")), track.timescale, movie_units)


def _follow_video(parts: list[SampleTables], begins_s: list[Fraction], units: int) -> None:
    """Make each chapter's samples start at `begins_s` by changing the durations of the last samples before."""
    begin = 0
    for part, next_s in zip(parts[:-1], begins_s[1:], strict=True):
        if not part.durations.sum():
            continue  # recovery data has durations of 0
        durations = part.durations.copy()
        change = round(next_s * units) - begin - int(durations.sum())
        for at in range(len(durations) - 1, -1, -1):
            new = max(1, int(durations[at]) + change)
            change -= new - int(durations[at])
            durations[at] = new
            if not change:
                break
        part.durations = durations
        begin += int(durations.sum())


def write_moov(first: memoryview, tracks: Tracks, out: BinaryIO, *, strip_location: bool = False) -> None:
    """Write the index of all samples: the `moov` of a chapter with the new tables of `tracks`."""
    header = find(first, "mvhd")
    if header is None or len(header) < 24:
        raise UnreadableMedia(str(out.name), "box mvhd: missing or cut short")
    movie_scale = struct.unpack_from(">I", header, 20 if header[0] == 1 else 12)[0] or 1
    lengths = {
        key: int(tables.durations.sum()) * movie_scale // track.timescale
        for key, (track, tables) in tracks.items()
    }
    by_number = {track.number: key for key, (track, _) in tracks.items()}
    parts: list[bytes] = []
    number = 0
    for part in boxes(first):
        if part.kind == "mvhd":
            parts.append(box("mvhd", _with_duration(part.data, max(lengths.values()), at=16, wide_at=24)))
        elif part.kind == "trak":
            number += 1
            if number in by_number:
                key = by_number[number]
                parts.append(_trak(part.data, tracks[key][1], lengths[key]))
        elif part.kind == "udta" and strip_location:
            parts.append(strip.stripped_user_data(part.data))
        elif part.kind in ("meta", "uuid") and strip_location:
            continue
        else:
            parts.append(box(part.kind, part.data))
    out.write(box("moov", *parts))


def _trak(trak: memoryview, tables: SampleTables, movie_duration: int) -> bytes:
    parts = []
    media_units = int(tables.durations.sum())
    for part in boxes(trak):
        if part.kind == "tkhd":
            parts.append(box("tkhd", _with_duration(part.data, movie_duration, at=20, wide_at=28)))
        elif part.kind == "edts":
            edits = (_edits(edit, movie_duration, media_units) for edit in boxes(part.data))
            parts.append(box("edts", *edits))
        elif part.kind == "mdia":
            parts.append(_media(part.data, tables, media_units))
        else:
            parts.append(box(part.kind, part.data))
    return box("trak", *parts)


def _media(mdia: memoryview, tables: SampleTables, media_units: int) -> bytes:
    parts = []
    for part in boxes(mdia):
        if part.kind == "mdhd":
            parts.append(box("mdhd", _with_duration(part.data, media_units, at=16, wide_at=24)))
        elif part.kind == "minf":
            inner = (write_tables(b.data, tables) if b.kind == "stbl" else box(*b) for b in boxes(part.data))
            parts.append(box("minf", *inner))
        else:
            parts.append(box(part.kind, part.data))
    return box("mdia", *parts)


def _edits(edit: Box, movie_duration: int, media_units: int) -> bytes:
    """Extend the last edit to the end of the joined track; earlier edits are kept."""
    data = bytearray(edit.data)
    count = struct.unpack_from(">I", data, 4)[0] if len(data) >= 8 else 0
    wide = bool(data[:1] == b"\x01")
    size = 20 if wide else 12
    if edit.kind != "elst" or not count or len(data) < 8 + count * size:
        return box(*edit)
    kind = ">Q" if wide else ">I"
    shown = max(0, media_units - max(0, read_edits(edit.data)[-1].media_time))
    struct.pack_into(kind, data, 8 + (count - 1) * size, movie_duration * shown // max(1, media_units))
    return box("elst", bytes(data))


def _with_duration(header: memoryview, duration: int, *, at: int, wide_at: int) -> bytes:
    """Replace the duration in mvhd, tkhd or mdhd; its offset depends on the version."""
    data = bytearray(header)
    if data[0] == 1:
        struct.pack_into(">Q", data, wide_at, duration)
    else:
        struct.pack_into(">I", data, at, min(duration, 0xFFFFFFFF))
    return bytes(data)


def _hash(file: BinaryIO) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
