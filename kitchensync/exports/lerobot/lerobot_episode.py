"""One episode of a LeRobot data set: a recording on an exact time grid, with its videos and columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import numpy as np
import numpy.typing as npt

from kitchensync.exports.exported_span import ExportedSpan, NoSuchSpan, Progress
from kitchensync.exports.lerobot.lerobot_statistics import PictureCounts
from kitchensync.reader.body_streams import BodyStream, GazeStream, HandStream, HeadStream
from kitchensync.reader.film_streams import CameraSound, FilmStream
from kitchensync.reader.headset_streams import PictureStream
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.timed_stream import TimedStream, Unreadable
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import is_front_camera
from kitchensync.sensors.shown_picture import shown_frame
from kitchensync.shell.array_types import Floats, Int64
from kitchensync.storage.errors import StorageError
from kitchensync.storage.exports.film import FilmWriter, SoundCopy, black
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.timeline.film_times import UNKNOWN
from kitchensync.storage.timeline.pose_track import rotation_wxyz
from kitchensync.task_graphs.categories import TAG_OF_COLUMN

if TYPE_CHECKING:
    import av

Camera = PictureStream | FilmStream
Sound = tuple[CameraSound, Iterator[tuple[Fraction, "av.Packet"]]]
Flags = npt.NDArray[np.bool_]
NS = 1_000_000_000
KEY_EVERY = 2
"""Interval of key frames, as in LeRobot: a reader reaches any frame by decoding at most two."""
LATEST_PERIODS = 1.5
"""Largest age of a frame that is valid for an instant, in median frame periods of its camera."""
TRIED = 30
"""Frames of a camera that are read to find its size."""
NONE = -1
"""Value for no frame, no time and an unknown bound; many readers of LeRobot data sets cannot handle NaN."""
NO_STEP = "no step"
PARTS = ("head", "left_hand", "right_hand", "gaze")
STATE = tuple(
    f"{part}.{axis}"
    for part, axes in (
        ("head", ("x", "y", "z", "qw", "qx", "qy", "qz")),
        ("left_palm", "xyz"),
        ("right_palm", "xyz"),
        ("gaze_origin", "xyz"),
        ("gaze_direction", "xyz"),
    )
    for axis in axes
)


@dataclass(frozen=True)
class EpisodeSources:
    """Streams of a recording that an episode is made from, by the names of the cameras."""

    cameras: dict[str, Camera] = field(default_factory=dict)
    bodies: list[BodyStream] = field(default_factory=list)
    sounds: dict[str, CameraSound] = field(default_factory=dict)
    "Sound of the cameras' videos."
    left_out: dict[str, str] = field(default_factory=dict)


def sources_of(recording: OpenedRecording, names: list[str]) -> EpisodeSources:
    """Choose the front cameras, videos and the main headset's body from some streams; the others are `left_out`."""
    sources = EpisodeSources()
    attributes = {full: short for short, full in reversed(recording.attributes.items())}
    videos: dict[str, str] = {}
    # Sound comes last, as it needs its camera's video.
    for name in sorted(names, key=lambda name: issubclass(recording.kind_of(name), CameraSound)):
        device, short = name.rpartition("/")[0], attributes.get(name, name.replace("/", "_"))
        try:
            stream = recording[name]
            is_body = isinstance(stream, BodyStream) and name in attributes
            is_camera = isinstance(stream, FilmStream) or is_front_camera(name)
            if (is_body or is_camera) and not len(_in_time(stream)[0]):
                sources.left_out[name] = f"its {stream.kind} have no times"
            elif isinstance(stream, BodyStream) and is_body:
                sources.bodies.append(stream)
            elif isinstance(stream, PictureStream | FilmStream) and is_camera:
                sources.cameras[short] = stream
                videos[device] = short
            elif isinstance(stream, CameraSound) and device in videos:
                sources.sounds[videos[device]] = stream
            else:
                sources.left_out[name] = f"LeRobot data sets have no feature for {stream.kind}"
        except (StorageError, SensorError, Refused) as error:
            sources.left_out[name] = str(error)
    for body in sources.bodies:
        sources.left_out.pop(body.source, None)
    return sources


def _in_time(stream: TimedStream) -> tuple[Int64, Int64]:
    """Return the numbers of the values with a time in order of time, and their session ns."""
    timed = np.flatnonzero(stream.session_ns != UNKNOWN)
    order = timed[np.argsort(stream.session_ns[timed], kind="stable")]
    return order, stream.session_ns[order]


