"""A recording as `kitchensync.open` gives it: streams by name, an instant of all of them, steps, events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from kitchensync.reader.shown_recording import as_html, as_text
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
    """A stream of the main headset, or the film of the only camera, as an attribute with a type."""

    def __init__(self, kind: type[S], words: str) -> None:
        self.kind, self.__doc__ = kind, words

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, recording: None, owner: type) -> Self: ...
    @overload
    def __get__(self, recording: OpenedRecording, owner: type) -> S: ...
    def __get__(self, recording: OpenedRecording | None, owner: type) -> Self | S:
        """Return the stream. Raises AttributeError where the recording has none."""
        return self if recording is None else cast(S, recording._attribute(self._name))


class OpenedRecording(RecordingSource):
    """One recording, read only: `rec.pv[0]`, `rec.gyroscope.sample(times)`, `rec.at(seconds=20)`, `rec.steps`.

    Streams: `rec.streams` names them, `rec[name]` is one, and the main headset's are attributes by their short name
    (`pv`, `vlc_leftfront`, `depth`, `gyroscope`, `microphone` ..), as are `head`, `hands`, `gaze` and each camera's
    film by the camera's name (`gopro`). Session time is seconds since the main headset's first packet.
    """

    pv = StreamAttribute(PictureStream, "Pictures of the front camera, uint8 RGB (h, w, 3).")
    vlc_leftfront = StreamAttribute(
        PictureStream, "Pictures of the left grey camera in front, uint8 RGB (h, w, 3)."
    )
    vlc_leftleft = StreamAttribute(
        PictureStream, "Pictures of the left grey camera at the side, uint8 RGB (h, w, 3)."
    )
    vlc_rightfront = StreamAttribute(
        PictureStream, "Pictures of the right grey camera in front, uint8 RGB (h, w, 3)."
    )
    vlc_rightright = StreamAttribute(
        PictureStream, "Pictures of the right grey camera at the side, uint8 RGB (h, w, 3)."
    )
    extended_video = StreamAttribute(
        PictureStream, "Pictures of another camera of the headset, uint8 RGB (h, w, 3)."
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
        SoundStream, "Blocks of another sound, float32 (channels, samples) within -1 and 1."
    )
    spatial_input = StreamAttribute(PacketStream, "Head, gaze and hands as the headset sends them.")
    eye_tracking = StreamAttribute(PacketStream, "Rays of both eyes as the headset sends them.")
    head = StreamAttribute(HeadStream, "Poses of the head, float64 (4, 4): world from head, metres.")
    hands = StreamAttribute(HandStream, "Joints of both hands in the world, float32 m (26, 3).")
    gaze = StreamAttribute(GazeStream, "Rays of the gaze in the world: origin in metres and direction.")
    gopro = StreamAttribute(FilmStream, "Pictures of the only camera's film, uint8 RGB (h, w, 3).")

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
        """Return a stream by its full name, or by the name of its attribute. Raises UnknownStream, FilesFreed."""
        if not isinstance(name, str):
            raise TypeError(f"a stream is found by its name, such as {self.streams[:1]}, not by {name!r}")
        name = name if "/" in name else self.attributes.get(name, name)
        if name not in self._streams:
            self._streams[name] = self._made(name)
        return self._streams[name]

    def kind_of(self, name: str) -> type[TimedStream]:
        """Return what a stream is, by its full name, without opening it. Raises UnknownStream."""
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

    def _made(self, name: str) -> TimedStream:
        if name not in self.bodies:
            return self.kind_of(name)(self, name)
        short = name.rpartition("/")[2]
        return BODIES[short](self, name, self.source_of(name))

    if (
        not TYPE_CHECKING
    ):  # names of cameras are known at run time only; a type checker reports every other name

        def __getattr__(self, name: str) -> TimedStream:
            if name.startswith("_") or "stored" not in self.__dict__:
                raise AttributeError(name)
            return self._attribute(name)

    def _attribute(self, name: str) -> TimedStream:
        found = self.attributes.get(name)
        if found is None:
            there = ", ".join(sorted(self.attributes)) or "none"
            raise AttributeError(f"{self.id} has no stream {name}; there are: {there}")
        return self[found]

    def __dir__(self) -> list[str]:
        absent = {name for name, one in vars(OpenedRecording).items() if isinstance(one, StreamAttribute)}
        return [*({*super().__dir__()} - absent), *self.attributes]

    @cached_property
    def duration(self) -> float:
        """Session seconds of the last packet of the main headset, else of the longest film, else of any stream."""
        head = self.clock.main_headset
        ends: list[TimedStream] = [
            PacketStream(self, name) for name in self.stored.streams if name.partition("/")[0] == head
        ]
        ends = ends or [self[f"{camera}/video"] for camera in self.film_cameras]
        ends = ends or [self[name] for name in self.stored.streams]
        return max((last for one in ends if (last := _last_s(one)) is not None), default=0.0)

    def at(self, seconds: float) -> OneInstant:
        """Return one instant of all streams; each is read when it is asked for."""
        return OneInstant(self, seconds)

    def instants(
        self, hz: float, start: float = 0.0, end: float | None = None, read: Sequence[str] = ()
    ) -> InstantSequence:
        """Return instants, so many a second, `end` included: a sequence that can be pickled, as data loaders want it.

        With `read`, names of streams, each is a dictionary of arrays. Raises UnknownStream.
        """
        return InstantSequence(self, hz, start, self.duration if end is None else end, read)

    def iterate(self, hz: float, start: float = 0.0, end: float | None = None) -> Iterator[OneInstant]:
        """Yield instants, so many a second, `end` included."""
        return iter(self.instants(hz, start, end))

    @property
    def overlap(self) -> tuple[float, float]:
        """First and last session second at which every camera has pictures, for `iterate(hz, *rec.overlap)`.

        Raises NotKnown where a film is not aligned.
        """
        cameras = [
            one for one in map(self.__getitem__, self.streams) if isinstance(one, PictureStream | FilmStream)
        ]
        times = [one.times[np.isfinite(one.times)] for one in cameras if len(one)]
        return max((float(one.min()) for one in times), default=0.0), min(
            (float(one.max()) for one in times), default=self.duration
        )

    @cached_property
    def step_rows(self) -> list[dict[str, Any]]:
        """The rows of `steps`."""
        return step_rows_of(self)

    @property
    def steps(self) -> pandas.DataFrame:
        """One row a step that the recipe asked for or that was done. Needs pandas."""
        return steps_of(self)

    @cached_property
    def error_rows(self) -> list[ErrorRow]:
        """The rows of `errors`."""
        return error_rows_of(self)

    @property
    def errors(self) -> pandas.DataFrame:
        """One row an error: what, when, on purpose or not, who noticed it, what corrected it. Needs pandas."""
        return error_table(self.error_rows)

    @property
    def events(self) -> pandas.DataFrame:
        """What people did, by session seconds: kind, writer, bound_s, body. Needs pandas."""
        return events_of(self)

    @property
    def calibration(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Constants of each sensor that its headset gave: name of the stream -> name -> array."""
        found = {}
        for name in self.stored.streams:
            try:
                tables = self.stored.calibration(name)
            except StorageError:
                continue
            found[name] = {key: np.asarray(table.values) for key, table in tables.items()}
        return found

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def _last_s(stream: TimedStream) -> float | None:
    """Return the last session second of a stream; None where it has none."""
    try:
        known = stream.times[np.isfinite(stream.times)]
    except NotKnown:
        return None
    return float(known.max()) if len(known) else None


def _open_again(path: Path, opened_with: dict[str, Any]) -> OpenedRecording:
    return OpenedRecording(path, **opened_with)
