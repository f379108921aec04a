"""Send the streams of a recording to Rerun in blocks, on the timeline `session_ns`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from kitchensync.reader.body_streams import GazeStream, HandStream, HeadStream
from kitchensync.reader.cameras.eyes import TRACKING_LOST
from kitchensync.reader.film_streams import CameraMotion, FilmStream
from kitchensync.reader.headset_streams import DepthStream, PacketStream, PictureStream
from kitchensync.reader.motion_streams import HeadsetMotion, MotionStream
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.reader.record_streams import RecordStream
from kitchensync.reader.timed_stream import TimedStream, Unreadable
from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.shell.array_types import Floats, Int64, Mask, UInt8
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.geometry.reference_frames import inverse
from kitchensync.storage.privacy import overlaps
from kitchensync.storage.timeline.film_times import UNKNOWN

TIMELINE = "session_ns"
BLOCK_ROWS = 2_000
SAMPLE_NS = 10_000_000
"""Interval over which inertial samples are averaged."""
CLOUD_STEP = 4
"""Step between the shown points of depth."""
MAX_DEPTH_M = 4.0
GAZE_M = 1.0  # the headset sends no distance of the gaze
JOINT_M = 0.008
JPEG_QUALITY = 80
WIDTH = 640
"""Width of the shown frames in pixels."""
NO_POSE: Floats = np.full((4, 4), np.nan)
"""A pose of NaN: Rerun draws nothing below it; without a pose, or with one of zeros, it draws at the origin."""
FRONT = "world/pv"
"""Entity of the front camera."""
MEDIA_TYPES = {"jpeg": "image/jpeg", "png": "image/png"}
"""Media types of the codecs whose packets a viewer can show."""


@dataclass(frozen=True)
class ViewOptions:
    """Rate of the shown frames, and the shown seconds of the session."""

    pictures_per_s: float = 5.0
    from_s: float = 0.0
    to_s: float = float("inf")

    def chosen(self, session_ns: Int64, per_s: float) -> list[int]:
        """Return the indices of the instants (n,), ascending, to show: at most `per_s` a second."""
        seconds = session_ns / 1e9
        inside = np.flatnonzero((seconds >= self.from_s) & (seconds <= self.to_s))
        slot = np.floor(seconds[inside] * per_s).astype(np.int64)
        is_first = np.diff(slot, prepend=-1) > 0
        chosen: list[int] = inside[is_first].tolist()
        return chosen


@dataclass(frozen=True)
class ViewerSink:
    """Rerun's module, the recording stream that data is sent to, and the progress function."""

    rr: Any
    stream: Any
    progress: Callable[[str, float], None]
    "Called with the entity that is being sent and the second of the session."

    def columns(self, entity: str, session_ns: Int64, columns: Any) -> None:
        """Send values of one entity at session ns (n,)."""
        time = self.rr.TimeColumn(TIMELINE, duration=session_ns.astype("timedelta64[ns]"))
        self.stream.send_columns(entity, [time], columns)
        if len(session_ns):
            self.progress(entity, float(session_ns[-1]) / 1e9)

    def at(self, session_ns: int, entity: str, shown: Any) -> None:
        """Send one value at an instant."""
        self.stream.set_time(TIMELINE, duration=np.timedelta64(int(session_ns), "ns"))
        self.stream.log(entity, shown)
        self.progress(entity, float(session_ns) / 1e9)

    def hide(self, entity: str, session_ns: Int64, hidden: Mask) -> None:
        """Hide an entity from the first row of each run of `hidden` until its next value."""
        first = [first for first, _ in marked_runs(hidden)]
        if first:
            self.columns(entity, session_ns[first], self.rr.Clear.columns(is_recursive=[False] * len(first)))

    def lost(self, name: str, session_ns: Int64, lost: Mask) -> None:
        """Log as events when tracking was lost and found again."""
        for first, end in marked_runs(lost):
            for row, text in ((first, TRACKING_LOST), (end, "tracking found again")):
                if row < len(session_ns):
                    self.at(session_ns[row], f"events/{name}", self.rr.TextLog(text))

    def picture(self, session_ns: int, entity: str, rgb: UInt8) -> None:
        """Send a frame as a small JPEG."""
        quality = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
        coded = cv2.imencode(".jpg", np.ascontiguousarray(rgb[:, :, ::-1]), quality)[1].tobytes()
        self.at(session_ns, entity, self.rr.EncodedImage(contents=coded, media_type="image/jpeg"))

    def place(self, session_ns: int, entity: str, world_from_camera: Floats) -> None:
        """Send the pose of a camera."""
        place, turn = world_from_camera[:3, 3], world_from_camera[:3, :3]
        self.at(session_ns, entity, self.rr.Transform3D(translation=place, mat3x3=turn))

    def optics(self, session_ns: int, entity: str, parameters: Floats, shown: UInt8) -> None:
        """Send a camera's frustum; Rerun only has pinholes, so a fisheye is drawn with its central focal length."""
        fx, fy, cx, cy = (float(value) for value in parameters)
        pinhole = self.rr.Pinhole(
            focal_length=[fx, fy], principal_point=[cx, cy], resolution=[shown.shape[1], shown.shape[0]],
            camera_xyz=self.rr.ViewCoordinates.RDF, image_plane_distance=0.2,
        )  # fmt: skip
        self.at(session_ns, entity, pinhole)


