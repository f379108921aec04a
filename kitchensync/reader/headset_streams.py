"""Streams of a headset and of plug-in sensors: frames, depth, sound and packets."""

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
    from kitchensync.storage.chunks.stored_packets import StoredPackets
    from kitchensync.storage.geometry.camera_models import Pinhole

READ_ON = 45
"""Frames up to this many ahead are reached by decoding on instead of from a key frame."""
AUDIO_LEAD = 2
"""Packets that are decoded before an AAC packet: its decoder needs the sound that overlaps with it."""
AnyFrame = TypeVar("AnyFrame", Frame, DepthFrame)


class PacketStream(TimedStream):
    """The packets of a stream outside privacy pauses, decoded by its sensor."""

    kind = "packets"

    def __init__(self, recording: RecordingSource, name: str) -> None:
        super().__init__(recording, name)
        self.stored = recording.stored[name]

    @cached_property
    def rows(self) -> Int64:
        """The packet of each value, (n,), numbered as in `sync/index.parquet`."""
        return np.flatnonzero(~self.stored.hidden)

    def __len__(self) -> int:
        """Count the values."""
        return len(self.rows)

    @cached_property
    def session_ns(self) -> Int64:
        """Session time of each value, (n,) int64 ns; without clock exchanges of a plug-in sensor its arrival.

        Raises NotKnown.
        """
        index, device = self.stored.index[self.rows], self.name.partition("/")[0]
        arrived_ns = index["host_ns"].astype(np.int64)
        about = self.recording.stored.manifest["devices"].get(device)
        is_headset = about is not None and about["kind"] == "hololens"
        if not is_headset and self.recording.clock.host_clock(device) is None:
            return self.recording.clock.of_host(arrived_ns)
        return self.recording.clock.of_ticks(device, index["device_ticks"].astype(np.int64), arrived_ns)

    def _value(self, number: int) -> Any:
        row = int(self.rows[number])
        for _, value in self.stored.decoded(row, row + 1):
            return value
        raise self._unreadable(row)

    def _unreadable(self, row: int) -> Unreadable:
        return Unreadable(f"{self.name} packet {row}: {self.stored.bad.get(row, 'it cannot be decoded')}")


class PosedStream(PacketStream, Generic[AnyFrame]):
    """Frames or depth frames with their poses; reading them in order is fast."""

    read_from: Callable[[StoredPackets, int, int], Iterator[AnyFrame]]
    "Decodes rows of a stream, without the frames that depend on a lost one."

    @cached_property
    def _reader(self) -> _SequentialReader[AnyFrame]:
        return _SequentialReader(lambda row: type(self).read_from(self.stored, row, len(self.stored)))

    def close(self) -> None:
        """Close the files that are open."""
        if "_reader" in self.__dict__:
            self._reader.close()

    def frame(self, number: int) -> AnyFrame:
        """Return a frame with its timestamp, pose and optics. Raises IndexError, Unreadable."""
        row = int(self.rows[number])
        frame = self._reader.at(row)
        if frame is None:
            raise self._unreadable(row)
        return frame

    @cached_property
    def world_from_camera(self) -> Floats:
        """Pose of the camera at each frame, (n, 4, 4) column vectors, metres, NaN where it was not tracked.

        Camera axes are OpenCV's: x right, y down, z forward. The y axis of the world is up.
        """
        poses = self.stored.poses()
        if poses is None:
            return np.full((len(self), 4, 4), np.nan)
        # The headset sends row-vector poses, all zeros where it was not tracked. The front camera has its own poses,
        # every other sensor those of the rig.
        sent = np.swapaxes(np.asarray(poses, np.float64)[self.rows], 1, 2)
        sent[sent[:, 3, 3] == 0] = np.nan
        is_front = is_front_camera(self.name)
        own = inverse(OPENCV_FROM_PV_AXES) if is_front else rig_from(self.recording.stored, self.name)
        return np.asarray(sent @ own, np.float64)

    def sample_pose(self, times: npt.ArrayLike) -> Floats:
        """Interpolate `world_from_camera` at session times (m,), (m, 4, 4); NaN over gaps and new world frames."""
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
    """Frames of a camera of the headset, uint8 RGB (h, w, 3)."""

    kind = "frames"
    read_from = staticmethod(unbroken_frames)

    def _value(self, number: int) -> npt.NDArray[np.uint8]:
        return self.frame(number).rgb()

    def lens(self, number: int) -> Pinhole:
        """Return the front camera's lens at a frame, without decoding it: the focal length changes with the focus.

        Raises Unreadable, and Refused if the recording lacks the device's constants.
        """
        sensor, row = headset_stream(self.name.rpartition("/")[2]), int(self.rows[number])
        assert sensor.cut is not None, "all camera streams have `cut`"
        try:
            metadata = sensor.cut(self.stored.payload(row)).metadata
        except SensorError as error:
            self.stored.bad.setdefault(row, str(error))
            raise self._unreadable(row) from error
        undecoded = Frame(row, 0, None, None, sensor.optics(metadata), metadata)
        return front_lens(self.recording.stored, self.name, undecoded)

    def project(self, number: int, points: npt.ArrayLike) -> Floats:
        """Project points of the world, (..., 3) metres, into frame `number`: pixels (..., 2), x and y.

        NaN outside of the frame, behind the camera, and for points that are NaN.

        Raises Unreadable, and Refused if the recording lacks the device's constants.
        """
        is_front = is_front_camera(self.name)
        lens = self.lens(number) if is_front else look_up_table(self.recording.stored, self.name)
        return pixels_in_picture(lens, inverse(self.world_from_camera[number]), points)


