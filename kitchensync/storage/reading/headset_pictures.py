"""Pictures and depth, decoded lazily from the nearest key frame, each with its exact stamp, pose and optics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import BadPacket, SensorError
from kitchensync.sensors.hololens import video
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.headset_stream import HeadsetStream, PictureUnit
from kitchensync.shell.array_types import UInt16
from kitchensync.storage.reading.stream_kinds import check_kind

if TYPE_CHECKING:
    from kitchensync.storage.chunks.stored_packets import StoredPackets

RAW = "raw"


@dataclass(frozen=True)
class Frame:
    """One picture as sent: its `pose` is for row vectors, unlike `world_from_camera` of its stream."""

    row: int
    "Number of its packet in the stream."
    device_ticks: int
    "Its stamp as sent, 100 ns."
    picture: Any
    "`av.VideoFrame`, or for raw streams NV12 (front camera) or grey (height, width) uint8."
    pose: npt.NDArray[np.float32] | None
    "(4, 4) row-vector matrix to the world, metres; None if untracked."
    intrinsics: tuple[float, float, float, float] | None
    "fx, fy, cx, cy of this picture in pixels, if the camera sends them."
    metadata: np.void
    "All metadata of the packet."

    def rgb(self) -> npt.NDArray[np.uint8]:
        """Return the picture as (height, width, 3) uint8 RGB."""
        return rgb_of(self.picture)

    def grey(self) -> npt.NDArray[np.uint8]:
        """Return the luma, (height, width) uint8, which is the picture of a grey camera."""
        if isinstance(self.picture, np.ndarray):
            return self.picture[: vlc_height(self.picture)]
        plane = self.picture.planes[0]
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        return rows[:, : plane.width]


def rgb_of(picture: Any) -> npt.NDArray[np.uint8]:
    """Return a picture of a `Frame` as (height, width, 3) uint8 RGB."""
    if not isinstance(picture, np.ndarray):
        return np.asarray(picture.to_ndarray(format="rgb24"), np.uint8)
    import cv2

    code = cv2.COLOR_GRAY2RGB if picture.shape[0] == vlc_height(picture) else cv2.COLOR_YUV2RGB_NV12
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(picture), code), np.uint8)


def vlc_height(picture: npt.NDArray[np.uint8]) -> int:
    """Height of the luma in a raw picture: all of a grey one, two thirds of NV12."""
    rows, columns = picture.shape
    return rows if (columns, rows) == (640, 480) else rows * 2 // 3


@dataclass(frozen=True)
class DepthFrame:
    """One depth picture; depth in millimetres, 0 = invalid."""

    row: int
    device_ticks: int
    sensor_ticks: int
    "62.976 MHz clocks of the sensor, 0 without a clock."
    depth_mm: UInt16
    brightness: UInt16 | None
    pose: npt.NDArray[np.float32] | None


Picture = TypeVar("Picture", Frame, DepthFrame)
Decoded = tuple[int, PictureUnit, Any]
"""Row, content of its packet, and the picture; None for the picture without a video codec."""


def _stream_of(stream: StoredPackets) -> HeadsetStream:
    return headset_stream(stream.name.rpartition("/")[2])


def cut_picture(sensor: HeadsetStream, payload: bytes) -> PictureUnit:
    """Find the picture in a packet. Raises BadPacket if there is none."""
    assert sensor.cut is not None, "every stream with pictures has one"
    unit = sensor.cut(payload)
    if len(unit.image) == 0:
        raise BadPacket(sensor.name, "it holds no picture")
    return unit


def _units(stream: StoredPackets, start: int, stop: int) -> Iterator[tuple[int, PictureUnit]]:
    """Yield the pictures in the packets of rows [start, stop); others are entered in `stream.bad`."""
    sensor = _stream_of(stream)
    for row, payload in stream.packets(start, stop):
        try:
            yield row, cut_picture(sensor, payload)
        except SensorError as error:
            stream.bad[row] = str(error)


def key_row(stream: StoredPackets, row: int) -> int:
    """Find the nearest row at or before `row` where decoding can start (else the first row)."""
    if stream.format.get("codec", RAW) not in video.CODECS:
        return row
    for candidate in range(row, -1, -1):
        if is_key(stream, candidate):
            return candidate
    return 0


def _decoded(stream: StoredPackets, start: int, stop: int) -> Iterator[Decoded]:
    """Decode the rows [start, stop) of an encoded stream."""
    rows: list[int] = []
    units: dict[int, PictureUnit] = {}

    def images() -> Iterator[memoryview]:
        for row, unit in _units(stream, key_row(stream, start), stop):
            units[len(rows)] = unit
            rows.append(row)
            yield unit.image

    def tell(index: int, reason: str) -> None:
        stream.bad[rows[index]] = f"picture does not decode: {reason}"
        units.pop(index, None)

    for index, picture in video.decode_units(stream.format["codec"], images(), tell):
        unit = units.pop(index)
        if rows[index] >= start:
            yield rows[index], unit, picture


def read_frames(stream: StoredPackets, start: int, stop: int) -> Iterator[Frame]:
    """Return pictures of a camera, a few in memory at a time; `stream.bad` has others. Raises NotOfThisKind."""
    check_kind(stream.name, "frames")
    return _shown(stream, _frames(stream, _pictures(stream, start, stop)))


def _shown(stream: StoredPackets, pictures: Iterator[Picture]) -> Iterator[Picture]:
    """Leave out pictures that may be of a privacy pause."""
    hidden = stream.hidden
    return (picture for picture in pictures if not hidden[picture.row])


def _pictures(stream: StoredPackets, start: int, stop: int) -> Iterator[Decoded]:
    """Decode the rows [start, stop), a few in memory at a time."""
    if start >= stop:
        return  # there may be no row to start decoding
    if stream.format.get("codec", RAW) in video.CODECS:
        yield from _decoded(stream, start, stop)
    else:
        yield from ((row, unit, None) for row, unit in _units(stream, start, stop))


def unbroken_frames(stream: StoredPackets, start: int, stop: int) -> Iterator[Frame]:
    """Return pictures as `read_frames`, without those that need a lost or undecodable one."""
    return _shown(stream, _frames(stream, _unbroken(stream, start, stop)))


def unbroken_depth(stream: StoredPackets, start: int, stop: int) -> Iterator[DepthFrame]:
    """Return pictures as `read_depth`, without those that need a lost or undecodable one."""
    return _shown(stream, _depth(stream, _unbroken(stream, start, stop)))


def begins_after_loss(stream: StoredPackets) -> set[int]:
    """Return the rows after a missing packet or a new connection."""
    index = stream.index
    lost = np.diff(index["seq"].astype(np.int64)) != 1
    other = np.diff(index["connection"].astype(np.int64)) != 0
    return set((np.flatnonzero(lost | other) + 1).tolist())


def _unbroken(stream: StoredPackets, start: int, stop: int) -> Iterator[Decoded]:
    pictures = _pictures(stream, key_row(stream, start), stop)
    if stream.format.get("codec", RAW) not in video.CODECS:
        yield from pictures
        return
    begins, last, is_sound = begins_after_loss(stream), -1, False
    for row, unit, picture in pictures:
        if row != last + 1 or row in begins:
            is_sound = False
        is_sound = is_sound or video.is_key_frame(stream.format["codec"], unit.image)
        last = row
        if not is_sound:
            stream.bad[row] = "picture hangs on one that is lost"
        elif row >= start:
            yield row, unit, picture


def is_key(stream: StoredPackets, row: int) -> bool:
    """Return whether decoding can start at a row of an encoded stream."""
    return holds_key(stream.format["codec"], _stream_of(stream), stream.payload(row))


def holds_key(codec: str, sensor: HeadsetStream, payload: bytes) -> bool:
    """Return whether decoding can start at a packet of an encoded stream."""
    try:
        return video.is_key_frame(codec, cut_picture(sensor, payload).image)
    except SensorError:
        return False


def _frames(stream: StoredPackets, pictures: Iterator[Decoded]) -> Iterator[Frame]:
    sensor, ticks = _stream_of(stream), stream.index["device_ticks"]
    assert sensor.raw_picture is not None, "every camera has one"
    for row, unit, decoded in pictures:
        try:
            picture = sensor.raw_picture(unit) if decoded is None else decoded
        except SensorError:
            stream.bad[row] = "a raw picture of another size"
            continue
        optics = sensor.optics(unit.metadata)
        yield Frame(row, int(ticks[row]), picture, _pose(stream, row), optics, unit.metadata)


def _pose(stream: StoredPackets, row: int) -> npt.NDArray[np.float32] | None:
    pose = stream.pose(row)
    return pose if pose is not None and pose[3, 3] != 0 else None


def read_depth(stream: StoredPackets, start: int, stop: int) -> Iterator[DepthFrame]:
    """Return the depth pictures of rows [start, stop), lazily. Raises NotOfThisKind."""
    check_kind(stream.name, "depth")
    return _shown(stream, _depth(stream, _pictures(stream, start, stop)))


def _depth(stream: StoredPackets, pictures: Iterator[Decoded]) -> Iterator[DepthFrame]:
    sensor, ticks = _stream_of(stream), stream.index["device_ticks"]
    assert sensor.depth is not None, "every stream of this kind has one"
    for row, unit, picture in pictures:
        try:
            depth, brightness = sensor.depth(unit, picture, stream.format)
        except SensorError as error:
            stream.bad[row] = str(error)
            continue
        yield DepthFrame(row, int(ticks[row]), unit.sensor_ticks, depth, brightness, _pose(stream, row))
