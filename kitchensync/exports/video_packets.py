"""Undecoded video, frame by frame in Annex B, for files with one frame per message."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import av
import numpy as np
from av.bitstream import BitStreamFilterContext

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.video import is_key_frame, nal_types
from kitchensync.shell.array_types import Int64
from kitchensync.storage.chunks.stored_packets import StoredPackets
from kitchensync.storage.errors import StorageError
from kitchensync.storage.reading.headset_pictures import begins_after_loss, key_row

TO_ANNEX_B = {"h264": "h264_mp4toannexb", "h265": "hevc_mp4toannexb", "hevc": "hevc_mp4toannexb"}
PARAMETER_SETS = {"h264": {7, 8}, "h265": {32, 33, 34}}
"""NAL unit types of SPS and PPS; VPS, SPS and PPS."""


class NoPlainVideo(StorageError):
    """The data cannot be exported as stored; the message has the reason."""


def headset_units(stream: StoredPackets, rows: Int64) -> Iterator[tuple[int, bytes]]:
    """Yield (row, access unit) of a headset's encoded frames, from the key frame before the first of `rows` on.

    Frames that depend on a lost or hidden frame are skipped up to the next key frame. Each key frame includes its
    parameter sets.
    """
    if not len(rows):
        return
    sensor, codec = headset_stream(stream.name.rpartition("/")[2]), str(stream.format["codec"])
    first, stop = key_row(stream, int(rows[0])), int(rows[-1]) + 1
    shown, lost = ~np.asarray(stream.hidden), begins_after_loss(stream)
    assert sensor.cut is not None, "all streams of frames have `cut`"
    decodable, sets, last = False, b"", first - 1
    for row, payload in stream.packets(first, stop):
        decodable, last = decodable and row == last + 1, row
        try:
            unit = bytes(sensor.cut(payload).image)
        except SensorError as error:
            stream.bad[row] = str(error)
            decodable = False
            continue
        if not shown[row] or not unit:
            decodable = False
            continue
        is_key = is_key_frame(codec, unit)
        decodable = is_key or (decodable and row not in lost)
        if is_key and PARAMETER_SETS[codec] <= set(nal_types(codec, unit[:2048])):
            sets = _parameter_sets(codec, unit)
        elif is_key:
            unit = sets + unit
        if decodable:
            yield row, unit
        else:
            stream.bad[row] = "the frame depends on a lost frame"


def _parameter_sets(codec: str, unit: bytes) -> bytes:
    """Return the parameter sets of an access unit, each after a start code."""
    sets, at = b"", unit.find(b"\0\0\1")
    while at >= 0:
        following = unit.find(b"\0\0\1", at + 3)
        kind = next(nal_types(codec, unit[at : at + 5]), -1)
        if kind in PARAMETER_SETS[codec]:
            sets += b"\0" + unit[at : following if following >= 0 else len(unit)].rstrip(b"\0")
        elif sets:
            break
        at = following
    return sets


def film_units(clip: Clip, frames: Container[int]) -> Iterator[tuple[int, bytes]]:
    """Yield (number, access unit) of some frames of a video, each key frame with its parameter sets.

    Frames before the first key frame are skipped, as are damaged frames and those that depend on them. Raises
    NoPlainVideo if frames are stored out of order.
    """
    for first, chapter in zip(clip.first_frames, clip.chapters, strict=True):
        numbers = {int(pts): first + k for k, pts in enumerate(chapter.frame_pts)}
        with chapter.container() as source:
            stream = source.streams.video[0]
            codec = stream.codec_context.name
            if codec not in TO_ANNEX_B:
                raise NoPlainVideo(
                    f"{chapter.path.name}: its video is {codec}; only H.264 and H.265 can be exported"
                )
            to_annex_b: Any = BitStreamFilterContext(TO_ANNEX_B[codec], stream)
            last, decodable = -1, False
            for packet in source.demux(stream):
                number = numbers.get(-1 if packet.pts is None else packet.pts, -1)
                if 0 <= number < last:
                    raise NoPlainVideo(
                        f"{chapter.path.name}: it has B frames, which `export mcap` cannot export"
                    )
                last = max(number, last)
                try:
                    units = to_annex_b.filter(packet) if number in frames else []
                except av.FFmpegError:  # damaged, or overwritten by a redaction
                    units = []
                decodable = bool(units) and (decodable or any(unit.is_keyframe for unit in units))
                if decodable:
                    yield from ((number, bytes(unit)) for unit in units)
