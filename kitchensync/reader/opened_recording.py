"""The recording that `kitchensync.open` returns: streams by name, instants, steps, errors and events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from kitchensync.reader.body_streams import BodyStream, GazeStream, HandStream, HeadStream
from kitchensync.reader.film_streams import CameraMotion, CameraSound, FilmStream
from kitchensync.reader.headset_streams import DepthStream, PacketStream, PictureStream, SoundStream
from kitchensync.reader.instant_sequence import InstantSequence, OneInstant
from kitchensync.reader.motion_streams import HeadsetMotion
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.record_streams import RecordStream
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.reader.recording_summary import as_html, as_text
from kitchensync.reader.step_table import error_rows_of, error_table, events_of, step_rows_of, steps_of
from kitchensync.reader.timed_stream import TimedStream
from kitchensync.sensors.hololens.headset_stream import DEPTH, FRAMES, SAMPLES, SOUND
from kitchensync.sensors.stream import record_of
from kitchensync.storage.errors import StorageError, UnknownStream
from kitchensync.storage.reading.stream_kinds import CAMERA_STREAMS

if TYPE_CHECKING:
    import pandas

    from kitchensync.operations.error_rows import ErrorRow

HEADSET_KINDS: dict[str, type[PacketStream | HeadsetMotion]] = {
    FRAMES: PictureStream, DEPTH: DepthStream, SAMPLES: HeadsetMotion, SOUND: SoundStream,
}  # fmt: skip
CAMERA_KINDS: dict[str, type[TimedStream]] = {
    "pictures": FilmStream,
    "sound": CameraSound,
    "imu": CameraMotion,
}
BODIES: dict[str, type[BodyStream]] = {"head": HeadStream, "hands": HandStream, "gaze": GazeStream}


S = TypeVar("S", bound=TimedStream)


class StreamAttribute(Generic[S]):
    """A stream of the main headset, or the video of the only camera, as an attribute with a type."""

    def __init__(self, kind: type[S], doc: str) -> None:
        self.kind, self.__doc__ = kind, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, recording: None, owner: type) -> Self: ...
    @overload
    def __get__(self, recording: OpenedRecording, owner: type) -> S: ...
    def __get__(self, recording: OpenedRecording | None, owner: type) -> Self | S:
        """Return the stream. Raises AttributeError if the recording has none."""
        return self if recording is None else cast(S, recording._attribute(self._name))


class OpenedRecording(RecordingSource):
    """One recording, read only: `rec.pv[0]`, `rec.gyroscope.sample(times)`, `rec.at(seconds=20)`, `rec.steps`.

    `rec.streams` lists the names of the streams and `rec[name]` returns a stream. Streams of the main headset are
    also attributes by their short names (`pv`, `vlc_leftfront`, `depth`, `gyroscope`, `microphone` ..). So are
    `head`, `hands`, `gaze`, and each camera's video by the camera's name (`gopro`). Session time is in seconds
    since the first packet of the main headset.
    """

    pv = StreamAttribute(PictureStream, "Frames of the front camera, uint8 RGB (h, w, 3).")
    vlc_leftfront = StreamAttribute(
        PictureStream, "Frames of the left front grey camera, uint8 RGB (h, w, 3)."
    )
    vlc_leftleft = StreamAttribute(PictureStream, "Frames of the left side grey camera, uint8 RGB (h, w, 3).")
    vlc_rightfront = StreamAttribute(
        PictureStream, "Frames of the right front grey camera, uint8 RGB (h, w, 3)."
    )
    vlc_rightright = StreamAttribute(
        PictureStream, "Frames of the right side grey camera, uint8 RGB (h, w, 3)."
    )
    extended_video = StreamAttribute(
        PictureStream, "Frames of another camera of the headset, uint8 RGB (h, w, 3)."
    )
    depth = StreamAttribute(
        DepthStream, "Far depth, else near depth, along the ray of each pixel, float32 m (h, w)."
    )
    depth_longthrow = StreamAttribute(DepthStream, "Far depth along the ray of each pixel, float32 m (h, w).")
    depth_ahat = StreamAttribute(DepthStream, "Near depth along the ray of each pixel, float32 m (h, w).")
    extended_depth = StreamAttribute(
        DepthStream, "Depth of another camera along the ray of each pixel, float32 m (h, w)."
    )
    gyroscope = StreamAttribute(HeadsetMotion, "Angular velocity in the sensor's axes, float32 rad/s (3,).")
    accelerometer = StreamAttribute(
        HeadsetMotion, "Acceleration with gravity in the sensor's axes, float32 m/s^2 (3,)."
    )
    magnetometer = StreamAttribute(
        HeadsetMotion, "The magnetic field in the sensor's axes as the headset sends it, (3,)."
    )
    microphone = StreamAttribute(SoundStream, "Blocks of sound, float32 (channels, samples) within -1 and 1.")
    extended_audio = StreamAttribute(
        SoundStream, "Blocks of sound of another microphone, float32 (channels, samples) within -1 and 1."
    )
    spatial_input = StreamAttribute(PacketStream, "Head, gaze and hands as the headset sends them.")
    eye_tracking = StreamAttribute(PacketStream, "Rays of both eyes as the headset sends them.")
    head = StreamAttribute(HeadStream, "Poses of the head, float64 (4, 4): world from head, metres.")
    hands = StreamAttribute(HandStream, "Joints of both hands in the world, float32 m (26, 3).")
    gaze = StreamAttribute(GazeStream, "Rays of the gaze in the world: origin in metres and direction.")
    gopro = StreamAttribute(FilmStream, "Frames of the only camera's video, uint8 RGB (h, w, 3).")

    @cached_property
    def _streams(self) -> dict[str, TimedStream]:
        return {}

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _open_again, (self.path, self._opened_with)

    def __enter__(self) -> OpenedRecording:
        """Return the recording."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files that are open."""
        self.close()

    def close(self) -> None:
        """Close the files that are open."""
        for stream in self._streams.values():
            stream.close()
        self.stored.close()

    def __getitem__(self, name: str) -> TimedStream:
        """Return a stream by its full name or its attribute name. Raises UnknownStream, FilesFreed."""
        if not isinstance(name, str):
            raise TypeError(f"streams are indexed by name, such as {self.streams[:1]}, not by {name!r}")
        name = name if "/" in name else self.attributes.get(name, name)
        if name not in self._streams:
            if name in self.bodies:
                kind = BODIES[name.rpartition("/")[2]]
                self._streams[name] = kind(self, name, self.source_of(name))
            else:
                self._streams[name] = self.kind_of(name)(self, name)
        return self._streams[name]

    def kind_of(self, name: str) -> type[TimedStream]:
        """Return the class of a stream by its full name, without opening it. Raises UnknownStream."""
        device, _, short = name.rpartition("/")
        if name in self.bodies:
            return BODIES[short]
        if name not in self.streams:
            raise UnknownStream(name, self.streams + self.bodies)
        if device in self.films:
            return CAMERA_KINDS[CAMERA_STREAMS[short].reader]
        sensor = self.stored.sensor(name)
        if sensor is None:
            form = self.stored.manifest["streams"][name].get("format") or {}
            return PacketStream if record_of(form) is None else RecordStream
        return HEADSET_KINDS.get(sensor.kind, PacketStream)

    # Camera names are known only at run time. Hidden from type checkers, so that they report unknown names.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> TimedStream:
            if name.startswith("_") or "stored" not in self.__dict__:
                raise AttributeError(name)
            return self._attribute(name)

    def _attribute(self, name: str) -> TimedStream:
        full = self.attributes.get(name)
        if full is None:
            available = ", ".join(sorted(self.attributes)) or "none"
            raise AttributeError(f"{self.id} has no stream {name}; available: {available}")
        return self[full]

    def __dir__(self) -> list[str]:
        typed = {name for name, value in vars(OpenedRecording).items() if isinstance(value, StreamAttribute)}
        return [*({*super().__dir__()} - typed), *self.attributes]

    @cached_property
    def duration(self) -> float:
        """Session seconds of the last packet of the main headset, else of the longest video, else of any stream."""
        head = self.clock.main_headset
        streams: list[TimedStream] = [
            PacketStream(self, name) for name in self.stored.streams if name.partition("/")[0] == head
        ]
        streams = streams or [self[f"{camera}/video"] for camera in self.film_cameras]
        streams = streams or [self[name] for name in self.stored.streams]
        ends_s: list[float] = []
        for stream in streams:
            with suppress(NotKnown):
                times = stream.times[np.isfinite(stream.times)]
                if len(times):
                    ends_s.append(float(times.max()))
        return max(ends_s, default=0.0)

    def at(self, seconds: float) -> OneInstant:
        """Return one instant of all streams; values are read when they are accessed."""
        return OneInstant(self, seconds)

    def instants(
        self, hz: float, start: float = 0.0, end: float | None = None, read: Sequence[str] = ()
    ) -> InstantSequence:
        """Return `hz` instants per second, `end` included, as a sequence that can be pickled, for data loaders.

        With `read`, names of streams, each value is a dictionary of arrays. Raises UnknownStream.
        """
        return InstantSequence(self, hz, start, self.duration if end is None else end, read)

    def iterate(self, hz: float, start: float = 0.0, end: float | None = None) -> Iterator[OneInstant]:
        """Yield `hz` instants per second, `end` included."""
        return iter(self.instants(hz, start, end))

    @property
    def overlap(self) -> tuple[float, float]:
        """First and last session second at which every camera has frames, for `iterate(hz, *rec.overlap)`.

        Raises NotKnown if a video is not aligned.
        """
        streams = [self[name] for name in self.streams]
        cameras = [stream for stream in streams if isinstance(stream, PictureStream | FilmStream)]
        times = [camera.times[np.isfinite(camera.times)] for camera in cameras if len(camera)]
        start = max((float(camera_times.min()) for camera_times in times), default=0.0)
        return start, min((float(camera_times.max()) for camera_times in times), default=self.duration)

    @cached_property
    def step_rows(self) -> list[dict[str, Any]]:
        """The rows of `steps`."""
        return step_rows_of(self)

    @property
    def steps(self) -> pandas.DataFrame:
        """One row for each step of the recipe or that was done. Needs pandas."""
        return steps_of(self)

    @cached_property
    def error_rows(self) -> list[ErrorRow]:
        """The rows of `errors`."""
        return error_rows_of(self)

    @property
    def errors(self) -> pandas.DataFrame:
        """One row for each error: description, time, on purpose or not, who noticed it, correction. Needs pandas."""
        return error_table(self.error_rows)

    @property
    def events(self) -> pandas.DataFrame:
        """One row for each event: session_s, kind, writer, bound_s, body. Needs pandas."""
        return events_of(self)

    @property
    def calibration(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Constants of the sensors, as the headset sent them: name of the stream -> name -> array."""
        constants = {}
        for name in self.stored.streams:
            try:
                tables = self.stored.calibration(name)
            except StorageError:
                continue
            constants[name] = {key: np.asarray(table.values) for key, table in tables.items()}
        return constants

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def _open_again(path: Path, opened_with: dict[str, Any]) -> OpenedRecording:
    return OpenedRecording(path, **opened_with)
