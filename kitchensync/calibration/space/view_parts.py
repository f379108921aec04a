"""What a recording shows in Rerun, part by part; each hands over one stream, piece by piece, on `session_ns`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.calibration.space.drawn_time import DrawnTime
from kitchensync.reader.cameras.depth_views import DepthSource
from kitchensync.reader.cameras.eyes import TRACKING_LOST
from kitchensync.reader.cameras.recorded import started_at
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.sensors.gopro.files.picture_reader import PictureReader
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.shell.array_types import Floats, Int64, Mask
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.geometry.camera_models import Fisheye, Pinhole
from kitchensync.storage.geometry.clouds import MM_PER_M
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.geometry.reference_frames import inverse, opencv_camera_from_world, tracked
from kitchensync.storage.privacy import overlaps
from kitchensync.storage.reading.alignments import FilmClock
from kitchensync.storage.reading.calibration_results import lens_from_words, lens_result, mount_result
from kitchensync.storage.reading.inertial import inertial_clock, packets_of_samples
from kitchensync.storage.recording import Recording, StoredStream

Say = Callable[[str, float], None]

TIMELINE = "session_ns"
BLOCK_ROWS = 900
SAMPLE_S = 0.01
"Inertial samples are shown as means over this."
CLOUD_STEP = 2
"Every second row and column of depth."
FARTHEST_M = 4.0
GAZE_M = 1.0
JPEG_QUALITY = 80
NOWHERE: Floats = np.full((4, 4), np.nan)
"No pose: Rerun draws nothing below it, but draws at the origin what has no pose at all, or one of zeros."


@dataclass(frozen=True)
class ViewOptions:
    """How much of the pictures is handed over, and which seconds of the session."""

    pictures_per_s: float = 5.0
    width: int = 640
    clouds_per_s: float = 1.0
    from_s: float = 0.0
    to_s: float = float("inf")

    def chosen(self, session_ns: Int64, per_s: float) -> npt.NDArray[np.intp]:
        """Return which of ascending instants (n,) are shown, at most `per_s` a second."""
        seconds = session_ns / 1e9
        inside = (seconds >= self.from_s) & (seconds <= self.to_s)
        slot = np.floor(seconds * per_s).astype(np.int64)
        first = np.concatenate(([True], np.diff(slot) > 0)) if len(slot) else np.zeros(0, bool)
        return np.flatnonzero(inside & first)


def log_events(recording: Recording, time: DrawnTime, rr: Any, sink: Any, _say: Say) -> str | None:
    """Hand over what people did, as lines of text."""
    events = recording.events()
    at_ns = np.array([event["host_ns"] for event in events], np.int64)
    hidden = overlaps(at_ns, at_ns, recording.pauses)
    events = [event for event, is_hidden in zip(events, hidden, strict=True) if not is_hidden]
    if not events:
        return None
    at = time.session.of_host(at_ns[~hidden])
    if at is None:
        return "no clock probe tells when on the headset's clock they were"
    words = [" ".join([event["kind"], *_words(event["body"])]) for event in events]
    sink.send_columns("events", [_time(rr, at)], rr.TextLog.columns(text=words))
    return None


def _words(body: dict[str, Any]) -> Iterator[str]:
    for name, value in body.items():
        if isinstance(value, (str, int, float)):
            yield f"{name}={value}"


def log_inertial(
    stream: StoredStream, time: DrawnTime, scale: float, rr: Any, sink: Any, say: Say
) -> str | None:
    """Hand over an inertial sensor of the headset as means over 10 ms, its values multiplied by `scale`."""
    clock = inertial_clock(stream)
    if clock is None:
        return "it holds no samples"
    _name_axes(rr, sink, stream.name)
    ticks: list[Int64] = []
    arrived_ns: list[int] = []
    values: list[Floats] = []

    def hand_over() -> None:
        near_ns = np.repeat(arrived_ns, [len(part) for part in ticks])
        at = time.session.of_ticks(np.concatenate(ticks), near_host_ns=near_ns)
        sink.send_columns(stream.name, [_time(rr, at)], rr.Scalars.columns(scalars=np.concatenate(values)))
        say(stream.name, float(at[-1]) / 1e9)
        ticks.clear()
        arrived_ns.clear()
        values.clear()

    done, hidden = 0, stream.hidden
    for row, samples in packets_of_samples(stream):
        done += len(samples)
        if hidden[row]:
            continue
        edges = _edges(samples["vinyl_ns"])
        counts = np.diff(np.append(edges, len(samples)))
        ticks.append(clock.repair.ticks(samples["vinyl_ns"], first_sample=done - len(samples))[edges])
        arrived_ns.append(int(stream.index["host_ns"][row]))
        sums = np.add.reduceat(samples["xyz"].astype(np.float64), edges, axis=0)
        values.append(scale * sums / counts[:, None])
        if len(ticks) >= BLOCK_ROWS:
            hand_over()
    if ticks:
        hand_over()
    if clock.undecodable:
        return f"{clock.undecodable} packets hold no samples that can be read"
    return None


def _session_ns(stream: StoredStream, time: DrawnTime) -> Int64:
    """Return session ns (n,) of a stream's packets."""
    return time.session.of_ticks(stream.index["device_ticks"], near_host_ns=stream.index["host_ns"])


