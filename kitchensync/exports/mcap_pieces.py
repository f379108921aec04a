"""What each stream of a recording becomes in an MCAP file: pieces in the order of time, each logged in its turn.

Schemas are Foxglove's (https://docs.foxglove.dev/docs/visualization/message-schemas), but for motion, of which a
packet holds many samples. Times are ns of CLOCK_MONOTONIC of the capture computer; the file says how they become UTC.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kitchensync.exports.exported_span import NOT_DECLARED, ExportedSpan
from kitchensync.exports.motion_schema import SAMPLES_NAME, SAMPLES_SCHEMA, packed_samples
from kitchensync.exports.video_packets import NoPlainVideo, film_units, headset_units
from kitchensync.operations.error_rows import time_of
from kitchensync.reader.body_streams import GazeStream, HandStream, HeadStream
from kitchensync.reader.film_streams import CameraSound, FilmStream
from kitchensync.reader.headset_streams import DepthStream, PictureStream, PosedStream, SoundStream
from kitchensync.reader.motion_streams import MotionStream
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.reader.record_streams import RecordStream
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.reader.step_table import event_rows_of
from kitchensync.reader.timed_stream import TimedStream, Unreadable
from kitchensync.sensors.hololens.catalogue import is_front_camera
from kitchensync.sensors.hololens.video import CODECS
from kitchensync.shell.array_types import Floats, Int64
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.timeline.film_times import UNKNOWN
from kitchensync.storage.timeline.pose_track import rotation_wxyz

if TYPE_CHECKING:
    from foxglove import Context

Piece = tuple[int, Callable[[], int]]
"""Host ns of its first message, and what logs it and returns how many messages that were."""
WORLD = "world"
NS = 1_000_000_000
MOST_SAMPLES = 1000
"""Samples in a message, at most."""
SCHEMA_ENCODINGS = {"protobuf": "protobuf", "json": "jsonschema"}
JSON_TYPES = {"f": "number", "i": "integer", "u": "integer", "b": "boolean"}
FORMATS = {"h264": "h264", "h265": "h265", "hevc": "h265"}


@dataclass
class McapChannels:
    """The channels of one file, made when they are first wanted."""

    context: Context
    made: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: str, topic: str, **about: str) -> Any:
        """Return the channel of a topic, of a schema by its name."""
        if topic not in self.made:
            from foxglove import channels

            made = getattr(channels, f"{kind}Channel")
            self.made[topic] = made(topic, context=self.context, metadata=about or None)
        return self.made[topic]

    def of_samples(self, topic: str, unit: str) -> Any:
        """Return the channel of a topic of motion samples."""
        return self._of_own(topic, SAMPLES_NAME, "protobuf", SAMPLES_SCHEMA, {"unit": unit})

    def of_records(self, topic: str, record: np.dtype[Any], *, is_single: bool) -> Any:
        """Return the channel of a topic of declared records, alone in their packets or several."""
        each: dict[str, Any] = {one: {"type": JSON_TYPES[record[one].kind]} for one in record.names or ()}
        if not is_single:
            each = {name: {"type": "array", "items": one} for name, one in each.items()}
        form = json.dumps({"type": "object", "properties": each}).encode()
        return self._of_own(topic, topic.strip("/").replace("/", "."), "json", form)

    def _of_own(
        self, topic: str, name: str, encoding: str, form: bytes, about: dict[str, str] | None = None
    ) -> Any:
        if topic not in self.made:
            from foxglove import Channel, Schema

            schema = Schema(name=name, encoding=SCHEMA_ENCODINGS[encoding], data=form)
            self.made[topic] = Channel(
                topic, schema=schema, message_encoding=encoding, context=self.context, metadata=about
            )
        return self.made[topic]


class DepthChoice(NamedTuple):
    """How depth is handed over: at most `hz` pictures a second in millimetres, or encoded depth as it was stored."""

    hz: float | None = None
    as_stored: bool = False


def stamp(host_ns: int) -> Any:
    """Return a time as messages have it."""
    from foxglove.messages import Timestamp

    return Timestamp(host_ns // NS, host_ns % NS)


def host_ns_of(recording: RecordingSource, session_ns: Int64) -> Int64:
    """Return host ns (n,) of session ns (n,). Raises NotKnown."""
    return np.asarray(recording.clock.to_host(session_ns), np.int64)


def pieces_of(
    stream: TimedStream, span: ExportedSpan, made: McapChannels, depth: DepthChoice
) -> Iterator[Piece]:
    """Return the pieces of a stream in a span. Raises NoPlainVideo with what to do instead, NotKnown, Refused."""
    if isinstance(stream, MotionStream):
        return _motion(stream, span, made)
    if isinstance(stream, DepthStream):
        return _depth(stream, span, made, depth)
    if isinstance(stream, PictureStream):
        return _pictures(stream, span, made)
    if isinstance(stream, FilmStream):
        return _film(stream, span, made)
    if isinstance(stream, SoundStream | CameraSound):
        return _sound(stream, span, made)
    if isinstance(stream, HeadStream):
        return _transforms(
            stream, stream.values, stream.worlds, f"{stream.name.partition('/')[0]}/head", span, made
        )
    if isinstance(stream, HandStream):
        return _hands(stream, span, made)
    if isinstance(stream, GazeStream):
        return _gaze(stream, span, made)
    if isinstance(stream, RecordStream):
        return _records(stream, span, made)
    raise NoPlainVideo(NOT_DECLARED)


def _numbers(stream: TimedStream, span: ExportedSpan) -> tuple[list[int], Int64]:
    """Return the numbers of a span in order of time, and the host ns of all values; none of those without a time."""
    times_ns = np.where(stream.session_ns == UNKNOWN, 0, stream.session_ns)
    return stream.span(span.start, span.end).tolist(), host_ns_of(stream.recording, times_ns)


def _motion(stream: MotionStream, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    """The samples of a packet as one message; those of a camera, which has no packets of them, some at a time."""
    channel = made.of_samples(f"/{stream.name}", stream.unit)
    first_ns, last_ns = (end * 1e9 for end in (span.start, span.end))

    def log(at_ns: Int64, values: Any) -> int:
        channel.log(packed_samples(at_ns, values), log_time=int(at_ns[0]))
        return 1

    for block_ns, block in stream.blocks(packets=1):
        for first in range(0, len(block_ns), MOST_SAMPLES):
            session_ns, values = (part[first : first + MOST_SAMPLES] for part in (block_ns, block))
            inside = (session_ns >= first_ns) & (session_ns < last_ns) & (session_ns != UNKNOWN)
            if inside.any():
                at_ns = host_ns_of(stream.recording, session_ns[inside])
                yield int(at_ns[0]), partial(log, at_ns, values[inside])


def _records(stream: RecordStream, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    """A packet as one JSON message: numbers by field, lists of them where packets hold several records."""
    numbers, at_ns = _numbers(stream, span)
    starts = np.flatnonzero(np.diff(stream.rows[numbers], prepend=-1))
    is_single = len(starts) == len(numbers) and len(np.unique(stream.rows)) == len(stream)
    channel = made.of_records(f"/{stream.name}", stream.values.dtype, is_single=is_single)

    def log(of_packet: list[int], ns: int) -> int:
        columns = {name: _json_numbers(stream[name][of_packet]) for name in stream.fields}
        message = {name: values[0] for name, values in columns.items()} if is_single else columns
        channel.log(json.dumps(message).encode(), log_time=ns)
        return 1

    for first, behind in pairwise([*starts.tolist(), len(numbers)]):
        ns = int(at_ns[numbers[first]])
        yield ns, partial(log, numbers[first:behind], ns)


def _json_numbers(values: Any) -> list[Any]:
    """Return numbers as JSON has them: None for those that are not finite."""
    return [one if np.isfinite(one) else None for one in values.tolist()]


def _pictures(stream: PictureStream, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    if stream.stored.format.get("codec") in CODECS:
        return _video(stream, span, made)
    return _raw_pictures(stream, *_numbers(stream, span), made)


def _video(
    stream: PictureStream | DepthStream, span: ExportedSpan, made: McapChannels, **about: str
) -> Iterator[Piece]:
    """Video as it was stored, not decoded."""
    from foxglove.messages import CompressedVideo

    numbers, at_ns = _numbers(stream, span)
    channel = made.of("CompressedVideo", f"/{stream.name}", **about)
    form = FORMATS[stream.stored.format["codec"]]
    by_row = dict(zip(stream.rows.tolist(), at_ns.tolist(), strict=True))

    def log(ns: int, unit: bytes) -> int:
        picture = CompressedVideo(timestamp=stamp(ns), frame_id=stream.name, data=unit, format=form)
        channel.log(picture, log_time=ns)
        return 1

    rows = np.sort(stream.rows[numbers])
    for row, unit in headset_units(stream.stored, rows):
        yield by_row[row], partial(log, by_row[row], unit)


def _raw_pictures(
    stream: PictureStream, numbers: list[int], at_ns: Int64, made: McapChannels
) -> Iterator[Piece]:
    channel = made.of("RawImage", f"/{stream.name}")
    for number in numbers:
        ns = int(at_ns[number])
        yield ns, partial(_log_image, channel, stream.name, ns, "rgb8", partial(stream.read, number))


def _log_image(channel: Any, frame: str, ns: int, encoding: str, read: Callable[[], Any]) -> int:
    from foxglove.messages import RawImage

    try:
        image = np.ascontiguousarray(read())
    except Unreadable:
        return 0
    height, width = image.shape[:2]
    picture = RawImage(
        timestamp=stamp(ns), frame_id=frame, width=width, height=height, encoding=encoding,
        step=image.strides[0], data=image.tobytes(),
    )  # fmt: skip
    channel.log(picture, log_time=ns)
    return 1


def _depth(
    stream: DepthStream, span: ExportedSpan, made: McapChannels, choice: DepthChoice
) -> Iterator[Piece]:
    if choice.as_stored and stream.stored.format.get("codec") in CODECS:
        return _video(stream, span, made, packing=str(stream.stored.format.get("packing")))
    return _millimetre_pictures(stream, span, made, choice.hz)


def _millimetre_pictures(
    stream: DepthStream, span: ExportedSpan, made: McapChannels, hz: float | None
) -> Iterator[Piece]:
    """Millimetres along each pixel's ray: all pictures, or at most so many a second."""
    numbers, at_ns = _numbers(stream, span)
    channel = made.of("RawImage", f"/{stream.name}", unit="mm along the ray, 0 = none")
    step_ns, due_ns = NS / hz if hz else 0.0, 0.0
    for number in numbers:
        ns = int(at_ns[number])
        if ns < due_ns:
            continue
        due_ns = max(due_ns + step_ns, ns + step_ns / 2) if hz else 0.0
        yield (
            ns,
            partial(_log_image, channel, stream.name, ns, "16UC1", partial(_millimetres, stream, number)),
        )


