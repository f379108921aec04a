"""Video as it was stored, picture by picture in Annex B, for files that hold one picture a message."""

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
    """Pictures that cannot be handed over one by one as they were stored, and why."""


def headset_units(stream: StoredPackets, rows: Int64) -> Iterator[tuple[int, bytes]]:
    """Yield (row, access unit) of a headset's encoded pictures, from the key picture before the first of `rows` on.

    Pictures that hang on one that was lost or is not shown are left out up to the next key picture; each key picture
    has its parameter sets.
    """
    if not len(rows):
        return
    sensor, codec = headset_stream(stream.name.rpartition("/")[2]), str(stream.format["codec"])
    first, stop = key_row(stream, int(rows[0])), int(rows[-1]) + 1
    shown, lost = ~np.asarray(stream.hidden), begins_after_loss(stream)
    assert sensor.cut is not None, "every stream with pictures has one"
    is_sound, sets, last = False, b"", first - 1
    for row, payload in stream.packets(first, stop):
        is_sound, last = is_sound and row == last + 1, row
        try:
            unit = bytes(sensor.cut(payload).image)
        except SensorError as error:
            stream.bad[row] = str(error)
            is_sound = False
            continue
        if not shown[row] or not unit:
            is_sound = False
            continue
        is_key = is_key_frame(codec, unit)
        is_sound = is_key or (is_sound and row not in lost)
        if is_key and PARAMETER_SETS[codec] <= set(nal_types(codec, unit[:2048])):
            sets = _sets_of(codec, unit)
        elif is_key:
            unit = sets + unit
        if is_sound:
            yield row, unit
        else:
            stream.bad[row] = "picture hangs on one that is lost"


def _sets_of(codec: str, unit: bytes) -> bytes:
    """Return the parameter sets of an access unit, each behind a start code."""
    found, at = b"", unit.find(b"\0\0\1")
    while at >= 0:
        after = unit.find(b"\0\0\1", at + 3)
        kind = next(nal_types(codec, unit[at : at + 5]), -1)
        if kind in PARAMETER_SETS[codec]:
            found += b"\0" + unit[at : after if after >= 0 else len(unit)].rstrip(b"\0")
        elif found:
            break
        at = after
    return found


def film_units(clip: Clip, wanted: Container[int]) -> Iterator[tuple[int, bytes]]:
    """Yield (number, access unit) of the `wanted` pictures of a film, each key picture with its parameter sets.

    Pictures before the first key picture are left out, as are destroyed ones and what hangs on them. Raises
    NoPlainVideo where pictures are stored out of order.
    """
    for first, chapter in zip(clip.first_frames, clip.chapters, strict=True):
        numbers = {int(pts): first + k for k, pts in enumerate(chapter.frame_pts)}
        with chapter.container() as source:
            stream = source.streams.video[0]
            codec = stream.codec_context.name
            if codec not in TO_ANNEX_B:
                raise NoPlainVideo(
                    f"{chapter.path.name}: its pictures are {codec}; H.264 and H.265 are handed over"
                )
            to_annex_b: Any = BitStreamFilterContext(TO_ANNEX_B[codec], stream)
            last, is_sound = -1, False
            for packet in source.demux(stream):
                number = numbers.get(-1 if packet.pts is None else packet.pts, -1)
                if 0 <= number < last:
                    raise NoPlainVideo(
                        f"{chapter.path.name}: it holds B frames; `export mcap` hands over none"
                    )
                last = max(number, last)
                try:
                    units = to_annex_b.filter(packet) if number in wanted else []
                except av.FFmpegError:  # it was destroyed, or is damaged
                    units = []
                is_sound = bool(units) and (is_sound or any(one.is_keyframe for one in units))
                if is_sound:
                    yield from ((number, bytes(one)) for one in units)
