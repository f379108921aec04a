"""Pictures of both cameras side by side: the camera's key frames, and the headset's frame nearest to each.

Only what is shown is decoded: a key frame of the camera file, and the headset's pictures from their key frame on.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import av
import cv2
import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.hololens.video import CODECS
from kitchensync.shell.array_types import UInt8
from kitchensync.storage.errors import StorageError
from kitchensync.storage.reading.headset_pictures import is_key, unbroken_frames
from kitchensync.sync.report.cameras import ShownFile
from kitchensync.sync.report.streams import ReadStream, TicksToHost
from kitchensync.sync.report.timeline import ShownSpan

PAIRS = 9
WIDTH = 320
QUALITY = 68
EDGE = 0.04  # share of the common time left out at both ends
MOST_BACK_ROWS = 256  # hl2ss sends a key frame every second by default, so every 60 rows at most
FAR_PERIODS = 3.0  # a headset frame further away than this many periods is no match

DAMAGED = (StorageError, SensorError, OSError, RuntimeError, ValueError, KeyError)


@dataclass(frozen=True)
class Thumbnail:
    """One small JPEG as a data address, or the reason why there is none."""

    source: str = ""
    words: str = ""
    problem: str = ""


PAUSED = Thumbnail(problem="privacy pause")


@dataclass(frozen=True)
class PicturePair:
    """One moment: recording seconds, camera media seconds, both pictures, and how far they are apart."""

    at_s: float
    camera_s: float | None
    headset: Thumbnail | None
    camera: Thumbnail | None
    dt_ms: float | None


@dataclass(frozen=True)
class Strip:
    """All pairs; `matched` tells whether they stand beside each other by an alignment."""

    pairs: list[PicturePair]
    matched: bool
    words: str


def picture_strip(
    pv: ReadStream | None, clock: TicksToHost | None, cameras: list[ShownFile], span: ShownSpan
) -> Strip:
    """Choose and decode the pictures of a recording."""
    files = [file for file in cameras if file.seconds and file.frames]
    if pv is None or clock is None or not len(pv):
        if not files:
            return Strip([], False, "No pictures were recorded.")
        file, pairs = files[0], []
        for camera_s, bgr in key_frames(file.path, _spread(0.0, file.seconds or 0.0)):
            at_s = span.seconds(file.start_host_ns) + camera_s if file.start_host_ns else camera_s
            pairs.append(PicturePair(at_s, camera_s, None, _camera_picture(file, camera_s, bgr), None))
        return Strip(pairs, False, "The camera's pictures alone.")
    if aligned := [file for file in files if file.clock_map is not None]:
        file = max(aligned, key=lambda file: file.seconds or 0.0)
        words = "Each camera picture stands beside the headset's picture nearest to it by the alignment."
        return Strip(list(_pairs(pv, clock, file, span)), True, words)
    if files and files[0].start_host_ns is not None:
        words = (
            "Not aligned: the camera's pictures are placed by the shutter's stamps only, and may show another"
            " moment than the headset's beside them."
        )
        return Strip(list(_pairs(pv, clock, files[0], span)), False, words)
    pairs = []
    for row in np.linspace(0.03, 0.97, PAIRS) * (len(pv.index) - 1):
        at_s = span.seconds(clock.host_ns(pv.ticks[int(row)]))
        pairs.append(PicturePair(at_s, None, _headset_picture(pv, int(row), at_s), None, None))
    return Strip(pairs, False, "The headset's pictures alone.")


def _pairs(pv: ReadStream, clock: TicksToHost, file: ShownFile, span: ShownSpan) -> Iterator[PicturePair]:
    ends, opened_ns = np.array([int(pv.ticks[0]), int(pv.ticks[-1])]), int(file.start_host_ns or 0)
    if file.clock_map is not None:
        inside = file.clock_map.to_media(ends)
    else:
        inside = (clock.to_host.to_host_ns(ends) - opened_ns) / 1e9
    start_s, end_s = max(float(inside[0]), 0.0), min(float(inside[1]), file.seconds or 0.0)
    if end_s <= start_s:
        start_s, end_s = 0.0, file.seconds or 0.0
    far_ms = FAR_PERIODS * 1e3 / (pv.nominal_hz or 30.0)
    for camera_s, bgr in key_frames(file.path, _spread(start_s, end_s)):
        if file.clock_map is not None:
            ticks = int(file.clock_map.to_ticks(camera_s))
        else:
            ticks = int(clock.to_host.to_ticks(opened_ns + round(camera_s * 1e9)))
        at_s = span.seconds(clock.host_ns(ticks))
        row = int(np.argmin(np.abs(pv.ticks - ticks)))
        away_ms = float(pv.ticks[row] - ticks) / 1e4
        camera = _camera_picture(file, camera_s, bgr)
        if abs(away_ms) > far_ms:
            headset, away = Thumbnail(problem=f"no picture within {far_ms:.0f} ms"), None
        else:
            headset, away = _headset_picture(pv, row, at_s + away_ms / 1e3), away_ms
        yield PicturePair(at_s, camera_s, headset, camera, away)


def _camera_picture(file: ShownFile, camera_s: float, bgr: UInt8) -> Thumbnail:
    if file.hides is not None and file.hides(np.array([camera_s])).any():
        return PAUSED
    return Thumbnail(data_address(bgr), f"camera picture at media time {camera_s:.3f} s")


def _spread(start_s: float, end_s: float) -> list[float]:
    room = EDGE * (end_s - start_s)
    return [float(t) for t in np.linspace(start_s + room, end_s - room, PAIRS)]


def key_frames(path: Path, times_s: list[float]) -> Iterator[tuple[float, UInt8]]:
    """Yield (media s, small BGR) of the key frame at or before each time, once each. Raises UnreadableMedia."""
    media = open_media(path)
    first, base = int(media.frame_pts[0]), media.time_base
    seen: set[int] = set()
    with media.container() as container:
        stream = container.streams.video[0]
        stream.codec_context.skip_frame = "NONKEY"
        for time_s in times_s:
            container.seek(first + round(time_s / float(base)), stream=stream, backward=True)
            frame = next((f for f in container.decode(stream) if f.pts is not None), None)
            if frame is None or frame.pts is None or frame.pts in seen:
                continue
            seen.add(frame.pts)
            yield float((frame.pts - first) * base), _small(frame)


def _headset_picture(pv: ReadStream, row: int, at_s: float) -> Thumbnail:
    """Decode one headset picture; with the reason where it does not decode."""
    if pv.hidden[row]:
        return PAUSED
    try:
        bgr = decode_row(pv, row)
    except DAMAGED as error:
        return Thumbnail(problem=f"not readable: {' '.join(str(error).split())[:120]}")
    if bgr is None:
        return Thumbnail(problem=f"not readable: {pv.bad[row]}" if row in pv.bad else "does not decode")
    return Thumbnail(data_address(bgr), f"headset picture at {at_s:.3f} s of the recording")


def decode_row(pv: ReadStream, row: int) -> UInt8 | None:
    """Decode the picture of one packet; None when it or one that it hangs on is lost, or no key frame is near."""
    near = range(row, max(row - MOST_BACK_ROWS, -1), -1)
    with closing(pv):
        if pv.format.get("codec") in CODECS and not any(is_key(pv, key) for key in near):
            return None
        frame = next(unbroken_frames(pv, row, row + 1), None)
    if frame is None:
        return None
    if isinstance(frame.picture, av.VideoFrame):
        return _small(frame.picture)
    return _small(av.VideoFrame.from_ndarray(frame.rgb(), format="rgb24"))


def _small(picture: av.VideoFrame) -> UInt8:
    height = max(2, round(picture.height * WIDTH / picture.width))
    rgb = picture.reformat(width=WIDTH, height=height, format="rgb24").to_ndarray()
    return np.asarray(rgb[:, :, ::-1], np.uint8)


def data_address(bgr: UInt8, quality: int = QUALITY) -> str:
    """Write a picture as a JPEG inside an address."""
    good, coded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not good:
        raise ValueError("a picture cannot be written as JPEG")
    return "data:image/jpeg;base64," + base64.b64encode(coded.tobytes()).decode("ascii")