def grid_of(cameras: dict[str, Camera], bodies: list[BodyStream], span: ExportedSpan, fps: int) -> Int64:
    """Return the session ns of an episode's frames, (n,), from when all cameras have frames to the last frame.

    If the span has a start, the grid begins there, but not before the first frame of any camera. Raises NoSuchSpan.
    """
    streams: Sequence[TimedStream] = list(cameras.values()) or bodies
    ends = [(int(ns[0]), int(ns[-1])) for ns in (_in_time(stream)[1] for stream in streams) if len(ns)]
    if not ends:
        raise NoSuchSpan("the recording has no camera and no poses with times")
    firsts, lasts = zip(*ends, strict=True)
    start_ns = max(firsts) if isinf(span.start) else max(round(span.start * NS), min(firsts))
    end_ns = max(lasts) + 1 if isinf(span.end) else min(round(span.end * NS), max(lasts) + 1)
    count = ceil((end_ns - start_ns) * fps / NS)
    if count < 1:
        raise NoSuchSpan(f"the recording has no data from {span.start:g} s to {span.end:g} s")
    return start_ns + np.rint(np.arange(count) * (NS / fps)).astype(np.int64)


def size_of(camera: Camera, grid_ns: Int64, width: int) -> tuple[int, int]:
    """Return the size of a camera's frames: even width and height, at most `width` wide. Raises Unreadable."""
    numbers = shown_at(camera, grid_ns)[0]
    if (numbers == NONE).all():
        raise Unreadable(f"{camera.name}: it has no frame in this span")
    for number in np.unique(numbers[numbers != NONE])[:TRIED].tolist():
        try:
            rows, columns, _ = camera.read(number).shape
        except Unreadable:
            continue
        even_width = min(width, columns) // 2 * 2
        return even_width, max(2, 2 * round(rows * even_width / columns / 2))
    raise Unreadable(f"{camera.name}: no frame in this span can be read")


def shown_at(camera: Camera, grid_ns: Int64) -> tuple[Int64, Flags]:
    """Return the number of the last frame at or before each instant (n,), and whether it is recent enough."""
    order, ns = _in_time(camera)
    last = np.searchsorted(ns, grid_ns, side="right") - 1
    step_ns = float(np.median(np.diff(ns))) if len(ns) > 1 else 0.0
    near = (last >= 0) & (grid_ns - ns[last] <= LATEST_PERIODS * step_ns)
    return np.where(last >= 0, order[last], NONE), near


def write_film(
    camera: Camera, sound: Sound | None, numbers: Int64, out: Path, size: tuple[int, int], fps: int,
    tell: Progress,
) -> tuple[Int64, PictureCounts]:  # fmt: skip
    """Write a video of some of a camera's frames; return the numbers of the written frames, (n,), and statistics.

    A frame that cannot be read is replaced by the previous one; before the first frame the video is black. Each
    packet of sound is at its own session time.
    """
    shown, counts = np.full(len(numbers), NONE, np.int64), PictureCounts()
    image, last, tried = black(*size), NONE, NONE
    with FilmWriter(out, Fraction(1, fps), key_every=KEY_EVERY) as film:
        film.open(*size)
        copy = SoundCopy(film.film, sound[0].timeline.clip, sound[1]) if sound is not None else None
        for k, number in enumerate(numbers.tolist()):
            if number != tried:
                tried, scaled = number, _scaled_frame(camera, number, size)
                image, last = (image, last) if scaled is None else (scaled, number)
            film.write(image, k)
            shown[k] = last
            if copy is not None:
                copy.write_until(Fraction(k, fps))
            if k % fps == 0:
                counts.add(image)
                tell(k, len(numbers), camera.name)
        if copy is not None:
            copy.write_until(None)
    return shown, counts


def sound_in(sound: CameraSound, grid_ns: Int64, fps: int) -> Sound:
    """Return a sound and its packets in the span of an episode's frames, with their seconds in the video."""
    start_ns = int(grid_ns[0])
    packets = ((Fraction(ns - start_ns, NS), packet) for ns, packet in sound.packets())
    return sound, ((at_s, packet) for at_s, packet in packets if 0 <= at_s < Fraction(len(grid_ns), fps))


def _scaled_frame(camera: Camera, number: int, size: tuple[int, int]) -> av.VideoFrame | None:
    """Return a frame in the size of the video; None if it cannot be read."""
    try:
        image: Any
        if isinstance(camera, FilmStream):
            image = camera.small(number, size[0])
        else:
            frame = camera.frame(number)
            image = frame.rgb() if isinstance(frame.picture, np.ndarray) else frame.picture
    except (StorageError, SensorError):
        return None
    if isinstance(image, np.ndarray):
        image = av.VideoFrame.from_ndarray(image, "rgb24")
    return shown_frame(image, width=size[0], height=size[1])


