"""The streams of a headset, and those of plug-in sensors: pictures, depth, sound and packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kitchensync.reader.cameras.depth_views import DepthSource
from kitchensync.reader.cameras.recorded import front_lens, look_up_table, rig_from
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.reader.timed_stream import SoundBlocks, TimedStream, Unreadable
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import headset_stream, is_front_camera
from kitchensync.sensors.hololens.streams.microphone import AAC_SAMPLES
from kitchensync.shell.array_types import Floats, Floats32, Int64
from kitchensync.shell.forked_child import reopens_in_child
from kitchensync.storage.geometry.reference_frames import OPENCV_FROM_PV_AXES, inverse
from kitchensync.storage.geometry.visibility import pixels_in_picture
from kitchensync.storage.reading.headset_pictures import (
    DepthFrame,
    Frame,
    unbroken_depth,
    unbroken_frames,
)
from kitchensync.storage.reading.records import read_sound
from kitchensync.storage.timeline.pose_track import PoseTrack

if TYPE_CHECKING:
    from kitchensync.reader.cameras.depth_views import DepthSource
    from kitchensync.storage.chunks.stored_packets import StoredPackets
    from kitchensync.storage.geometry.camera_models import Pinhole

READ_ON = 45
"""A picture no further ahead than this is reached by decoding on instead of from a key picture."""
AUDIO_LEAD = 2
"""A compressed sound packet is decoded together with so many before it, whose sound goes on in it."""
Shown = TypeVar("Shown", Frame, DepthFrame)


class PacketStream(TimedStream):
    """The packets of a stream, as its sensor takes them apart; those of a privacy pause are not among them."""

    kind = "packets"

    def __init__(self, recording: RecordingSource, name: str) -> None:
        super().__init__(recording, name)
        self.stored = recording.stored[name]

    @cached_property
    def rows(self) -> Int64:
        """The packet of each value, (n,), as `sync/index.parquet` numbers them."""
        return np.flatnonzero(~self.stored.hidden)

    def __len__(self) -> int:
        """Count the values."""
        return len(self.rows)

    @cached_property
    def session_ns(self) -> Int64:
        """Session time of each value, (n,) int64 ns; a plug-in's is that of its arrival. Raises NotKnown."""
        index, device = self.stored.index[self.rows], self.name.partition("/")[0]
        arrived_ns = index["host_ns"].astype(np.int64)
        about = self.recording.stored.manifest["devices"].get(device)
        if about is None or about["kind"] != "hololens":
            return self.recording.clock.of_host(arrived_ns)
        return self.recording.clock.of_ticks(device, index["device_ticks"].astype(np.int64), arrived_ns)

    def _value(self, number: int) -> Any:
        row = int(self.rows[number])
        for _, value in self.stored.decoded(row, row + 1):
            return value
        raise self._lost(row)

    def _lost(self, row: int) -> Unreadable:
        return Unreadable(f"{self.name} packet {row}: {self.stored.bad.get(row, 'it cannot be decoded')}")


