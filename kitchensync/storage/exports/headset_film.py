"""A headset's camera as a film: picture k is that of the k-th requested row, at a constant rate.

The sent packets are copied to the file if every picture of it can be decoded; otherwise it is encoded again.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens import video
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.shell.array_types import Int64
from kitchensync.storage.exports.film import FASTSTART, FilmWriter, Progress, black
from kitchensync.storage.reading.headset_pictures import Frame, begins_after_loss, is_key, unbroken_frames
from kitchensync.storage.recording import StoredStream

_LIBAV_NAMES = {"h264": "h264", "h265": "hevc"}


@dataclass(frozen=True, slots=True)
class HeadsetFilm:
    """Facts of a written film: number of pictures, whether it has the sent packets, numbers of black pictures."""

    frames: int
    as_sent: bool
    missing: tuple[int, ...] = ()


def write_headset_film(
    stream: StoredStream,
    rows: Int64,
    fps: Fraction,
    out: Path,
    *,
    made_of: str = "",
    tell: Progress | None = None,
) -> HeadsetFilm:
    """Write the pictures of `rows` (n,), -1 and lost ones black, to an `.mp4` part. Raises OSError, NotOfThisKind."""
    if _follow_each_other(stream, rows):
        _copy(stream, rows, fps, out, made_of)
        if _decoding(out) == len(rows):
            return HeadsetFilm(len(rows), as_sent=True)
    missing = []
    with FilmWriter(out, 1 / fps, key_every=max(1, round(fps)), made_of=made_of) as film:
        film.open(int(stream.format["width"]), int(stream.format["height"]))
        for number, frame in enumerate(_shown(stream, rows)):
            if frame is None:
                missing.append(number)
            film.write(_picture(frame, stream), number)
            if tell is not None and number % 100 == 0:
                tell(number, len(rows))
    return HeadsetFilm(len(rows), as_sent=False, missing=tuple(missing))


def _follow_each_other(stream: StoredStream, rows: Int64) -> bool:
    """Return whether rows are consecutive, and the first one and the first after each loss are key pictures."""
    codec = str(stream.format.get("codec", ""))
    if codec not in video.CODECS or not len(rows) or rows[0] < 0 or (np.diff(rows) != 1).any():
        return False
    begins = [row for row in begins_after_loss(stream) if rows[0] < row <= rows[-1]]
    return all(is_key(stream, row) for row in (int(rows[0]), *begins))


def _copy(stream: StoredStream, rows: Int64, fps: Fraction, out: Path, made_of: str) -> None:
    """Copy encoded pictures to an MP4, without invalid ones, which the caller detects by counting."""
    import av

    codec = str(stream.format["codec"])
    units = _units(stream, rows)
    first = next(units)
    with (
        av.open(io.BytesIO(first[1]), format=_LIBAV_NAMES[codec]) as probe,
        av.open(str(out), "w", format="mp4", options=FASTSTART) as film,
    ):
        film.metadata["comment"] = made_of
        to: Any = film.add_stream_from_template(probe.streams.video[0])
        to.time_base = 1 / fps
        for number, unit in chain([first], units):
            packet = av.Packet(unit)
            packet.pts = packet.dts = number
            packet.time_base, packet.duration, packet.stream = 1 / fps, 1, to
            packet.is_keyframe = video.is_key_frame(codec, unit)
            film.mux(packet)


def _units(stream: StoredStream, rows: Int64) -> Iterator[tuple[int, bytes]]:
    for row, payload in stream.packets(int(rows[0]), int(rows[-1]) + 1):
        try:
            cut = headset_stream(stream.name.rpartition("/")[2]).cut
            assert cut is not None, "every camera has one"
            unit = bytes(cut(payload).image)
        except SensorError:
            continue
        if unit:
            yield row - int(rows[0]), unit


def _decoding(path: Path) -> int:
    """Count the decodable pictures of a film."""
    import av

    with av.open(str(path)) as film:
        try:
            return sum(1 for _ in film.decode(video=0))
        except av.error.InvalidDataError:
            return 0


def _shown(stream: StoredStream, rows: Int64) -> Iterator[Frame | None]:
    """Yield the picture of each row, or None; rising rows are decoded in one pass."""
    present = rows[rows >= 0]
    frames = unbroken_frames(stream, int(present[0]), int(present[-1]) + 1) if len(present) else iter(())
    current: Frame | None = next(frames, None)
    for row in rows:
        while current is not None and current.row < row:
            current = next(frames, None)
        yield current if current is not None and current.row == row else None


def _picture(frame: Frame | None, stream: StoredStream) -> Any:
    if frame is None:
        return black(int(stream.format["width"]), int(stream.format["height"]))
    if isinstance(frame.picture, np.ndarray):
        return frame.rgb()
    return frame.picture