class DepthStream(PosedStream[DepthFrame]):
    """Depth, float32 metres (h, w) along the ray of each pixel, 0 where it is missing."""

    kind = "depth frames"
    read_from = staticmethod(unbroken_depth)

    def _value(self, number: int) -> Floats32:
        return np.asarray(self.frame(number).depth_mm, np.float32) / np.float32(1000)

    def grey(self, number: int) -> npt.NDArray[np.uint16] | None:
        """Return the reflected infrared brightness, uint16 (h, w); None if it was not sent."""
        return self.frame(number).brightness

    @cached_property
    def _source(self) -> DepthSource:
        return DepthSource(self.recording, self.name)

    def points_at(self, seconds: float) -> Floats32:
        """Return `points` of the frame nearest to a session time."""
        return self.points(self.index_at(seconds))

    def points(self, number: int) -> Floats32:
        """Return the points of frame `number` in the world, (m, 3) metres, without pixels whose depth wrapped around.

        Raises Unreadable if the headset was not tracked, and Refused if the recording lacks the device's constants.
        """
        if not isinstance(number, Integral):
            raise TypeError(f"{number!r} is not the number of a frame; points_at takes session seconds")
        row = int(self.rows[int(number)])
        view = next(self._source.views(row, row + 1), None)
        if view is None:
            raise Unreadable(
                f"{self.name} packet {row}: it cannot be decoded, or the headset was not tracked"
            )
        return self._source.points(view)[0]


class SoundStream(SoundBlocks, PacketStream):
    """Blocks of sound, float32 (channels, samples) within -1 and 1; their times are those of the first samples."""

    @property
    def rate_hz(self) -> int:
        """Samples per second."""
        return int(self.stored.format["rate_hz"])

    def bound_at(self, seconds: float) -> float:
        """Return the error bound of `times`, seconds. Raises NotKnown.

        For AAC it includes the delay of the encoder, which is not measured.
        """
        is_aac = self.stored.format.get("codec") == "aac"
        return super().bound_at(seconds) + (AAC_SAMPLES / self.rate_hz if is_aac else 0.0)

    def _value(self, number: int) -> Floats32:
        row = int(self.rows[number])
        lead = AUDIO_LEAD if self.stored.format.get("codec") == "aac" else 0
        ticks = int(self.stored.index["device_ticks"][row])
        blocks = [block for at, block in read_sound(self.stored, max(row - lead, 0), row + 1) if at == ticks]
        if not blocks:
            raise self._unreadable(row)
        return np.concatenate(blocks, axis=1)


class _SequentialReader(Generic[AnyFrame]):
    """Frames by row: reading forward is fast, going back starts at a key frame."""

    def __init__(self, read: Callable[[int], Iterator[AnyFrame]]) -> None:
        self._read: Callable[[int], Iterator[AnyFrame]] = read
        self._frames: Iterator[AnyFrame] = iter(())
        self._last: AnyFrame | None = None
        self._next = -1
        reopens_in_child(self)

    def leave_to_parent(self) -> object:
        """Forget the decoder of the parent process."""
        parents_decoder = self._frames, self._last
        self.close()
        return parents_decoder

    def close(self) -> None:
        """Close the decoder; the next frame opens another."""
        self._frames, self._last, self._next = iter(()), None, -1

    def at(self, row: int) -> AnyFrame | None:
        """Return the frame of a row; None if it cannot be decoded."""
        if self._last is not None and self._last.row == row:
            return self._last
        if not 0 <= row - self._next <= READ_ON or self._next < 0:
            self._frames, self._next = self._read(row), row
        for frame in self._frames:
            self._last, self._next = frame, frame.row + 1
            if frame.row >= row:
                return frame if frame.row == row else None
        self._last, self._next = None, -1
        return None
