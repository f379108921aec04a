"""One episode of a LeRobot data set: a recording on an exact grid of time, its films and its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
"""Pictures from one key picture to the next, as LeRobot writes them: any picture is reached by decoding two."""
LATEST_PERIODS = 1.5
"""A picture that is older than so many usual steps of its camera does not stand for an instant."""
TRIED = 30
"""So many pictures of a camera are tried for its size."""
NONE = -1
"""No picture, no time of a picture, a bound that nobody knows: readers of such data sets do not like NaN."""
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
    """What of a recording an episode is made of, by name of the camera and of the part of the body."""

    cameras: dict[str, Camera] = field(default_factory=dict)
    bodies: list[BodyStream] = field(default_factory=list)
    sounds: dict[str, CameraSound] = field(default_factory=dict)
    "Of films that are among the cameras."
    left_out: dict[str, str] = field(default_factory=dict)


def sources_of(recording: OpenedRecording, names: list[str]) -> EpisodeSources:
    """Return of some streams the front cameras, films and the main headset's body, and why others are left out."""
    found, mine = EpisodeSources(), {full: short for short, full in reversed(recording.attributes.items())}
    films: dict[str, str] = {}
    for name in sorted(names, key=lambda one: issubclass(recording.kind_of(one), CameraSound)):
        try:
            stream = recording[name]
            is_body = isinstance(stream, BodyStream) and name in mine
            is_camera = isinstance(stream, FilmStream) or is_front_camera(name)
            if (is_body or is_camera) and not len(_known_ns(stream)[0]):
                found.left_out[name] = f"none of its {stream.kind} has a time"
            elif isinstance(stream, BodyStream) and is_body:
                found.bodies.append(stream)
            elif isinstance(stream, PictureStream | FilmStream) and is_camera:
                found.cameras[mine.get(name, name.replace("/", "_"))] = stream
                films[name.rpartition("/")[0]] = mine.get(name, name.replace("/", "_"))
            elif isinstance(stream, CameraSound) and (film := films.get(name.rpartition("/")[0])):
                found.sounds[film] = stream
            else:
                found.left_out[name] = f"{stream.kind}: no feature of the data set holds those"
        except (StorageError, SensorError, Refused) as error:
            found.left_out[name] = str(error)
    for body in found.bodies:
        found.left_out.pop(body.source, None)
    return found


def _known_ns(stream: TimedStream) -> tuple[Int64, Int64]:
    """Return the numbers of the values with a time in the order of time, and their session ns."""
    known = np.flatnonzero(stream.session_ns != UNKNOWN)
    order = known[np.argsort(stream.session_ns[known], kind="stable")]
    return order, stream.session_ns[order]


def grid_of(sources: EpisodeSources, span: ExportedSpan, fps: int) -> Int64:
    """Return the session ns of the frames, (n,): from where all cameras have pictures, to the last one of any.

    With a start that was asked for from there, but not before the first picture of any. Raises NoSuchSpan.
    """
    streams: Sequence[TimedStream] = list(sources.cameras.values()) or sources.bodies
    ends = [(int(ns[0]), int(ns[-1])) for ns in (_known_ns(one)[1] for one in streams) if len(ns)]
    if not ends:
        raise NoSuchSpan("no camera and no pose with times is in it")
    firsts, lasts = zip(*ends, strict=True)
    start_ns = max(firsts) if isinf(span.start) else max(round(span.start * NS), min(firsts))
    end_ns = max(lasts) + 1 if isinf(span.end) else min(round(span.end * NS), max(lasts) + 1)
    count = ceil((end_ns - start_ns) * fps / NS)
    if count < 1:
        raise NoSuchSpan(f"it has nothing from {span.start:g} s to {span.end:g} s")
    return start_ns + np.rint(np.arange(count) * (NS / fps)).astype(np.int64)