def _name_axes(rr: Any, sink: Any, entity: str) -> None:
    """Draw x, y and z in their usual colours: red, green, blue."""
    axes = rr.SeriesLines(names=["x", "y", "z"], colors=[(222, 80, 80), (90, 190, 90), (90, 130, 230)])
    sink.log(entity, axes, static=True)


def _edges(at_ns: Int64) -> npt.NDArray[np.intp]:
    """Return the first sample of each 10 ms."""
    slot = ((at_ns - at_ns[0]) / 1e9 / SAMPLE_S).astype(np.int64)
    return np.flatnonzero(np.concatenate(([True], np.diff(slot) > 0)))


def log_bodies(stream: StoredStream, time: DrawnTime, rr: Any, sink: Any, say: Say) -> str | None:
    """Hand over head, gaze and hands in the world frame, and in words when the head was lost."""
    session_ns, hidden = _session_ns(stream, time), stream.hidden
    told: list[Int64] = []
    lost: list[Mask] = []
    for start in range(0, len(stream), BLOCK_ROWS):
        whole = {
            row: payload
            for row, payload in stream.packets(start, start + BLOCK_ROWS)
            if len(payload) == spatial_input.DTYPE.itemsize and not hidden[row]
        }
        records = np.frombuffer(b"".join(whole.values()), spatial_input.DTYPE)
        at = session_ns[list(whole)]
        told.append(at)
        lost.append((records["valid"] & spatial_input.HEAD) == 0)
        _send_bodies(rr, sink, at, records)
        if len(at):
            say(stream.name, float(at[-1]) / 1e9)
    _send_lost(rr, sink, stream.name, np.concatenate(told), np.concatenate(lost))
    return None


def _send_lost(rr: Any, sink: Any, name: str, at: Int64, lost: Mask) -> None:
    """Write among the events from when to when tracking was lost."""
    for first, end in marked_runs(lost):
        for row, words in ((first, TRACKING_LOST), (end, "tracking found again")):
            if row < len(at):
                sink.set_time(TIMELINE, duration=np.timedelta64(int(at[row]), "ns"))
                sink.log(f"events/{name}", rr.TextLog(words))


def _hide(rr: Any, sink: Any, entity: str, at: Int64, unseen: Mask) -> None:
    """Let the viewer show an entity no longer, from the first row of each run of `unseen` to what is sent next."""
    first = [first for first, _ in marked_runs(unseen)]
    if first:
        sink.send_columns(entity, [_time(rr, at[first])], rr.Clear.columns(is_recursive=[False] * len(first)))


