"""A recording as `kitchensync.open` gives it: streams by name, an instant of all of them, steps, events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.reader.body_streams import KEPT, BodyStream, GazeStream, HandStream, HeadStream
from kitchensync.reader.film_streams import CameraMotion, CameraSound, FilmStream, FilmTimeline
from kitchensync.reader.headset_streams import DepthStream, PacketStream, PictureStream, SoundStream
from kitchensync.reader.instant_sequence import InstantSequence, OneInstant
from kitchensync.reader.motion_streams import HeadsetMotion
from kitchensync.reader.reading_clock import NotKnown, ReadingClock
from kitchensync.reader.record_streams import RecordStream
from kitchensync.reader.timed_stream import TimedStream
from kitchensync.sensors.hololens.catalogue import STREAMS, headset_stream
from kitchensync.sensors.hololens.headset_stream import DEPTH, FRAMES, SAMPLES, SOUND
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.sensors.stream import record_of
from kitchensync.shell.array_types import Floats, Int64
from kitchensync.storage.consent import Purpose
from kitchensync.storage.errors import StorageError, UnknownStream
from kitchensync.storage.ledger_reader import read_notes
from kitchensync.storage.reading.alignments import alignment_files, read_alignment
from kitchensync.storage.reading.records import Records, read_records
from kitchensync.storage.reading.stream_kinds import CAMERA_STREAMS
from kitchensync.storage.reading.worlds import world_frames
from kitchensync.storage.recording import Recording
from kitchensync.storage.timeline.alignment import ALIGNED, CHECK, NOT_ALIGNED
from kitchensync.storage.timeline.clock_map import ClockMap

if TYPE_CHECKING:
    import pandas

    from kitchensync.operations.error_rows import ErrorRow
    from kitchensync.storage.timeline.alignment import Alignment

HEADSET_KINDS: dict[str, type[PacketStream | HeadsetMotion]] = {
    FRAMES: PictureStream, DEPTH: DepthStream, SAMPLES: HeadsetMotion, SOUND: SoundStream,
}  # fmt: skip
CAMERA_KINDS: dict[str, type[TimedStream]] = {
    "pictures": FilmStream,
    "sound": CameraSound,
    "imu": CameraMotion,
}
HEAD = tuple(name for name, stream in STREAMS.items() if stream.is_head_pose)
EYES = tuple(name for name, stream in STREAMS.items() if stream.rays_from_own_pose)
BODY: dict[str, tuple[type[BodyStream], tuple[str, ...]]] = {
    "head": (HeadStream, HEAD), "hands": (HandStream, HEAD), "gaze": (GazeStream, EYES + HEAD),
}  # fmt: skip
"""What is read of a body, and the streams that tell it, the best first."""
DEPTHS = sorted((n for n, s in STREAMS.items() if s.kind == DEPTH), key=lambda n: -STREAMS[n].farthest_mm)
"""What `depth` stands for: far depth sees the room, near depth the hands."""


class OpenedRecording:
    """One recording, read only: `rec.pv[0]`, `rec.gyroscope.sample(times)`, `rec.at(seconds=20)`, `rec.steps`.

    Streams: `rec.streams` names them, `rec[name]` is one, and the main headset's are attributes by their short name
    (`pv`, `vlc_leftfront`, `depth`, `gyroscope`, `microphone` ..), as are `head`, `hands`, `gaze` and each camera's
    film by the camera's name (`gopro`). Session time is seconds since the main headset's first packet.
    """

    def __init__(self, path: Path, *, with_pauses: bool = False, purpose: Purpose | None = None) -> None:
        """Open a folder; what lies in privacy pauses is left out but `with_pauses`.

        `purpose`: only with the consent for it. Raises NotARecording, Withdrawn, NotPermitted.
        """
        self.path, self._with_pauses, self._purpose = path, with_pauses, purpose
        self.stored = Recording(path, with_pauses=with_pauses, purpose=purpose)
        self._streams: dict[str, TimedStream] = {}
        self._timelines: dict[str, FilmTimeline] = {}
        self._records: dict[str, Records] = {}

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _open_again, (self.path, self._with_pauses, self._purpose)

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

    @property
    def id(self) -> str:
        """The recording's id, which is also the name of its folder."""
        return self.stored.id

    @cached_property
    def clock(self) -> ReadingClock:
        """Session time of host times and of device ticks, and its bound."""
        return ReadingClock(self.stored)

    @cached_property
    def films(self) -> dict[str, list[Path]]:
        """Files of each camera by its name, in order, those of adopted films too. Raises FilesFreed."""
        return self.stored.films

    @cached_property
    def films_on_films(self) -> dict[str, ClockMap]:
        """Without a headset: the map of each film to the media time of the film it was aligned with."""
        known = [
            one
            for one in map(read_alignment, alignment_files(self.path))
            if one.is_on_camera and one.is_placed
        ]
        return {one.source: one.clock_map for one in known if one.clock_map is not None}

    @cached_property
    def reference_films(self) -> set[str]:
        """Without a headset: the films whose media time is session time, as the others were aligned with them."""
        known = map(read_alignment, alignment_files(self.path))
        return {one.master for one in known if one.is_on_camera and one.is_placed}

    @property
    def film_cameras(self) -> list[str]:
        """Names of the cameras with files."""
        return [camera for camera, files in self.films.items() if files]

    def timeline(self, camera: str) -> FilmTimeline:
        """Return the times of all pictures of a camera's film, on the capture clock."""
        if camera not in self._timelines:
            self._timelines[camera] = FilmTimeline(self, camera)
        return self._timelines[camera]

    @cached_property
    def bodies(self) -> list[str]:
        """Full names of what is read of the bodies: `hololens/head`, `hololens/hands`, `hololens/gaze`."""
        headsets = [
            name for name, about in self.stored.manifest["devices"].items() if about["kind"] == "hololens"
        ]
        there = set(self.stored.streams)
        return [
            f"{device}/{short}"
            for device in headsets
            for short, (_, wanted) in BODY.items()
            if any(f"{device}/{one}" in there for one in wanted)
        ]

    @cached_property
    def streams(self) -> list[str]:
        """Full names of all streams, such as `hololens/pv` and `gopro/video`."""
        cameras = [f"{camera}/{kind}" for camera in self.film_cameras for kind in CAMERA_STREAMS]
        return [*self.stored.streams, *cameras]

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
            return BODY[short][0]
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
        return BODY[short][0](self, name, self.source_of(name))

    def source_of(self, body: str) -> str:
        """Return the stream of which head, hands or gaze of a body is read, by full names."""
        device, _, short = body.rpartition("/")
        told_by = (f"{device}/{one}" for one in BODY[short][1])
        return next(one for one in told_by if one in self.stored.streams)

    def __getattr__(self, name: str) -> TimedStream:
        if name.startswith("_") or "stored" not in self.__dict__:
            raise AttributeError(name)
        found = self.attributes.get(name)
        if found is None:
            there = ", ".join(sorted(self.attributes)) or "none"
            raise AttributeError(f"{self.id} has no stream {name}; there are: {there}")
        return self[found]

    @cached_property
    def attributes(self) -> dict[str, str]:
        """Full name of each stream that is an attribute."""
        head = self.stored.main_headset
        found = {camera.replace("-", "_"): f"{camera}/video" for camera in self.film_cameras}
        if len(found) == 1:
            found.setdefault("gopro", next(iter(found.values())))
        mine = {
            name.rpartition("/")[2]: name for name in self.stored.streams if name.partition("/")[0] == head
        }
        bodies = {name.rpartition("/")[2]: name for name in self.bodies if name.partition("/")[0] == head}
        depth = next(({"depth": mine[one]} for one in DEPTHS if one in mine), {})
        return found | mine | bodies | depth

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.attributes]

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
        from kitchensync.reader.step_table import step_rows_of

        return step_rows_of(self)

    @property
    def steps(self) -> pandas.DataFrame:
        """One row a step that the recipe asked for or that was done. Needs pandas."""
        from kitchensync.reader.step_table import steps_of

        return steps_of(self)

    @cached_property
    def error_rows(self) -> list[ErrorRow]:
        """The rows of `errors`."""
        from kitchensync.reader.error_table import error_rows_of

        return error_rows_of(self)

    @property
    def errors(self) -> pandas.DataFrame:
        """One row an error: what, when, on purpose or not, who noticed it, what corrected it. Needs pandas."""
        from kitchensync.reader.error_table import error_table

        return error_table(self.error_rows)

    @property
    def events(self) -> pandas.DataFrame:
        """What people did, by session seconds: kind, writer, bound_s, body. Needs pandas."""
        from kitchensync.reader.step_table import events_of

        return events_of(self)

    @property
    def alignment(self) -> Alignments:
        """What `sync` found of each film."""
        return Alignments([read_alignment(path) for path in alignment_files(self.path)])

    def utc(self, seconds: npt.ArrayLike) -> Any:
        """Return UTC of session times, datetime64[ns] of their shape, by the capture computer. Raises NotKnown."""
        at_s = np.asarray(seconds, np.float64)
        return self.clock.to_utc(_whole_ns(at_s)).reshape(at_s.shape)[()]

    def utc_bound(self, seconds: npt.ArrayLike) -> Any:
        """How far `utc` may be off the capture computer's clock, seconds, of their shape. Raises NotKnown.

        Around the moment at which that clock was set it is the whole step.
        """
        at_s = np.asarray(seconds, np.float64)
        return (self.clock.utc_bound_ns(_whole_ns(at_s)) / 1e9).reshape(at_s.shape)[()]

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

    def records(self, name: str) -> Records:
        """Read what head, hands and gaze are made of, once."""
        if name not in self._records:
            has_hands = headset_stream(name.rpartition("/")[2]).record == spatial_input.DTYPE
            self._records[name] = read_records(self.stored[name], KEPT if has_hands else None)
        return self._records[name]

    def worlds_of(self, name: str) -> npt.NDArray[np.int32]:
        """Return the world frame of each packet of a stream, (n,): poses of different ones cannot be compared."""
        return world_frames(self.stored[name], read_notes(self.stored.readable).get(name, []))

    def __repr__(self) -> str:
        from kitchensync.reader.shown_recording import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from kitchensync.reader.shown_recording import as_html

        return as_html(self)


