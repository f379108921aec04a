"""Pictures and depth, decoded lazily from the nearest key frame, each with its exact stamp, pose and optics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensors.array_types import UInt16
from sensors.errors import BadPacket, SensorError
from sensors.hololens import depth_ahat, depth_longthrow, extended_depth, pv, video, vlc, zdepth
from storage.reading.kinds import check_kind

if TYPE_CHECKING:
    from storage.chunks.stored_packets import StoredPackets

RAW = "raw"


@dataclass(frozen=True)
class Frame:
    """One picture."""

    row: int
    "Number of its packet in the stream."
    device_ticks: int
    "Its stamp as sent, 100 ns."
    picture: Any
    "`av.VideoFrame`, or for raw streams NV12 (front camera) or grey (height, width) uint8."
    pose: npt.NDArray[np.float32] | None
    "(4, 4) row-vector matrix to the world, metres; None where it was not tracked."
    intrinsics: tuple[float, float, float, float] | None
    "fx, fy, cx, cy of this picture in pixels, where the camera tells them."
    metadata: np.void
    "All that the packet says about it."

    def rgb(self) -> npt.NDArray[np.uint8]:
        """Return the picture as (height, width, 3) uint8 RGB."""
        if isinstance(self.picture, np.ndarray):
            import cv2

            grey = self.picture.shape[0] == vlc_height(self.picture)
            code = cv2.COLOR_GRAY2RGB if grey else cv2.COLOR_YUV2RGB_NV12
            return np.asarray(cv2.cvtColor(np.ascontiguousarray(self.picture), code), np.uint8)
        return np.asarray(self.picture.to_ndarray(format="rgb24"), np.uint8)

    def grey(self) -> npt.NDArray[np.uint8]:
        """Return the luma alone, (height, width) uint8: what a grey camera saw."""
        if isinstance(self.picture, np.ndarray):
            return self.picture[: vlc_height(self.picture)]
        plane = self.picture.planes[0]
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        return rows[:, : plane.width]


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
    "62.976 MHz clocks of the sensor, 0 where it has none."
    depth_mm: UInt16
    brightness: UInt16 | None
    pose: npt.NDArray[np.float32] | None


class _Unit:
    """One packet on its way to a picture."""

    def __init__(self, payload: bytes, stream: StoredPackets) -> None:
        kind = stream.name.rpartition("/")[2]
        self.zdepth: memoryview | None = None
        self.metadata: Any = None
        self.sensor_ticks = 0
        if kind == "depth_ahat":
            packet = depth_ahat.decode(payload)
            self.image, self.sensor_ticks = packet.image, packet.sensor_ticks
            self.zdepth = packet.zdepth if packet.size_z else None
        elif kind.startswith("vlc_"):
            grey = vlc.decode(payload)
            self.image, self.metadata = grey.picture, grey.metadata
        else:
            coloured = pv.decode(payload)
            self.image, self.metadata = coloured.picture, coloured.metadata
        if len(self.image) == 0:
            raise BadPacket(kind, "it holds no picture")


def _units(stream: StoredPackets, start: int, stop: int) -> Iterator[tuple[int, _Unit]]:
    """Cut the packets of rows [start, stop); those that are none are told to the stream and left out."""
    for row, payload in zip(count(start), stream.payloads(start, stop), strict=False):
        try:
            yield row, _Unit(payload, stream)
        except SensorError as error:
            stream.bad[row] = str(error)


def key_row(stream: StoredPackets, row: int) -> int:
    """Find the nearest row at or before `row` where decoding can start (the first row when there is none)."""
    codec = stream.format.get("codec", RAW)
    if codec == RAW:
        return row
    for candidate in range(row, -1, -1):
        try:
            if video.is_key_frame(codec, _Unit(stream.payload(candidate), stream).image):
                return candidate
        except SensorError:
            continue
    return 0


def _decoded(stream: StoredPackets, start: int, stop: int) -> Iterator[tuple[int, _Unit, Any]]:
    """Yield (row, unit, picture) of the rows [start, stop) of an encoded stream."""
    rows: list[int] = []
    units: dict[int, _Unit] = {}

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
    """Return the pictures of rows [start, stop) of a front, grey or extended camera, a few in memory at a time.

    Packets that do not decode are left out and named in `stream.bad`. Raises NotOfThisKind.
    """
    check_kind(stream.name, "frames")
    return _frames(stream, stream.name.rpartition("/")[2], start, stop)


def _frames(stream: StoredPackets, kind: str, start: int, stop: int) -> Iterator[Frame]:
    ticks = stream.index["device_ticks"]
    found: Iterator[tuple[int, _Unit, Any]]
    if stream.format.get("codec", RAW) == RAW:
        found = ((row, unit, _raw(kind, unit)) for row, unit in _units(stream, start, stop))
    else:
        found = _decoded(stream, start, stop)
    for row, unit, picture in found:
        if picture is None:
            stream.bad[row] = "a raw picture of another size"
            continue
        optics = None
        if kind == "pv":
            fx, fy = (float(value) for value in unit.metadata["focal_length"])
            cx, cy = (float(value) for value in unit.metadata["principal_point"])
            optics = (fx, fy, cx, cy)
        yield Frame(row, int(ticks[row]), picture, _pose(stream, row), optics, unit.metadata)


def _raw(kind: str, unit: _Unit) -> npt.NDArray[np.uint8] | None:
    if kind.startswith("vlc_"):
        grey = np.frombuffer(unit.image, np.uint8)
        return grey.reshape(480, 640) if len(grey) == 480 * 640 else None
    try:
        return pv.raw_picture(pv.PvPacket(unit.image, unit.metadata))
    except SensorError:
        return None


def _pose(stream: StoredPackets, row: int) -> npt.NDArray[np.float32] | None:
    pose = stream.pose(row)
    return pose if pose is not None and pose[3, 3] != 0 else None


def read_depth(stream: StoredPackets, start: int, stop: int) -> Iterator[DepthFrame]:
    """Return the depth pictures of rows [start, stop), lazily. Raises NotOfThisKind."""
    check_kind(stream.name, "depth")
    return _depth(stream, start, stop)


def _depth(stream: StoredPackets, start: int, stop: int) -> Iterator[DepthFrame]:
    readers = {"depth_ahat": _ahat, "depth_longthrow": _longthrow, "extended_depth": _extended}
    ticks = stream.index["device_ticks"]
    read = readers[stream.name.rpartition("/")[2]]
    for row, sensor_ticks, depth, brightness in read(stream, start, stop):
        yield DepthFrame(row, int(ticks[row]), sensor_ticks, depth, brightness, _pose(stream, row))


_Depth = Iterator[tuple[int, int, UInt16, "UInt16 | None"]]


def _ahat(stream: StoredPackets, start: int, stop: int) -> _Depth:
    if stream.format.get("codec") == RAW:
        pairs: Iterator[tuple[int, _Unit, Any]] = (
            (row, unit, None) for row, unit in _units(stream, start, stop)
        )
    else:
        pairs = _decoded(stream, start, stop)
    for row, unit, picture in pairs:
        try:
            depth, brightness = _ahat_images(unit, picture)
        except SensorError as error:
            stream.bad[row] = str(error)
            continue
        yield row, unit.sensor_ticks, depth, brightness


def _ahat_images(unit: _Unit, picture: Any) -> tuple[UInt16, UInt16]:
    if unit.zdepth is not None:
        depth = zdepth.depth(unit.zdepth)
        if picture is None:
            return depth, np.frombuffer(unit.image, "<u2").reshape(depth.shape)
        luma = Frame(0, 0, picture, None, None, np.void(b"")).grey().astype(np.uint16)
        return depth, luma * luma
    if picture is None:
        return depth_ahat.raw_images(unit.image)
    return depth_ahat.unpack_frame(picture)


def _longthrow(stream: StoredPackets, start: int, stop: int) -> _Depth:
    for row, payload in zip(count(start), stream.payloads(start, stop), strict=False):
        try:
            packet = depth_longthrow.decode(payload)
            depth, brightness = depth_longthrow.images(packet.png)
        except SensorError as error:
            stream.bad[row] = str(error)
            continue
        yield row, packet.sensor_ticks, depth, brightness


def _extended(stream: StoredPackets, start: int, stop: int) -> _Depth:
    for row, payload in zip(count(start), stream.payloads(start, stop), strict=False):
        try:
            packet = extended_depth.decode(payload)
            is_raw = stream.format.get("codec") == RAW
            depth = extended_depth.raw_depth(packet) if is_raw else zdepth.depth(packet.image)
        except SensorError as error:
            stream.bad[row] = str(error)
            continue
        yield row, 0, depth, None