def _send_bodies(rr: Any, sink: Any, at: Int64, records: npt.NDArray[np.void]) -> None:
    def where(bit: int) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (records["valid"] & bit) != 0
        return found

    head, gaze = where(spatial_input.HEAD), where(spatial_input.EYE_RAY)
    for name, seen, origin, way, length in (
        ("world/head", head, "head_position", "head_forward", 0.2),
        ("world/gaze", gaze, "eye_origin", "eye_direction", GAZE_M),
    ):
        _hide(rr, sink, name, at, ~seen)
        if seen.any():
            arrows = rr.Arrows3D.columns(
                origins=records[origin][seen], vectors=records[way][seen] * np.float32(length)
            )
            sink.send_columns(name, [_time(rr, at[seen])], arrows)
    for side, bit in (("left", spatial_input.LEFT_HAND), ("right", spatial_input.RIGHT_HAND)):
        seen = where(bit)
        _hide(rr, sink, f"world/{side}_hand", at, ~seen)
        if not seen.any():
            continue
        joints = records[f"{side}_hand"][seen]
        count = len(spatial_input.JOINTS)
        points = rr.Points3D.columns(
            positions=joints["position"].reshape(-1, 3), radii=joints["radius"].ravel()
        )
        sink.send_columns(
            f"world/{side}_hand", [_time(rr, at[seen])], points.partition([count] * int(seen.sum()))
        )


def log_cloud(
    recording: Recording, name: str, time: DrawnTime, shown: ViewOptions, rr: Any, sink: Any, say: Say
) -> str | None:
    """Hand over depth as points in the world frame, coloured by distance; say why when the constants are missing."""
    try:
        source = DepthSource(recording, name)
    except Refused as refusal:
        return refusal.reason
    at = _session_ns(source.stream, time)
    _hide(rr, sink, "world/depth", *_untracked(source.stream, at))
    placed = 0
    for row in shown.chosen(at, shown.clouds_per_s):
        for view in source.views(int(row), int(row) + 1):
            points, order = source.points(view)
            line, column = np.divmod(order, view.depth_mm.shape[1])
            thin = (line % CLOUD_STEP == 0) & (column % CLOUD_STEP == 0)
            colours = _by_distance(view.depth_mm.ravel()[order[thin]] / MM_PER_M)
            sink.set_time(TIMELINE, duration=np.timedelta64(int(at[row]), "ns"))
            sink.log("world/depth", rr.Points3D(points[thin], colors=colours, radii=0.006))
            placed += 1
        say(name, float(at[row]) / 1e9)
    return None if placed else "no picture of it has a pose"


def _untracked(stream: StoredStream, at: Int64) -> tuple[Int64, Mask]:
    """Return when the packets were taken that may be shown, and which of them tell that tracking was lost."""
    shown, poses = ~stream.hidden, stream.poses()
    lost = np.zeros(len(stream), np.bool_) if poses is None else ~tracked(poses)
    return at[shown], lost[shown]


def _by_distance(distance_m: npt.NDArray[np.floating]) -> npt.NDArray[np.uint8]:
    near = np.clip(255 * (1 - distance_m / FARTHEST_M), 0, 255).astype(np.uint8).reshape(-1, 1)
    return np.asarray(cv2.applyColorMap(near, cv2.COLORMAP_TURBO)[:, 0, ::-1], np.uint8)


def log_pv(
    stream: StoredStream, time: DrawnTime, shown: ViewOptions, rr: Any, sink: Any, say: Say
) -> str | None:
    """Hand over the front camera: pictures, optics and where it was."""
    at = _session_ns(stream, time)
    wanted = set(shown.chosen(at, shown.pictures_per_s).tolist())
    if not wanted:
        return "no picture between these seconds"
    told, lost = _untracked(stream, at)
    _send_lost(rr, sink, stream.name, told, lost)
    for first, _ in marked_runs(lost):
        sink.set_time(TIMELINE, duration=np.timedelta64(int(told[first]), "ns"))
        _log_pose(rr, sink, "world/pv", NOWHERE)
    for frame in stream.frames(min(wanted), max(wanted) + 1):
        if frame.row not in wanted:
            continue
        sink.set_time(TIMELINE, duration=np.timedelta64(int(at[frame.row]), "ns"))
        if frame.pose is not None:
            _log_pose(rr, sink, "world/pv", inverse(opencv_camera_from_world(frame.pose)))
        rgb = frame.rgb()
        small, scale = _small(rgb, shown.width)
        if frame.intrinsics is not None:
            fx, fy, cx, cy = (value * scale for value in frame.intrinsics)
            _log_optics(rr, sink, "world/pv", (fx, fy, cx, cy), small)
        sink.log("world/pv", rr.EncodedImage(contents=_jpeg(small), media_type="image/jpeg"))
        say(stream.name, float(at[frame.row]) / 1e9)
    return None