def _millimetres(stream: DepthStream, number: int) -> Any:
    stream.read(number)  # which names it where it is unreadable
    return stream.frame(number).depth_mm


def _film(stream: FilmStream, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    from foxglove.messages import CompressedVideo

    numbers, at_ns = _numbers(stream, span)
    wanted = {int(stream.rows[k]): int(at_ns[k]) for k in numbers}
    channel, clip = made.of("CompressedVideo", f"/{stream.name}"), stream.timeline.clip
    video = clip.chapters[0].video
    form = FORMATS.get(video.codec) if video is not None else None
    if form is None:
        raise NoPlainVideo(
            f"its pictures are {video.codec if video else 'none'}; H.264 and H.265 are handed over"
        )

    def log(ns: int, unit: bytes) -> int:
        picture = CompressedVideo(timestamp=stamp(ns), frame_id=stream.name, data=unit, format=form)
        channel.log(picture, log_time=ns)
        return 1

    for number, unit in film_units(clip, wanted):
        yield wanted[number], partial(log, wanted[number], unit)


def _sound(stream: SoundStream | CameraSound, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    """Sound of the headset as it came where it is AAC, other sound as 16-bit samples."""
    from foxglove.messages import CompressedAudio, RawAudio

    numbers, at_ns = _numbers(stream, span)
    encoded = (
        stream if isinstance(stream, SoundStream) and stream.stored.format.get("codec") == "aac" else None
    )
    channel = made.of("CompressedAudio" if encoded is not None else "RawAudio", f"/{stream.name}")

    def log(number: int, ns: int) -> int:
        if encoded is not None:
            row = int(encoded.rows[number])
            data = encoded.stored.payload(row)
            if row in encoded.stored.bad:
                return 0  # which is said of the stream
            channel.log(CompressedAudio(timestamp=stamp(ns), data=data, format="mp4a.40.2"), log_time=ns)
            return 1
        block = stream.read(number)
        samples = np.rint(np.clip(block.T, -1, 1) * 32767).astype("<i2")
        sound = RawAudio(
            timestamp=stamp(ns), data=samples.tobytes(), format="pcm-s16", sample_rate=stream.rate_hz,
            number_of_channels=block.shape[0],
        )  # fmt: skip
        channel.log(sound, log_time=ns)
        return 1

    for number in numbers:
        yield int(at_ns[number]), partial(log, number, int(at_ns[number]))


def frame_of(world: int) -> str:
    """Return the name of a world frame: each start of the headset's app has its own."""
    return WORLD if world <= 0 else f"{WORLD}_{world}"


def _pose(place: Floats, turn: Floats) -> Any:
    """Return a pose of a position (3,) and a rotation w x y z (4,)."""
    from foxglove.messages import Pose, Quaternion, Vector3

    (x, y, z), (qw, qx, qy, qz) = place, turn
    return Pose(position=Vector3(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw))


def _transforms(
    stream: TimedStream, transforms: Floats, worlds: Any, child: str, span: ExportedSpan, made: McapChannels
) -> Iterator[Piece]:
    from foxglove.messages import FrameTransform, Quaternion, Vector3

    numbers, at_ns = _numbers(stream, span)
    channel, turns = made.of("FrameTransform", f"/tf/{child}"), rotation_wxyz(transforms[:, :3, :3])

    def log(number: int, ns: int) -> int:
        (x, y, z), (qw, qx, qy, qz) = transforms[number, :3, 3], turns[number]
        found = FrameTransform(
            timestamp=stamp(ns), parent_frame_id=frame_of(int(worlds[number])), child_frame_id=child,
            translation=Vector3(x=x, y=y, z=z), rotation=Quaternion(x=qx, y=qy, z=qz, w=qw),
        )  # fmt: skip
        channel.log(found, log_time=ns)
        return 1

    for number in numbers:
        if np.isfinite(turns[number]).all():
            yield int(at_ns[number]), partial(log, number, int(at_ns[number]))


def camera_pieces(stream: PosedStream[Any], span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    """Return where a camera of the headset was at each of its pictures. Raises Refused without its constants."""
    worlds = stream.recording.worlds_of(stream.name)[stream.rows]
    return _transforms(stream, stream.world_from_camera, worlds, stream.name, span, made)


def lens_pieces(stream: PictureStream, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    """Return the calibration of the front camera, once a second: its focus moves."""
    if not is_front_camera(stream.name):
        raise Refused(f"{stream.name}: its lens is a table, in the calibration of the recording")
    numbers, at_ns = _numbers(stream, span)
    channel = made.of("CameraCalibration", f"/{stream.name}/calibration")

    def log(number: int, ns: int) -> int:
        from foxglove.messages import CameraCalibration

        lens = stream.lens(number)
        fx, fy, cx, cy = lens.fx, lens.fy, lens.cx, lens.cy
        found = CameraCalibration(
            timestamp=stamp(ns), frame_id=stream.name, width=lens.width, height=lens.height,
            distortion_model="plumb_bob", D=[lens.k1, lens.k2, lens.p1, lens.p2, lens.k3],
            K=[fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0], R=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            P=[fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
        )  # fmt: skip
        channel.log(found, log_time=ns)
        return 1

    due_ns = 0
    for number in numbers:
        ns = int(at_ns[number])
        if ns >= due_ns:
            due_ns = ns + NS
            yield ns, partial(log, number, ns)


def _hands(stream: HandStream, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    from foxglove.messages import Pose, PosesInFrame, Vector3

    numbers, at_ns = _numbers(stream, span)
    head, joints = stream.name.partition("/")[0], ",".join(stream.joints)
    sides = {"left": stream.left, "right": stream.right}
    channels = {side: made.of("PosesInFrame", f"/{head}/hands/{side}", joints=joints) for side in sides}

    def log(side: str, number: int, ns: int) -> int:
        poses = [Pose(position=Vector3(x=x, y=y, z=z)) for x, y, z in sides[side][number].tolist()]
        world = frame_of(int(stream.worlds[number]))
        channels[side].log(PosesInFrame(timestamp=stamp(ns), frame_id=world, poses=poses), log_time=ns)
        return 1

    for number in numbers:
        for side, places in sides.items():
            if np.isfinite(places[number, 0, 0]):
                yield int(at_ns[number]), partial(log, side, number, int(at_ns[number]))


def _gaze(stream: GazeStream, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    """The ray as a pose whose x axis points along it."""
    from foxglove.messages import PoseInFrame

    numbers, at_ns = _numbers(stream, span)
    channel = made.of("PoseInFrame", f"/{stream.name.partition('/')[0]}/gaze", axis="x points along the gaze")
    along = stream.direction / np.linalg.norm(stream.direction, axis=1, keepdims=True)
    upright = np.where(np.abs(along[:, 1:2]) < 0.9, [[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]])
    beside = np.cross(along, upright)
    beside /= np.linalg.norm(beside, axis=1, keepdims=True)
    turns = rotation_wxyz(np.stack([along, beside, np.cross(along, beside)], axis=-1))

    def log(number: int, ns: int) -> int:
        world, pose = frame_of(int(stream.worlds[number])), _pose(stream.origin[number], turns[number])
        channel.log(PoseInFrame(timestamp=stamp(ns), frame_id=world, pose=pose), log_time=ns)
        return 1

    for number in numbers:
        if np.isfinite(turns[number, 0]):
            yield int(at_ns[number]), partial(log, number, int(at_ns[number]))


def step_pieces(recording: OpenedRecording, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    """Return the begin and the end of each step as lines of a log, with what was wrong in it."""
    from foxglove.messages import LogLevel

    lines: list[tuple[float, Any, str]] = []
    for step in recording.step_rows:
        if step["done"]:
            named = f"{step['node']}: {step['step']}"
            level = LogLevel.Warning if step["error"] else LogLevel.Info
            why = f" ({step['errors']})" if step["error"] else ""
            lines += [
                (step["start"], LogLevel.Info, f"begin {named}"),
                (step["end"], level, f"end {named}{why}"),
            ]
    return _lines(recording, span, made, "steps", lines)


def error_pieces(recording: OpenedRecording, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    """Return each error as a line of a log, a row of `rec.errors` in JSON.

    Its time is when it happened, else when it was entered, else when its step ended or the recording began.
    """
    from foxglove.messages import LogLevel

    ends = {step["node"]: step["end"] for step in recording.step_rows if step["done"]}
    lines = []
    for row in recording.error_rows:
        times = (time_of(row), ends.get(row["node"], 0.0), 0.0)
        at_s = next(seconds for seconds in times if np.isfinite(seconds))
        lines.append((at_s, LogLevel.Warning, json.dumps(row, ensure_ascii=False)))
    return _lines(recording, span, made, "errors", lines)


def event_pieces(recording: OpenedRecording, span: ExportedSpan, made: McapChannels) -> Iterator[Piece]:
    """Return what people did as lines of a log."""
    from foxglove.messages import LogLevel

    rows = event_rows_of(recording)
    lines = [
        (at_s, LogLevel.Info, f"{kind} {json.dumps(body, ensure_ascii=False)}")
        for at_s, kind, _, _, body in rows
    ]
    return _lines(recording, span, made, "events", lines)


def _lines(
    recording: OpenedRecording,
    span: ExportedSpan,
    made: McapChannels,
    topic: str,
    lines: list[tuple[float, Any, str]],
) -> Iterator[Piece]:
    for at_s, level, words in sorted(lines, key=lambda line: line[0]):
        if span.start <= at_s < span.end:
            ns = int(host_ns_of(recording, np.array([round(at_s * 1e9)], np.int64))[0])
            yield ns, partial(_log_line, made, topic, level, words, ns)


def _log_line(made: McapChannels, topic: str, level: Any, words: str, ns: int) -> int:
    from foxglove.messages import Log

    line = Log(timestamp=stamp(ns), level=level, message=words, name=topic)
    made.of("Log", f"/{topic}").log(line, log_time=ns)
    return 1