class PosedStream(PacketStream, Generic[Shown]):
    """Pictures or depth with the pose of each, read on quickly from one to the next."""

    read_from: Callable[[StoredPackets, int, int], Iterator[Shown]]
    "Decodes rows of a stream, without those that hang on a lost one."

    @cached_property
    def _reader(self) -> _ReadOn[Shown]:
        return _ReadOn(lambda row: type(self).read_from(self.stored, row, len(self.stored)))

    def close(self) -> None:
        """Close the files that are open."""
        if "_reader" in self.__dict__:
            self._reader.close()

    def frame(self, number: int) -> Shown:
        """Return a picture with its stamp, pose and optics. Raises IndexError, Unreadable."""
        row = int(self.rows[number])
        found = self._reader.at(row)
        if found is None:
            raise self._lost(row)
        return found

    @cached_property
    def world_from_camera(self) -> Floats:
        """Pose of the camera at each picture, (n, 4, 4) column vectors, metres, NaN where it was not tracked.

        Camera axes are OpenCV's: x right, y down, z forward; the world's y is up.
        """
        poses = self.stored.poses()
        if poses is None:
            return np.full((len(self), 4, 4), np.nan)
        found = np.swapaxes(np.asarray(poses, np.float64)[self.rows], 1, 2)
        found[found[:, 3, 3] == 0] = np.nan
        is_front = is_front_camera(self.name)
        own = inverse(OPENCV_FROM_PV_AXES) if is_front else rig_from(self.recording.stored, self.name)
        return np.asarray(found @ own, np.float64)

    def sample_pose(self, times: npt.ArrayLike) -> Floats:
        """Return `world_from_camera` at session times (m,), (m, 4, 4); NaN across gaps and between world frames."""
        ticks = np.rint(np.atleast_1d(np.asarray(times, np.float64)) * 1e7).astype(np.int64)
        return self._track.at(ticks).world_from_local

    @cached_property
    def _track(self) -> PoseTrack:
        worlds = self.recording.worlds_of(self.name)[self.rows]
        poses = np.asarray(self.world_from_camera, np.float64)
        return PoseTrack.of_transforms(self.session_ns // 100, poses, worlds)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == f"world_from_{self.name.rpartition('/')[2]}":
                return self.world_from_camera
            return super().__getattr__(name)


class PictureStream(PosedStream[Frame]):
    """Pictures of a camera of the headset, uint8 RGB (h, w, 3)."""

    kind = "pictures"
    read_from = staticmethod(unbroken_frames)

    def _value(self, number: int) -> npt.NDArray[np.uint8]:
        return self.frame(number).rgb()

    def lens(self, number: int) -> Pinhole:
        """Return the front camera's lens at a picture, without decoding it: its focus moves.

        Raises Unreadable, Refused where the device's constants are not in the recording.
        """
        sensor, row = headset_stream(self.name.rpartition("/")[2]), int(self.rows[number])
        assert sensor.cut is not None, "every camera has one"
        try:
            metadata = sensor.cut(self.stored.payload(row)).metadata
        except SensorError as error:
            self.stored.bad.setdefault(row, str(error))  # where it is damaged, that is the reason
            raise self._lost(row) from error
        told = Frame(row, 0, None, None, sensor.optics(metadata), metadata)
        return front_lens(self.recording.stored, self.name, told)

    def project(self, number: int, points: npt.ArrayLike) -> Floats:
        """Return where points of the world, (..., 3) metres, are in picture `number`: pixels (..., 2), x and y.

        NaN outside of the picture, behind the camera, and for points that are NaN.

        Raises Unreadable, Refused where the device's constants are not in the recording.
        """
        is_front = is_front_camera(self.name)
        lens = self.lens(number) if is_front else look_up_table(self.recording.stored, self.name)
        return pixels_in_picture(lens, inverse(self.world_from_camera[number]), points)


class DepthStream(PosedStream[DepthFrame]):
    """Depth, float32 metres (h, w) along the ray of each pixel, 0 where there is none."""

    kind = "depth pictures"
    read_from = staticmethod(unbroken_depth)

    def _value(self, number: int) -> Floats32:
        return np.asarray(self.frame(number).depth_mm, np.float32) / np.float32(1000)

    def grey(self, number: int) -> npt.NDArray[np.uint16] | None:
        """Return how bright the sensor's own light came back, uint16 (h, w); None where it was not sent."""
        return self.frame(number).brightness

    @cached_property
    def _source(self) -> DepthSource:
        return DepthSource(self.recording, self.name)

    def points_at(self, seconds: float) -> Floats32:
        """Return `points` of the picture nearest to a session time."""
        return self.points(self.index_at(seconds))

    def points(self, number: int) -> Floats32:
        """Return the points of picture `number` in the world, (m, 3) metres; what wrapped around is left out.

        Raises Unreadable where it was not tracked, Refused where the device's constants are not in the recording.
        """
        if not isinstance(number, Integral):
            raise TypeError(f"a picture has a number, {number!r} is none; points_at takes session seconds")
        row = int(self.rows[int(number)])
        view = next(self._source.views(row, row + 1), None)
        if view is None:
            raise Unreadable(f"{self.name} packet {row}: it cannot be decoded, or the headset was lost")
        return self._source.points(view)[0]


class SoundStream(SoundBlocks, PacketStream):
    """Blocks of sound, float32 (channels, samples) within -1 and 1; a time is that of a block's first sample."""

    @property
    def rate_hz(self) -> int:
        """Samples a second."""
        return int(self.stored.format["rate_hz"])

    def bound_at(self, seconds: float) -> float:
        """How far `times` may be off, seconds: that of AAC has the delay of its encoder, which nobody measured.

        Raises NotKnown.
        """
        is_aac = self.stored.format.get("codec") == "aac"
        return super().bound_at(seconds) + (AAC_SAMPLES / self.rate_hz if is_aac else 0.0)

    def _value(self, number: int) -> Floats32:
        row = int(self.rows[number])
        lead = AUDIO_LEAD if self.stored.format.get("codec") == "aac" else 0
        ticks = int(self.stored.index["device_ticks"][row])
        blocks = [block for at, block in read_sound(self.stored, max(row - lead, 0), row + 1) if at == ticks]
        if not blocks:
            raise self._lost(row)
        return np.concatenate(blocks, axis=1)


class _ReadOn(Generic[Shown]):
    """Pictures by row: reading on is quick, going back starts at a key picture."""

    def __init__(self, read: Callable[[int], Iterator[Shown]]) -> None:
        self._read: Callable[[int], Iterator[Shown]] = read
        self._pictures: Iterator[Shown] = iter(())
        self._held: Shown | None = None
        self._next = -1
        reopens_in_child(self)

    def leave_to_parent(self) -> object:
        """Forget the decoder of the process that this one was forked from."""
        left = self._pictures, self._held
        self._pictures, self._held, self._next = iter(()), None, -1
        return left

    def close(self) -> None:
        """Forget where it was, and close what that held open."""
        self._pictures, self._held, self._next = iter(()), None, -1

    def at(self, row: int) -> Shown | None:
        """Return the picture of a row; None where it does not decode."""
        if self._held is not None and self._held.row == row:
            return self._held
        if not 0 <= row - self._next <= READ_ON or self._next < 0:
            self._pictures, self._next = self._read(row), row
        for picture in self._pictures:
            self._held, self._next = picture, picture.row + 1
            if picture.row >= row:
                return picture if picture.row == row else None
        self._held, self._next = None, -1
        return None