def size_of(camera: Camera, grid_ns: Int64, width: int) -> tuple[int, int]:
    """Return even width and height of a camera's pictures, at most `width` across. Raises Unreadable."""
    numbers = shown_at(camera, grid_ns)[0]
    if (numbers == NONE).all():
        raise Unreadable(f"{camera.name}: it has no picture in this span")
    for number in np.unique(numbers[numbers != NONE])[:TRIED].tolist():
        try:
            up, across, _ = camera.read(number).shape
        except Unreadable:
            continue
        wide = min(width, across) // 2 * 2
        return wide, max(2, 2 * round(up * wide / across / 2))
    raise Unreadable(f"{camera.name}: no picture of this span can be read")


def shown_at(camera: Camera, grid_ns: Int64) -> tuple[Int64, Flags]:
    """Return the number of the last picture at or before each instant (n,), and whether it is near enough."""
    order, ns = _known_ns(camera)
    place = np.searchsorted(ns, grid_ns, side="right") - 1
    step_ns = float(np.median(np.diff(ns))) if len(ns) > 1 else 0.0
    near = (place >= 0) & (grid_ns - ns[place] <= LATEST_PERIODS * step_ns)
    return np.where(place >= 0, order[place], NONE), near


def write_film(
    camera: Camera, sound: Sound | None, wanted: Int64, out: Path, size: tuple[int, int], fps: int,
    tell: Progress,
) -> tuple[Int64, PictureCounts]:  # fmt: skip
    """Write one picture a frame, one in memory at a time; return which was really shown at each, (n,), and counts.

    Of a picture that cannot be read the last one stands; before the first one it is black. Each packet of sound is
    heard at its own session time.
    """
    shown, counts = np.full(len(wanted), NONE, np.int64), PictureCounts()
    picture, last, tried = black(*size), NONE, NONE
    with FilmWriter(out, Fraction(1, fps), key_every=KEY_EVERY) as film:
        film.open(*size)
        heard = SoundCopy(film.film, sound[0].timeline.clip, sound[1]) if sound is not None else None
        for k, number in enumerate(wanted.tolist()):
            if number != tried:
                tried, made = number, _picture(camera, number, size)
                picture, last = (picture, last) if made is None else (made, number)
            film.write(picture, k)
            shown[k] = last
            if heard is not None:
                heard.write_until(Fraction(k, fps))
            if k % fps == 0:
                counts.add(picture)
                tell(k, len(wanted), camera.name)
        if heard is not None:
            heard.write_until(None)
    return shown, counts


def sound_in(sound: CameraSound, grid_ns: Int64, fps: int) -> Sound:
    """Return a sound, and its packets with their seconds in a film of these frames; those outside are left out."""
    start_ns = int(grid_ns[0])
    placed = ((Fraction(ns - start_ns, NS), packet) for ns, packet in sound.packets())
    return sound, (one for one in placed if 0 <= one[0] < Fraction(len(grid_ns), fps))


def _picture(camera: Camera, number: int, size: tuple[int, int]) -> av.VideoFrame | None:
    """Return a picture in the form of the film; None where it cannot be read."""
    try:
        picture: Any
        if isinstance(camera, FilmStream):
            picture = camera.small(number, size[0])
        else:
            frame = camera.frame(number)
            picture = frame.rgb() if isinstance(frame.picture, np.ndarray) else frame.picture
    except (StorageError, SensorError):
        return None
    if isinstance(picture, np.ndarray):
        picture = av.VideoFrame.from_ndarray(picture, "rgb24")
    return shown_frame(picture, width=size[0], height=size[1])


def camera_columns(name: str, camera: Camera, wanted: Int64, near: Flags, shown: Int64) -> dict[str, Any]:
    """Return of each frame whether the picture is of its instant, when it was taken, and how far that may be off."""
    there = shown != NONE
    return {
        f"valid.{name}": near & there & (shown == wanted),
        f"capture_ns.{name}": np.where(there, camera.session_ns[shown], NONE),
        f"bound_s.{name}": np.where(there, _bounds(camera, shown), NONE).astype(np.float32),
    }


