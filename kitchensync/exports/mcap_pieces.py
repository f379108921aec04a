"""Messages of each stream for an MCAP file, as pieces in order of time that are logged one by one.

Schemas are Foxglove's (https://docs.foxglove.dev/docs/visualization/message-schemas), except for motion, as its
packets have many samples. Times are CLOCK_MONOTONIC of the capture computer, ns; metadata converts them to UTC.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import foxglove.channels
import numpy as np
from foxglove import Channel, Context, Schema
from foxglove.messages import (
    CameraCalibration,
    CompressedAudio,
    CompressedVideo,
    FrameTransform,
    Log,
    LogLevel,
    Pose,
    PoseInFrame,
    PosesInFrame,
    Quaternion,
    RawAudio,
    RawImage,
    Timestamp,
    Vector3,
)

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

Piece = tuple[int, Callable[[], int]]
"""Host ns of its first message, and a function that logs it and returns the number of messages."""
NS = 1_000_000_000
MOST_SAMPLES = 1000
"""Largest number of samples in a message."""
SCHEMA_ENCODINGS = {"protobuf": "protobuf", "json": "jsonschema"}
JSON_TYPES = {"f": "number", "i": "integer", "u": "integer", "b": "boolean"}
FORMATS = {"h264": "h264", "h265": "h265", "hevc": "h265"}


@dataclass
class McapChannels:
    """The channels of one file, made at their first use."""

    context: Context
    by_topic: dict[str, Any] = field(default_factory=dict)

    def foxglove(self, schema: str, topic: str, **metadata: str) -> Any:
        """Return the channel of a topic with one of Foxglove's schemas."""
        if topic not in self.by_topic:
            channel_type = getattr(foxglove.channels, f"{schema}Channel")
            self.by_topic[topic] = channel_type(topic, context=self.context, metadata=metadata or None)
        return self.by_topic[topic]

    def samples(self, topic: str, unit: str) -> Any:
        """Return the channel of a topic of motion samples."""
        return self._with_schema(topic, SAMPLES_NAME, "protobuf", SAMPLES_SCHEMA, {"unit": unit})

    def records(self, topic: str, record: np.dtype[Any], *, is_single: bool) -> Any:
        """Return the channel of a topic of declared records; `is_single` if packets have one record each."""
        fields: dict[str, Any] = {
            name: {"type": JSON_TYPES[record[name].kind]} for name in record.names or ()
        }
        if not is_single:
            fields = {name: {"type": "array", "items": item} for name, item in fields.items()}
        schema = json.dumps({"type": "object", "properties": fields}).encode()
        return self._with_schema(topic, topic.strip("/").replace("/", "."), "json", schema)

    def _with_schema(
        self, topic: str, name: str, encoding: str, data: bytes, metadata: dict[str, str] | None = None
    ) -> Any:
        if topic not in self.by_topic:
            schema = Schema(name=name, encoding=SCHEMA_ENCODINGS[encoding], data=data)
            self.by_topic[topic] = Channel(
                topic, schema=schema, message_encoding=encoding, context=self.context, metadata=metadata
            )
        return self.by_topic[topic]