def show_events(rec: OpenedRecording, sink: ViewerSink) -> None:
    """Send the events as lines of text. Raises NotKnown."""
    at_ns = np.array([event["host_ns"] for event in rec.stored.events()], np.int64)
    hidden = overlaps(at_ns, at_ns, rec.stored.pauses)
    events = [event for event, is_hidden in zip(rec.stored.events(), hidden, strict=True) if not is_hidden]
    if not events:
        return
    lines = []
    for event in events:
        body = event["body"].items()
        values = [f"{name}={value}" for name, value in body if isinstance(value, (str, int, float))]
        lines.append(" ".join([event["kind"], *values]))
    sink.columns("events", rec.clock.of_host(at_ns[~hidden]), sink.rr.TextLog.columns(text=lines))


def show_motion(motion: MotionStream, _options: ViewOptions, sink: ViewerSink) -> None:
    """Send an inertial sensor as means over 10 ms. Raises NotKnown."""
    axes = sink.rr.SeriesLines(names=["x", "y", "z"], colors=[(222, 80, 80), (90, 190, 90), (90, 130, 230)])
    sink.stream.log(motion.name, axes, static=True)
    for at, values in motion.blocks(or_as_sent=True):
        session_ns, values = at[at != UNKNOWN], values[at != UNKNOWN]
        slot = session_ns // SAMPLE_NS
        first = np.flatnonzero(np.diff(slot, prepend=slot[:1] - 1))
        counts = np.diff(np.append(first, len(values)))
        means = np.add.reduceat(values.astype(np.float64), first, axis=0) / counts[:, None]
        sink.columns(motion.name, session_ns[first], sink.rr.Scalars.columns(scalars=means))


def show_head(head: HeadStream, _options: ViewOptions, sink: ViewerSink) -> None:
    """Send position and direction of the head, and when its tracking was lost."""
    lost = np.isnan(head.values[:, 0, 3])
    sink.lost(head.source, head.session_ns, lost)
    _arrows(sink, "world/head", head.session_ns, head.values[:, :3, 3], -0.2 * head.values[:, :3, 2])


def show_gaze(gaze: GazeStream, _options: ViewOptions, sink: ViewerSink) -> None:
    """Send the gaze."""
    _arrows(sink, "world/gaze", gaze.session_ns, gaze.origin, GAZE_M * gaze.direction)


def _arrows(sink: ViewerSink, entity: str, session_ns: Int64, origins: Floats, vectors: Floats) -> None:
    valid = np.isfinite(origins[:, 0])
    sink.hide(entity, session_ns, ~valid)
    for rows in _blocks(np.flatnonzero(valid)):
        arrows = sink.rr.Arrows3D.columns(origins=origins[rows], vectors=vectors[rows])
        sink.columns(entity, session_ns[rows], arrows)


def show_hands(hands: HandStream, _options: ViewOptions, sink: ViewerSink) -> None:
    """Send the joints of both hands."""
    for entity, joints in (("world/left_hand", hands.left), ("world/right_hand", hands.right)):
        valid = np.isfinite(joints[:, 0, 0])
        sink.hide(entity, hands.session_ns, ~valid)
        for rows in _blocks(np.flatnonzero(valid)):
            points = sink.rr.Points3D.columns(
                positions=joints[rows].reshape(-1, 3), radii=np.full(joints[rows].size // 3, JOINT_M)
            )
            columns = points.partition([joints.shape[1]] * len(rows))
            sink.columns(entity, hands.session_ns[rows], columns)


def _blocks(rows: Int64) -> Iterator[Int64]:
    return (rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS))


def show_cloud(depth: DepthStream, options: ViewOptions, sink: ViewerSink) -> None:
    """Send depth as points in world coordinates, coloured by distance. Raises Refused without constants."""
    sink.hide("world/depth", depth.session_ns, np.isnan(depth.world_from_camera[:, 0, 3]))
    for number in options.chosen(depth.session_ns, options.pictures_per_s / 5):
        try:
            points = depth.points(number)[::CLOUD_STEP]
        except Unreadable:
            continue
        distance_m = np.linalg.norm(points - depth.world_from_camera[number, :3, 3], axis=1)
        near = np.clip(255 * (1 - distance_m / MAX_DEPTH_M), 0, 255).astype(np.uint8).reshape(-1, 1)
        colours = np.asarray(cv2.applyColorMap(near, cv2.COLORMAP_TURBO)[:, 0, ::-1], np.uint8)
        cloud = sink.rr.Points3D(points, colors=colours, radii=0.006)
        sink.at(depth.session_ns[number], "world/depth", cloud)