def log_camera(
    recording: Recording, file: FilmClock, time: DrawnTime, shown: ViewOptions, rr: Any, sink: Any, say: Say
) -> str | None:
    """Hand over a camera's pictures and gyroscope; in space too where its mount and its lens are known."""
    media, device = open_media(file.file), file.file.parent.name
    track = file.gyroscope()
    _name_axes(rr, sink, f"{device}/gyroscope")
    shown_s = ~hidden_in_film(recording, file.file, track.t_s)
    at, turning = time.of_media(file, track.t_s[shown_s]), track.xyz[shown_s].astype(np.float64)
    sink.send_columns(f"{device}/gyroscope", [_time(rr, at)], rr.Scalars.columns(scalars=turning))
    place = _mounted(recording, media)
    at, hidden = (
        time.of_media(file, media.frame_times_s),
        hidden_in_film(recording, file.file, media.frame_times_s),
    )
    with PictureReader(media) as reader:
        for number in shown.chosen(at, shown.pictures_per_s):
            if hidden[number]:
                continue
            picture = reader.number(int(number), shown.width).rgb
            sink.set_time(TIMELINE, duration=np.timedelta64(int(at[number]), "ns"))
            coded = rr.EncodedImage(contents=_jpeg(picture), media_type="image/jpeg")
            sink.log(device, coded)
            if place is not None:
                lens, pv_from_camera = place
                scale = picture.shape[1] / lens.width
                _log_optics(rr, sink, f"world/pv/{device}", tuple(scale * lens.parameters[:4]), picture)
                _log_pose(rr, sink, f"world/pv/{device}", pv_from_camera)
            say(file.file.name, float(at[number]) / 1e9)
    return None


def _mounted(recording: Recording, media: GoProMedia) -> tuple[Pinhole | Fisheye, Floats] | None:
    """Return lens and front camera from camera (4, 4) that count for a file; None when one is not known."""
    known = recording.path.absolute().parent, media.serial or "unknown", media.mode.lens_name
    when = started_at(recording)
    try:
        lens, mount = lens_result(*known, when)[1], mount_result(*known, when)[1]
    except Refused:
        return None
    return lens_from_words(lens)[0], inverse(np.array(mount["camera_from_pv"]))


def _log_pose(rr: Any, sink: Any, entity: str, parent_from_child: Floats) -> None:
    sink.log(entity, rr.Transform3D(translation=parent_from_child[:3, 3], mat3x3=parent_from_child[:3, :3]))


def _log_optics(
    rr: Any, sink: Any, entity: str, optics: tuple[float, ...], picture: npt.NDArray[np.uint8]
) -> None:
    """Log a camera's pyramid; Rerun knows pinholes only, so a wide lens is drawn by its middle."""
    fx, fy, cx, cy = (float(value) for value in optics)
    resolution = [picture.shape[1], picture.shape[0]]
    sink.log(
        entity,
        rr.Pinhole(
            focal_length=[fx, fy], principal_point=[cx, cy], resolution=resolution,
            camera_xyz=rr.ViewCoordinates.RDF, image_plane_distance=0.2,
        ),
    )  # fmt: skip


def _small(rgb: npt.NDArray[np.uint8], width: int) -> tuple[npt.NDArray[np.uint8], float]:
    scale = min(1.0, width / rgb.shape[1])
    if scale == 1.0:
        return rgb, scale
    size = (width, max(2, round(rgb.shape[0] * scale)))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), np.uint8), scale


def _jpeg(rgb: npt.NDArray[np.uint8]) -> bytes:
    quality = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    return bytes(cv2.imencode(".jpg", np.ascontiguousarray(rgb[:, :, ::-1]), quality)[1])


def _time(rr: Any, session_ns: Int64) -> Any:
    return rr.TimeColumn(TIMELINE, duration=session_ns.astype("timedelta64[ns]"))