def timestamp(host_ns: int) -> Any:
    """Return a time as a message field."""

    return Timestamp(host_ns // NS, host_ns % NS)


def host_ns_of(recording: RecordingSource, session_ns: Int64) -> Int64:
    """Return host ns (n,) of session ns (n,). Raises NotKnown."""
    return np.asarray(recording.clock.to_host(session_ns), np.int64)


def pieces_of(
    stream: TimedStream, span: ExportedSpan, channels: McapChannels, depth_as_stored: bool
) -> Iterator[Piece]:
    """Return the pieces of a stream in a span. Raises NoPlainVideo, NotKnown, Refused."""
    if isinstance(stream, MotionStream):
        return _motion(stream, span, channels)
    if isinstance(stream, DepthStream):
        if depth_as_stored and stream.stored.format.get("codec") in CODECS:
            return _video(stream, span, channels, packing=str(stream.stored.format.get("packing")))
        return _depth(stream, span, channels)
    if isinstance(stream, PictureStream):
        if stream.stored.format.get("codec") in CODECS:
            return _video(stream, span, channels)
        return _raw_frames(stream, span, channels)
    if isinstance(stream, FilmStream):
        return _film(stream, span, channels)
    if isinstance(stream, SoundStream | CameraSound):
        return _sound(stream, span, channels)
    if isinstance(stream, HeadStream):
        frame_id = f"{stream.name.partition('/')[0]}/head"
        return _transforms(stream, stream.values, stream.worlds, frame_id, span, channels)
    if isinstance(stream, HandStream):
        return _hands(stream, span, channels)
    if isinstance(stream, GazeStream):
        return _gaze(stream, span, channels)
    if isinstance(stream, RecordStream):
        return _records(stream, span, channels)
    raise NoPlainVideo(NOT_DECLARED)


def _numbers(stream: TimedStream, span: ExportedSpan) -> tuple[list[int], Int64]:
    """Return the numbers of the values in a span in order of time, and the host ns of all values of the stream."""
    times_ns = np.where(stream.session_ns == UNKNOWN, 0, stream.session_ns)
    return stream.span(span.start, span.end).tolist(), host_ns_of(stream.recording, times_ns)


def _motion(stream: MotionStream, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Yield the samples of each packet as one message; of a camera, which has no packets, some at a time."""
    channel = channels.samples(f"/{stream.name}", stream.unit)
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


def _records(stream: RecordStream, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Yield each packet as one JSON message: numbers by field, or lists of them if packets have several records."""
    numbers, at_ns = _numbers(stream, span)
    starts = np.flatnonzero(np.diff(stream.rows[numbers], prepend=-1))
    is_single = len(starts) == len(numbers) and len(np.unique(stream.rows)) == len(stream)
    channel = channels.records(f"/{stream.name}", stream.values.dtype, is_single=is_single)

    def log(packet: list[int], ns: int) -> int:
        columns = {
            # JSON lacks NaN and infinity.
            name: [value if np.isfinite(value) else None for value in stream[name][packet].tolist()]
            for name in stream.fields
        }
        message = {name: values[0] for name, values in columns.items()} if is_single else columns
        channel.log(json.dumps(message).encode(), log_time=ns)
        return 1

    for first, stop in pairwise([*starts.tolist(), len(numbers)]):
        ns = int(at_ns[numbers[first]])
        yield ns, partial(log, numbers[first:stop], ns)


def _video(
    stream: PictureStream | DepthStream, span: ExportedSpan, channels: McapChannels, **metadata: str
) -> Iterator[Piece]:
    """Yield the frames of an encoded stream without decoding them."""
    numbers, at_ns = _numbers(stream, span)
    channel = channels.foxglove("CompressedVideo", f"/{stream.name}", **metadata)
    codec = FORMATS[stream.stored.format["codec"]]
    ns_of_row = dict(zip(stream.rows.tolist(), at_ns.tolist(), strict=True))
    rows = np.sort(stream.rows[numbers])
    for row, unit in headset_units(stream.stored, rows):
        yield ns_of_row[row], partial(_log_video, channel, stream.name, codec, ns_of_row[row], unit)


def _film(stream: FilmStream, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Yield the frames of a camera's video without decoding them."""
    numbers, at_ns = _numbers(stream, span)
    ns_of_frame = {int(stream.rows[k]): int(at_ns[k]) for k in numbers}
    channel, clip = channels.foxglove("CompressedVideo", f"/{stream.name}"), stream.timeline.clip
    video = clip.chapters[0].video
    codec = FORMATS.get(video.codec) if video is not None else None
    if codec is None:
        raise NoPlainVideo(
            f"its video is {video.codec if video else 'missing'}; only H.264 and H.265 can be exported"
        )
    for frame, unit in film_units(clip, ns_of_frame):
        yield ns_of_frame[frame], partial(_log_video, channel, stream.name, codec, ns_of_frame[frame], unit)


def _log_video(channel: Any, frame_id: str, codec: str, ns: int, unit: bytes) -> int:

    message = CompressedVideo(timestamp=timestamp(ns), frame_id=frame_id, data=unit, format=codec)
    channel.log(message, log_time=ns)
    return 1


def _raw_frames(stream: PictureStream, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    numbers, at_ns = _numbers(stream, span)
    channel = channels.foxglove("RawImage", f"/{stream.name}")
    for number in numbers:
        ns = int(at_ns[number])
        yield ns, partial(_log_image, channel, stream.name, ns, "rgb8", partial(stream.read, number))


def _log_image(channel: Any, frame_id: str, ns: int, encoding: str, read: Callable[[], Any]) -> int:

    try:
        image = np.ascontiguousarray(read())
    except Unreadable:
        return 0
    height, width = image.shape[:2]
    message = RawImage(
        timestamp=timestamp(ns), frame_id=frame_id, width=width, height=height, encoding=encoding,
        step=image.strides[0], data=image.tobytes(),
    )  # fmt: skip
    channel.log(message, log_time=ns)
    return 1


def _depth(stream: DepthStream, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Yield depth in millimetres along each pixel's ray."""
    numbers, at_ns = _numbers(stream, span)
    channel = channels.foxglove("RawImage", f"/{stream.name}", unit="mm along the ray, 0 = none")
    for number in numbers:
        ns = int(at_ns[number])
        yield (
            ns,
            partial(_log_image, channel, stream.name, ns, "16UC1", partial(_millimetres, stream, number)),
        )


def _millimetres(stream: DepthStream, number: int) -> Any:
    stream.read(number)  # records the reason if the frame is unreadable
    return stream.frame(number).depth_mm


def _sound(stream: SoundStream | CameraSound, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Yield AAC of a headset without decoding it, and other sound as 16-bit samples."""

    numbers, at_ns = _numbers(stream, span)
    is_aac = isinstance(stream, SoundStream) and stream.stored.format.get("codec") == "aac"
    encoded = stream if isinstance(stream, SoundStream) and is_aac else None
    channel = channels.foxglove("RawAudio" if encoded is None else "CompressedAudio", f"/{stream.name}")

    def log(number: int, ns: int) -> int:
        if encoded is not None:
            row = int(encoded.rows[number])
            data = encoded.stored.payload(row)
            if row in encoded.stored.bad:
                return 0
            channel.log(CompressedAudio(timestamp=timestamp(ns), data=data, format="mp4a.40.2"), log_time=ns)
            return 1
        block = stream.read(number)
        samples = np.rint(np.clip(block.T, -1, 1) * 32767).astype("<i2")
        sound = RawAudio(
            timestamp=timestamp(ns), data=samples.tobytes(), format="pcm-s16", sample_rate=stream.rate_hz,
            number_of_channels=block.shape[0],
        )  # fmt: skip
        channel.log(sound, log_time=ns)
        return 1

    for number in numbers:
        yield int(at_ns[number]), partial(log, number, int(at_ns[number]))


def world_frame_id(world: int) -> str:
    """Return the name of a world frame; each start of the headset's app has a new one."""
    return "world" if world <= 0 else f"world_{world}"


def _transforms(
    stream: TimedStream,
    transforms: Floats,
    worlds: Any,
    child: str,
    span: ExportedSpan,
    channels: McapChannels,
) -> Iterator[Piece]:

    numbers, at_ns = _numbers(stream, span)
    channel = channels.foxglove("FrameTransform", f"/tf/{child}")
    rotations = rotation_wxyz(transforms[:, :3, :3])

    def log(number: int, ns: int) -> int:
        (x, y, z), (qw, qx, qy, qz) = transforms[number, :3, 3], rotations[number]
        message = FrameTransform(
            timestamp=timestamp(ns), parent_frame_id=world_frame_id(int(worlds[number])), child_frame_id=child,
            translation=Vector3(x=x, y=y, z=z), rotation=Quaternion(x=qx, y=qy, z=qz, w=qw),
        )  # fmt: skip
        channel.log(message, log_time=ns)
        return 1

    for number in numbers:
        if np.isfinite(rotations[number]).all():
            yield int(at_ns[number]), partial(log, number, int(at_ns[number]))


def camera_pieces(stream: PosedStream[Any], span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Return the poses of a camera of the headset. Raises Refused without its constants."""
    worlds = stream.recording.worlds_of(stream.name)[stream.rows]
    return _transforms(stream, stream.world_from_camera, worlds, stream.name, span, channels)


def lens_pieces(stream: PictureStream, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Yield the calibration of the front camera once a second: the focal length changes with the focus."""
    if not is_front_camera(stream.name):
        raise Refused(f"{stream.name}: its lens is a table, in the calibration of the recording")
    numbers, at_ns = _numbers(stream, span)
    channel = channels.foxglove("CameraCalibration", f"/{stream.name}/calibration")

    def log(number: int, ns: int) -> int:

        lens = stream.lens(number)
        fx, fy, cx, cy = lens.fx, lens.fy, lens.cx, lens.cy
        message = CameraCalibration(
            timestamp=timestamp(ns), frame_id=stream.name, width=lens.width, height=lens.height,
            distortion_model="plumb_bob", D=[lens.k1, lens.k2, lens.p1, lens.p2, lens.k3],
            K=[fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0], R=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            P=[fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
        )  # fmt: skip
        channel.log(message, log_time=ns)
        return 1

    due_ns = 0
    for number in numbers:
        ns = int(at_ns[number])
        if ns >= due_ns:
            due_ns = ns + NS
            yield ns, partial(log, number, ns)


def _hands(stream: HandStream, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:

    numbers, at_ns = _numbers(stream, span)
    head, joints = stream.name.partition("/")[0], ",".join(stream.joints)
    positions = {"left": stream.left, "right": stream.right}
    by_side = {
        side: channels.foxglove("PosesInFrame", f"/{head}/hands/{side}", joints=joints) for side in positions
    }

    def log(side: str, number: int, ns: int) -> int:
        poses = [Pose(position=Vector3(x=x, y=y, z=z)) for x, y, z in positions[side][number].tolist()]
        frame_id = world_frame_id(int(stream.worlds[number]))
        by_side[side].log(PosesInFrame(timestamp=timestamp(ns), frame_id=frame_id, poses=poses), log_time=ns)
        return 1

    for number in numbers:
        for side, joint_positions in positions.items():
            if np.isfinite(joint_positions[number, 0, 0]):
                yield int(at_ns[number]), partial(log, side, number, int(at_ns[number]))


def _gaze(stream: GazeStream, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Yield each ray as a pose whose x axis points along it."""

    numbers, at_ns = _numbers(stream, span)
    topic = f"/{stream.name.partition('/')[0]}/gaze"
    channel = channels.foxglove("PoseInFrame", topic, axis="x points along the gaze")
    forward = stream.direction / np.linalg.norm(stream.direction, axis=1, keepdims=True)
    # The other two axes are arbitrary. Any axis that is not nearly parallel to the ray gives them.
    upright = np.where(np.abs(forward[:, 1:2]) < 0.9, [[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]])
    side = np.cross(forward, upright)
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    rotations = rotation_wxyz(np.stack([forward, side, np.cross(forward, side)], axis=-1))

    def log(number: int, ns: int) -> int:
        (x, y, z), (qw, qx, qy, qz) = stream.origin[number], rotations[number]
        pose = Pose(position=Vector3(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw))
        frame_id = world_frame_id(int(stream.worlds[number]))
        channel.log(PoseInFrame(timestamp=timestamp(ns), frame_id=frame_id, pose=pose), log_time=ns)
        return 1

    for number in numbers:
        if np.isfinite(rotations[number, 0]):
            yield int(at_ns[number]), partial(log, number, int(at_ns[number]))


def step_pieces(recording: OpenedRecording, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Return log messages for the begin and the end of each step, the latter with its errors."""

    lines: list[tuple[float, Any, str]] = []
    for step in recording.step_rows:
        if step["done"]:
            text = f"{step['node']}: {step['step']}"
            level = LogLevel.Warning if step["error"] else LogLevel.Info
            errors = f" ({step['errors']})" if step["error"] else ""
            lines += [
                (step["start"], LogLevel.Info, f"begin {text}"),
                (step["end"], level, f"end {text}{errors}"),
            ]
    return _lines(recording, span, channels, "steps", lines)


def error_pieces(recording: OpenedRecording, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Return a log message for each error, with its row of `rec.errors` as JSON.

    Its time is when it happened, else when it was entered, else the end of its step or the start of the recording.
    """

    ends = {step["node"]: step["end"] for step in recording.step_rows if step["done"]}
    lines = []
    for row in recording.error_rows:
        times = (time_of(row), ends.get(row["node"], 0.0), 0.0)
        at_s = next(seconds for seconds in times if np.isfinite(seconds))
        lines.append((at_s, LogLevel.Warning, json.dumps(row, ensure_ascii=False)))
    return _lines(recording, span, channels, "errors", lines)


def event_pieces(recording: OpenedRecording, span: ExportedSpan, channels: McapChannels) -> Iterator[Piece]:
    """Return a log message for each event."""

    lines = [
        (at_s, LogLevel.Info, f"{kind} {json.dumps(body, ensure_ascii=False)}")
        for at_s, kind, _, _, body in event_rows_of(recording)
    ]
    return _lines(recording, span, channels, "events", lines)


def _lines(
    recording: OpenedRecording,
    span: ExportedSpan,
    channels: McapChannels,
    topic: str,
    lines: list[tuple[float, Any, str]],
) -> Iterator[Piece]:

    def log(level: Any, text: str, ns: int) -> int:
        message = Log(timestamp=timestamp(ns), level=level, message=text, name=topic)
        channels.foxglove("Log", f"/{topic}").log(message, log_time=ns)
        return 1

    for at_s, level, text in sorted(lines, key=lambda line: line[0]):
        if span.start <= at_s < span.end:
            ns = int(host_ns_of(recording, np.array([round(at_s * 1e9)], np.int64))[0])
            yield ns, partial(log, level, text, ns)