def show_front_camera(camera: PictureStream, options: ViewOptions, sink: ViewerSink) -> None:
    """Send frames, optics and poses of the front camera."""
    at, lost = camera.session_ns, np.isnan(camera.world_from_camera[:, 0, 3])
    sink.lost(camera.name, at, lost)
    for first, _ in marked_runs(lost):
        sink.place(at[first], FRONT, NO_POSE)
    for number in options.chosen(at, options.pictures_per_s):
        try:
            frame = camera.frame(number)
        except Unreadable:
            continue
        if not lost[number]:
            sink.place(at[number], FRONT, camera.world_from_camera[number])
        rgb = frame.rgb()
        scale = min(1.0, WIDTH / rgb.shape[1])
        size = (round(rgb.shape[1] * scale), max(2, round(rgb.shape[0] * scale)))
        small = np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), np.uint8)
        if frame.intrinsics is not None:
            sink.optics(at[number], FRONT, scale * np.array(frame.intrinsics), small)
        sink.picture(at[number], FRONT, small)


def show_film(film: FilmStream, options: ViewOptions, sink: ViewerSink) -> None:
    """Send a camera's frames, with poses if its mount and lens are calibrated. Raises NotKnown."""
    device, chosen = film.name.rpartition("/")[0], options.chosen(film.session_ns, options.pictures_per_s)
    is_placed = bool(chosen) and _is_placed(film, chosen[0])
    for number in chosen:
        try:
            picture = film.small(number, WIDTH)
        except Unreadable:
            continue
        at = film.session_ns[number]
        sink.picture(at, device, picture)
        if is_placed and (view := film.view(number)) is not None:
            entity, lens = f"world/{device}", view.camera
            sink.place(at, entity, inverse(view.camera_from_world))
            sink.optics(at, entity, picture.shape[1] / lens.width * lens.parameters[:4], picture)


def _is_placed(film: FilmStream, number: int) -> bool:
    """Return whether lens and mount of a camera are calibrated."""
    try:
        film.view(number)
    except Refused:
        return False
    return True


def show_plugin(stream: PacketStream, options: ViewOptions, sink: ViewerSink) -> None:
    """Send a plug-in's stream: its images, or the numbers in its packets. Raises NotKnown, Unreadable."""
    media_type = MEDIA_TYPES.get(str(stream.stored.format.get("codec")))
    if media_type is not None:
        for number in options.chosen(stream.session_ns, options.pictures_per_s):
            row = int(stream.rows[number])
            content = stream.stored.payload(row)
            if row not in stream.stored.bad:
                shown = sink.rr.EncodedImage(contents=content, media_type=media_type)
                sink.at(stream.session_ns[number], stream.name, shown)
        return
    is_shown = False
    for at, field, values in _columns(stream):
        sink.columns(f"{stream.name}/{field}", at, sink.rr.Scalars.columns(scalars=values))
        is_shown = True
    if not is_shown:
        raise Unreadable(f"{stream.name}: its packets contain no numbers that can be decoded here")


def _columns(stream: PacketStream) -> Iterator[tuple[Int64, str, Any]]:
    """Yield session ns, field and values of the numbers in a plug-in's packets, in blocks."""
    if isinstance(stream, RecordStream):
        if len(stream):
            yield from (
                (stream.session_ns, field, stream[field].astype(np.float64)) for field in stream.fields
            )
        return
    for block in _blocks(np.arange(len(stream))):
        values_of: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number in block.tolist():
            try:
                payload = stream.read(number)
            except Unreadable:
                continue
            for field, value in numbers(payload):
                values_of[field].append((number, value))
        for field, pairs in values_of.items():
            rows, values = zip(*pairs, strict=True)
            yield stream.session_ns[list(rows)], field, values


def numbers(value: Any) -> Iterator[tuple[str, float]]:
    """Yield (field, number) of a decoded payload; records are averaged."""
    if isinstance(value, np.ndarray) and value.dtype.names and len(value):
        yield from ((name, float(value[name].mean(dtype=np.float64))) for name in value.dtype.names)
    elif isinstance(value, dict):
        yield from ((str(key), float(item)) for key, item in value.items() if _is_number(item))
    elif _is_number(value):
        yield "value", float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_)


SHOW: dict[type[TimedStream], Callable[[Any, ViewOptions, ViewerSink], None]] = {
    HeadsetMotion: show_motion,
    CameraMotion: show_motion,
    HeadStream: show_head,
    HandStream: show_hands,
    GazeStream: show_gaze,
    DepthStream: show_cloud,
    PictureStream: show_front_camera,
    FilmStream: show_film,
    PacketStream: show_plugin,
    RecordStream: show_plugin,
}
"""Function that sends each kind of stream."""