def _bounds(camera: Camera, shown: Int64) -> Floats:
    if isinstance(camera, FilmStream):
        return np.nan_to_num(camera.bounds_s[shown], nan=NONE)
    try:
        return np.array([camera.bound_at(float(at)) for at in camera.times[shown]])
    except NotKnown:
        return np.full(len(shown), float(NONE))


def state_columns(bodies: list[BodyStream], grid_ns: Int64) -> dict[str, Any]:
    """Return `observation.state` (n, 19), which of its parts were seen (n, 4), and `action`: the next state.

    Where a part was not seen it stays as it was last; before that it is zero, a rotation none.
    """
    parts = [np.full((len(grid_ns), count), np.nan) for count in (7, 3, 3, 6)]
    world = np.full(len(grid_ns), NONE, np.int64)
    at_s = grid_ns / 1e9
    for stream in bodies:
        if isinstance(stream, HeadStream):
            found = stream.sample(at_s)
            parts[0] = np.column_stack([found[:, :3, 3], rotation_wxyz(found[:, :3, :3])])
            order, ns = _known_ns(stream)
            place = np.searchsorted(ns, grid_ns, side="right") - 1
            world = np.where(place >= 0, stream.worlds[order[place]], NONE) if len(ns) else world
        elif isinstance(stream, HandStream):
            palm, hands = stream.joints.index("palm"), stream.sample(at_s)
            parts[1:3] = hands.left[:, palm], hands.right[:, palm]
        elif isinstance(stream, GazeStream):
            parts[3] = np.column_stack(stream.sample(at_s))
    seen = np.column_stack([np.isfinite(part).all(axis=1) for part in parts])
    parts = [_held(part, flags) for part, flags in zip(parts, seen.T, strict=True)]
    parts[0][:, 3:] = _unbroken(parts[0][:, 3:])
    state = np.concatenate(parts, axis=1).astype(np.float32)
    return {
        "observation.state": state,
        "valid.state": seen,
        "world": world.astype(np.int64),
        "action": np.concatenate([state[1:], state[-1:]]),
    }


def _held(values: Floats, seen: Flags) -> Floats:
    last = np.maximum.accumulate(np.where(seen, np.arange(len(seen)), NONE))
    return np.where(last[:, None] >= 0, values[last], 0.0)


def _unbroken(turns: Floats) -> Floats:
    """Return rotations (n, 4) without jumps between q and -q, which are the same one; none is 1, 0, 0, 0."""
    turns = np.where(turns.any(axis=1, keepdims=True), turns, [[1.0, 0.0, 0.0, 0.0]])
    flips = np.einsum("ni,ni->n", turns[1:], turns[:-1]) < 0
    return turns * np.cumprod(np.concatenate([[1.0], np.where(flips, -1.0, 1.0)]))[:, None]


def step_columns(rows: list[dict[str, Any]], grid_ns: Int64) -> tuple[list[str], dict[str, Any]]:
    """Return the task of each frame, and whether and how it is done wrong.

    Several steps at a time are joined by `; `.
    """
    at_s = grid_ns / 1e9
    doing = np.zeros((len(rows), len(at_s)), np.bool_)
    for k, row in enumerate(rows):
        doing[k] = (row["start"] <= at_s) & (at_s < row["end"])
    kinds, which = np.unique(doing, axis=1, return_inverse=True) if len(rows) else (doing[:, :1], at_s * 0)
    which = np.asarray(which, np.int64).reshape(-1)
    now = [[row for row, is_done in zip(rows, kind, strict=True) if is_done] for kind in kinds.T]
    tasks = ["; ".join(dict.fromkeys(row["step"] for row in steps)) or NO_STEP for steps in now]
    errors = np.array([any(row["error"] for row in steps) for steps in now], np.bool_)
    tags = ["; ".join(dict.fromkeys(tag for row in steps for tag in _tags(row))) for steps in now]
    columns = {"error": errors[which], "error_tags": [tags[k] for k in which]}
    return [tasks[k] for k in which], columns


def _tags(row: dict[str, Any]) -> Iterator[str]:
    if row["error"]:
        yield from [tag for name, tag in TAG_OF_COLUMN.items() if row[name]] or ["Other"]