class Alignments(dict[str, "Alignment"]):
    """What `sync` found of each film, by the film's name, and of all together.

    `gyroscopes_within_ms` says how well the motion of two devices fits; `pictures_within_ms` how far the times of
    pictures may be off, with what a camera's latency is assumed to be; `bound_at` adds how far the headset's clock is
    known on the capture computer's.
    """

    def __init__(self, found: list[Alignment]) -> None:
        super().__init__({one.source: one for one in found})

    @property
    def status(self) -> str:
        """The worst verdict of all films: `aligned`, `check`, `not_aligned`; `not_done` before `sync`."""
        worst = [status for status in (NOT_ALIGNED, CHECK, ALIGNED) if status in self.statuses.values()]
        return worst[0] if worst else "not_done"

    @property
    def statuses(self) -> dict[str, str]:
        """The status of each film."""
        return {name: one.status for name, one in self.items()}

    @property
    def gyroscopes_within_ms(self) -> float | None:
        """How far the gyroscopes of any film that was aligned may be off, ms, 95 %; None where it is not known."""
        return max((one.bound95_ms for one in self.values() if one.bound95_ms is not None), default=None)

    @property
    def pictures_within_ms(self) -> float | None:
        """How far the pictures of any film that was aligned may be off, ms, 95 %; None where it is not known."""
        return max((2 * one.total_ms for one in self.values() if one.total_ms is not None), default=None)

    def __repr__(self) -> str:
        return f"<{self.status}{', ' if self.bounds else ''}{self.bounds}: {', '.join(self) or 'no film'}>"

    @property
    def bounds(self) -> str:
        """How far motion and pictures of the least certain film may be off, in words."""
        placed = [one for one in self.values() if one.is_placed]
        return max(placed, key=lambda one: one.total_ms or 0.0).bounds_in_words if placed else ""


def _last_s(stream: TimedStream) -> float | None:
    """Return the last session second of a stream; None where it has none."""
    try:
        known = stream.times[np.isfinite(stream.times)]
    except NotKnown:
        return None
    return float(known.max()) if len(known) else None


def _open_again(path: Path, with_pauses: bool, purpose: Purpose | None) -> OpenedRecording:
    return OpenedRecording(path, with_pauses=with_pauses, purpose=purpose)


def _whole_ns(seconds: Floats) -> Int64:
    return np.rint(np.atleast_1d(seconds) * 1e9).astype(np.int64)