def camera_columns(name: str, camera: Camera, numbers: Int64, near: Flags, shown: Int64) -> dict[str, Any]:
    """Return for each frame whether its image is valid, the capture time, and the error bound of that time."""
    has_image = shown != NONE
    capture_ns = np.where(has_image, camera.session_ns[shown], NONE)
    bounds_s: Floats = np.full(len(shown), float(NONE))
    if isinstance(camera, FilmStream):
        bounds_s = np.nan_to_num(camera.bounds_s[shown], nan=NONE)
    else:
        with suppress(NotKnown):
            bounds_s = np.array([camera.bound_at(float(at)) for at in camera.times[shown]])
    return {
        f"valid.{name}": near & has_image & (shown == numbers),
        f"capture_ns.{name}": capture_ns,
        f"bound_s.{name}": np.where(has_image, bounds_s, NONE).astype(np.float32),
    }


def state_columns(bodies: list[BodyStream], grid_ns: Int64) -> dict[str, Any]:
    """Return `observation.state` (n, 19), flags of its tracked parts (n, 4), and `action`, the next state.

    A part that was not tracked keeps its last value; before the first one it is zero, a rotation the identity.
    """
    parts = [np.full((len(grid_ns), count), np.nan) for count in (7, 3, 3, 6)]
    world = np.full(len(grid_ns), NONE, np.int64)
    at_s = grid_ns / 1e9
    for stream in bodies:
        if isinstance(stream, HeadStream):
            poses = stream.sample(at_s)
            parts[0] = np.column_stack([poses[:, :3, 3], rotation_wxyz(poses[:, :3, :3])])
            order, ns = _in_time(stream)
            last = np.searchsorted(ns, grid_ns, side="right") - 1
            world = np.where(last >= 0, stream.worlds[order[last]], NONE) if len(ns) else world
        elif isinstance(stream, HandStream):
            palm, hands = stream.joints.index("palm"), stream.sample(at_s)
            parts[1:3] = hands.left[:, palm], hands.right[:, palm]
        elif isinstance(stream, GazeStream):
            parts[3] = np.column_stack(stream.sample(at_s))
    tracked = np.column_stack([np.isfinite(part).all(axis=1) for part in parts])
    parts = [_last_tracked(part, flags) for part, flags in zip(parts, tracked.T, strict=True)]
    parts[0][:, 3:] = _continuous(parts[0][:, 3:])
    state = np.concatenate(parts, axis=1).astype(np.float32)
    return {
        "observation.state": state,
        "valid.state": tracked,
        "world": world.astype(np.int64),
        "action": np.concatenate([state[1:], state[-1:]]),
    }


def _last_tracked(values: Floats, tracked: Flags) -> Floats:
    last = np.maximum.accumulate(np.where(tracked, np.arange(len(tracked)), NONE))
    return np.where(last[:, None] >= 0, values[last], 0.0)


def _continuous(rotations: Floats) -> Floats:
    """Return rotations (n, 4) without jumps between q and -q, which are the same; zeros become 1, 0, 0, 0."""
    rotations = np.where(rotations.any(axis=1, keepdims=True), rotations, [[1.0, 0.0, 0.0, 0.0]])
    flips = np.einsum("ni,ni->n", rotations[1:], rotations[:-1]) < 0
    return rotations * np.cumprod(np.concatenate([[1.0], np.where(flips, -1.0, 1.0)]))[:, None]


def step_columns(rows: list[dict[str, Any]], grid_ns: Int64) -> tuple[list[str], dict[str, Any]]:
    """Return the task of each frame, and columns with its errors; several steps are joined by `; `."""
    at_s = grid_ns / 1e9
    in_progress = np.zeros((len(rows), len(at_s)), np.bool_)
    for k, row in enumerate(rows):
        in_progress[k] = (row["start"] <= at_s) & (at_s < row["end"])
    # Texts are made once for each combination of steps, of which there are few.
    combinations, index = in_progress[:, :1], np.zeros(len(at_s), np.int64)
    if rows:
        combinations, index = np.unique(in_progress, axis=1, return_inverse=True)
        index = np.asarray(index, np.int64).reshape(-1)
    steps = [[row for row, flag in zip(rows, flags, strict=True) if flag] for flags in combinations.T]
    tasks = ["; ".join(dict.fromkeys(row["step"] for row in together)) or NO_STEP for together in steps]
    errors = np.array([any(row["error"] for row in together) for together in steps], np.bool_)
    tags = ["; ".join(dict.fromkeys(tag for row in together for tag in _tags(row))) for together in steps]
    columns = {"error": errors[index], "error_tags": [tags[k] for k in index]}
    return [tasks[k] for k in index], columns


def _tags(row: dict[str, Any]) -> Iterator[str]:
    if row["error"]:
        yield from [tag for name, tag in TAG_OF_COLUMN.items() if row[name]] or ["Other"]
