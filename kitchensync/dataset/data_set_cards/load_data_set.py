#!/usr/bin/env python3
"""Read a data set. Needs Python 3.9 or later, NumPy and PyAV.

    from load import open_data_set

    data = open_data_set()                    # the folder that this file is in
    rec = data["1_26"]
    rec.steps[0]["description"], rec.steps[0]["start_time"]
    [(row["step"], row["at_s"], row["intent"], row["noticed"]) for row in rec.errors]
    picture = rec.film.at(12.5)               # uint8 RGB, the picture shown at 12.5 s of the film
    depth = rec.depth.at(12.5)                # float32 metres along each pixel's ray, 0 where there is none
    points = rec.depth.points_at(12.5)        # (n, 3) metres in the world
    turning = rec.gyroscope.sample([12.5, 12.51])
    left = rec.hands.at(12.5)["left"]         # (26, 3) metres in the world; data.joints names them

Seconds are those of the film, as in the annotations: picture k is shown at k / fps. Every stream has `capture_ns`,
ns of CLOCK_MONOTONIC of the computer that recorded, and `times`, its seconds; `rec.utc(seconds)` is UTC. Matrices are
column-vector: `world_from_camera @ (x, y, z, 1)`; camera axes are x right, y down, z forward, the world's y is up.

    python load.py            # what is in it
"""

from __future__ import annotations

import json
import lzma
import re
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

UNKNOWN = np.iinfo(np.int64).min
SYNC, LINKS = "hololens_sync", "metadata/download_links.json"
FILMS = ("gopro_720p", "gopro_360p")
GAP_S = 0.1
"""Samples further apart than this have nothing between them."""
MOST_TEXT, MOST_VALUES = 64 << 20, 5_000_000
"""Bytes of a text, and values in one of JSON."""
ALWAYS_TAKEN, MOST_RATIO = 256 << 20, 100
"""Bytes that the arrays of a file may unpack to, and how many times its size."""
ONE_FILE = {"protocol_whitelist": "file", "format_whitelist": "mov,matroska,webm,avi,mpegts,mpeg,wav"}
"""For PyAV: a list of other files is no film."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
BAD_FILE = (
    OSError,
    EOFError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    RuntimeError,
    MemoryError,
    SyntaxError,
)
BAD_ARRAYS = (*BAD_FILE, zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError)
FLIP = np.diag([1.0, -1.0, -1.0, 1.0])
"""The front camera's own axes are x right, y up, z back."""


class NotReleased(KeyError):
    """Something that a recording does not hold; the message says what, `absent` in kitchensync.jsonl says why."""

    def __str__(self) -> str:
        return str(self.args[0])


def read_json(path: Path) -> Any:
    """Read a file of JSON. Raises NotReleased where there is none, or one with more than any data set has."""
    try:
        return json.loads(read_bytes(path))
    except BAD_FILE as error:
        raise NotReleased(f"{path.name} cannot be read ({error})") from error


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a file with a JSON object in each line. Raises NotReleased as `read_json` does."""
    try:
        return [dict(json.loads(line)) for line in read_bytes(path).splitlines()]
    except BAD_FILE as error:
        raise NotReleased(f"{path.name} cannot be read ({error})") from error


def read_bytes(path: Path) -> bytes:
    """Read a file of JSON. Raises OSError; ValueError where it is no file or far too large."""
    if not path.is_file():
        raise ValueError("it is no file")
    with path.open("rb") as file:
        content = file.read(MOST_TEXT + 1)
    if len(content) > MOST_TEXT or sum(map(content.count, (b"[", b"{", b","))) > MOST_VALUES:
        raise ValueError("it is too large")
    return content


def are_links(found: Any) -> bool:
    """Return whether these are recording -> kind -> file, with names that are some."""
    return isinstance(found, dict) and all(
        isinstance(kinds, dict)
        and all(map(NAME.fullmatch, [name, *kinds]))
        and all(isinstance(path, str) and path.isprintable() for path in kinds.values())
        for name, kinds in found.items()
    )


def a_second(seconds: float) -> float:
    """Take a second of the film. Raises ValueError for NaN and the like."""
    if not np.isfinite(seconds):
        raise ValueError(f"a second of the film is wanted, not {seconds!r}")
    return float(seconds)


class TimedValues:
    """Values with a time each: `len`, `[i]`, `at(seconds)`, `index_at(seconds)`, `times`, `capture_ns`."""

    def __init__(self, recording: ReleasedRecording, capture_ns: Any) -> None:
        self.recording, self.capture_ns = recording, capture_ns

    def __len__(self) -> int:
        return len(self.capture_ns)

    def __getitem__(self, number: int) -> Any:
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} values, none has the number {number}")
        return self._value(int(number) % len(self))

    def __iter__(self) -> Iterator[Any]:
        return (self._value(number) for number in range(len(self)))

    @cached_property
    def times(self) -> Any:
        """Seconds of the film, (n,) float64; NaN where nobody knows."""
        return self.recording.seconds(self.capture_ns)

    def index_at(self, seconds: float) -> int:
        """Return the number of the value nearest to a time."""
        away = np.abs(self.times - a_second(seconds))
        if not np.isfinite(away).any():
            raise NotReleased(f"{self.recording.id}: nothing tells when these values were taken")
        return int(np.nanargmin(away))

    def at(self, seconds: float) -> Any:
        """Return the value nearest to a time."""
        return self[self.index_at(seconds)]

    def _value(self, number: int) -> Any:
        raise NotImplementedError


class FilmValues(TimedValues):
    """A film: uint8 RGB (h, w, 3). `bound_ns` says how far the time of each picture may be off.

    Picture k is shown from k / fps on, whether or not it is known when it was taken.
    """

    def __init__(self, recording: ReleasedRecording, path: Path, arrays: dict[str, Any]) -> None:
        super().__init__(recording, arrays["capture_ns"])
        self.path, self.bound_ns, self.hidden = path, arrays["bound_ns"], arrays["hidden"]
        self.fps = arrays["fps"][0] / arrays["fps"][1]
        self._film: Any = None
        self._decoded: Iterator[Any] = iter(())
        self._next = -1_000_000_000  # nothing is decoded yet

    def _value(self, number: int) -> Any:
        import av

        if self._film is None:
            self._film = av.open(str(self.path), options=ONE_FILE)
        stream = self._film.streams.video[0]
        if not 0 <= number - self._next < 2 * self.fps:
            pts = int(number / self.fps / stream.time_base) + (stream.start_time or 0)
            self._film.seek(max(pts - 1, 0), stream=stream, backward=True)
            self._decoded = self._film.decode(stream)
        for picture in self._decoded:
            shown_s = float((picture.pts - (stream.start_time or 0)) * picture.time_base)
            self._next = round(shown_s * self.fps) + 1
            if self._next == number + 1:
                return picture.to_ndarray(format="rgb24")
            if self._next > number:
                break
        self._next = -1_000_000_000
        raise NotReleased(f"{self.path.name}: picture {number} cannot be decoded")


class ShownFilm(FilmValues):
    """The film whose seconds the annotations count: asked for by these, not by when a picture was taken."""

    def index_at(self, seconds: float) -> int:
        """Return the number of the picture that is shown at a second of the film. Raises NotReleased outside."""
        number = int(np.floor(a_second(seconds) * self.fps + 1e-6))
        if not 0 <= number < len(self):
            raise NotReleased(f"{self.recording.id}: its film is from 0 to {len(self) / self.fps:.2f} s")
        return number

    @cached_property
    def times(self) -> Any:
        """Seconds at which each picture is shown, (n,) float64."""
        return np.arange(len(self)) / self.fps


class FramePoses:
    """The poses of a camera of the headset beside its frames."""

    def __init__(self, recording: ReleasedRecording, kind: str, sensor: str) -> None:
        self.arrays = recording.arrays(f"{SYNC}_{kind}_pose_npz")
        self.sensor, self.recording = sensor, recording

    @cached_property
    def world_from_camera(self) -> Any:
        """Poses, (n, 4, 4) float64 metres, NaN where the headset did not know its place; `row_of` finds a frame's."""
        poses = np.swapaxes(self.arrays["pose"].astype(np.float64), 1, 2)
        if self.sensor == "pv":
            return poses @ FLIP
        wire = np.asarray(self.recording.constants(self.sensor)["extrinsics"], np.float64).reshape(4, 4)
        return poses @ np.linalg.inv(wire.T)

    def row_of(self, frame: int) -> int:
        """Return the row of a frame."""
        found = np.flatnonzero(self.arrays["frame"] == frame)
        if not len(found):
            raise NotReleased(f"{self.recording.id}: frame {frame} of {self.sensor} has no pose")
        return int(found[0])


class FrontCameraValues(FilmValues):
    """The headset's front camera: picture k is frame k of all synchronized data."""

    @cached_property
    def poses(self) -> FramePoses:
        """The pose of each picture."""
        return FramePoses(self.recording, "pv", "pv")

    def world_from_camera(self, number: int) -> Any:
        """Return the pose (4, 4) of a picture."""
        return self.poses.world_from_camera[self.poses.row_of(number)]

    def intrinsics(self, number: int) -> dict[str, Any]:
        """Return OpenCV's `matrix` (3, 3) and `distortion` k1, k2, p1, p2, k3 of a picture; its focus moves."""
        row, arrays = self.poses.row_of(number), self.poses.arrays
        fx, fy = arrays["focal_px"][row]
        cx, cy = arrays["principal_px"][row]
        constants = self.recording.constants("pv")
        k1, k2, k3 = constants["radial_distortion"]
        p1, p2 = constants["tangential_distortion"]
        return {
            "matrix": np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]),
            "distortion": np.array([k1, k2, p1, p2, k3]),
        }


class DepthValues(TimedValues):
    """Depth pictures: float32 metres (h, w) along the ray of each pixel, 0 where there is none.

    Near depth measures phase: a surface farther than some 1.05 m comes out that much nearer; `brightness` tells.
    """

    def __init__(self, recording: ReleasedRecording, sensor: str) -> None:
        arrays = recording.arrays(f"{SYNC}_{sensor}_depth_npz")
        super().__init__(recording, arrays["sample_capture_ns"])
        self.sensor, self.frame = sensor, arrays["frame"]

    def _value(self, number: int) -> Any:
        found = self._image("depth", number)
        return found.astype(np.float32) / np.float32(1000)

    def brightness(self, number: int) -> Any:
        """Return how bright the sensor's own light came back, uint16 (h, w)."""
        return self._image("ab", number)

    def _image(self, kind: str, number: int) -> Any:
        name = f"{kind}-{self.frame[number]:06d}"
        return self.recording.chosen_arrays(f"{SYNC}_{self.sensor}_{kind}_npz", lambda one: one == name)[name]

    @cached_property
    def poses(self) -> FramePoses:
        """The poses beside its frames."""
        return FramePoses(self.recording, self.sensor, self.sensor)

    @cached_property
    def rays(self) -> Any:
        """The ray of each pixel in the camera, (h, w, 3) of length 1, NaN where there is none."""
        constants = self.recording.constants(self.sensor)
        plane = np.stack([constants["uv2x"], constants["uv2y"]], axis=-1).astype(np.float64)
        rays = np.concatenate([plane, np.ones((*plane.shape[:2], 1))], axis=-1)
        rays[(plane == 0).all(axis=-1)] = np.nan
        return rays / np.linalg.norm(rays, axis=-1, keepdims=True)

    def points(self, number: int) -> Any:
        """Return the points of a picture in the world, (n, 3) metres; none where it was not tracked."""
        depth, row = self[number], self.poses.row_of(int(self.frame[number]))
        points = (self.rays * depth[..., None])[depth > 0]
        pose = self.poses.world_from_camera[row]
        points = points @ pose[:3, :3].T + pose[:3, 3]
        return points[np.isfinite(points).all(1)]

    def points_at(self, seconds: float) -> Any:
        """Return `points` of the picture nearest to a time."""
        return self.points(self.index_at(seconds))


class MotionValues(TimedValues):
    """Samples of an inertial sensor: `values` (n, 3) float32 in `unit`, in the sensor's axes, NaN in a pause."""

    def __init__(self, recording: ReleasedRecording, kind: str) -> None:
        self.arrays = recording.arrays(kind)
        super().__init__(recording, self.arrays["sample_capture_ns"])
        self.values, self.unit = self.arrays["xyz"], str(self.arrays["unit"])

    def _value(self, number: int) -> Any:
        return self.values[number]

    def sample(self, seconds: Any) -> Any:
        """Interpolate at times (m,), (m, 3); NaN outside and over gaps of 0.1 s."""
        at = np.atleast_1d(np.asarray(seconds, np.float64))
        order = np.argsort(self.times, kind="stable")
        times, values = self.times[order], self.values[order].astype(np.float64)
        if len(times) < 2:
            return np.full((len(at), 3), np.nan)
        found = np.column_stack([np.interp(at, times, one, np.nan, np.nan) for one in values.T])
        after = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
        found[times[after] - times[after - 1] > GAP_S] = np.nan
        return found


class BodyValues(TimedValues):
    """Head, gaze and hands in the world, metres: a dictionary of arrays each, NaN where a part was not seen."""

    def __init__(self, recording: ReleasedRecording, parts: dict[str, str]) -> None:
        self.arrays = recording.arrays(f"{SYNC}_spatial_npz")
        super().__init__(recording, self.arrays["sample_capture_ns"])
        self.parts = parts

    def _value(self, number: int) -> dict[str, Any]:
        return {name: self.arrays[column][number] for name, column in self.parts.items()}


class ReleasedRecording:
    """One recording: `film`, `pv`, `depth`, `gyroscope`, `head`, `hands`, `gaze`, `steps`, read when asked for."""

    def __init__(self, data: ReleasedData, name: str) -> None:
        self.data, self.id, self.links = data, name, data.links[name]

    def __repr__(self) -> str:
        return f"<recording {self.id}: {len(self.steps)} steps, {len(self.links)} files; `links` names them>"

    def path(self, kind: str) -> Path:
        """Return the path of a file. Raises NotReleased."""
        if kind not in self.links:
            raise NotReleased(f"{self.id} has no {kind}; it has {', '.join(sorted(self.links))}")
        found = self.data.folder / self.links[kind]
        if (
            Path(self.links[kind]).is_absolute()
            or ".." in Path(self.links[kind]).parts
            or not found.is_file()
        ):
            raise NotReleased(f"{self.id}: {self.links[kind]} is not here; download.py fetches it")
        return found

    def has(self, kind: str) -> bool:
        """Return whether a file is here."""
        try:
            return self.path(kind).is_file()
        except NotReleased:
            return False

    def arrays(self, kind: str) -> dict[str, Any]:
        """Return the arrays of a file without its depth pictures. Raises NotReleased."""
        return self.chosen_arrays(kind, lambda name: not name.startswith(("depth-", "ab-")))

    def chosen_arrays(self, kind: str, is_chosen: Callable[[str], bool]) -> dict[str, Any]:
        """Return some arrays of a file by name. Raises NotReleased."""
        path = self.path(kind)
        try:
            with zipfile.ZipFile(path) as archive:
                sizes = [one.file_size for one in archive.infolist() if is_chosen(one.filename[:-4])]
            if sum(sizes) > max(ALWAYS_TAKEN, MOST_RATIO * path.stat().st_size):
                raise ValueError("far too large when unpacked")
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files if is_chosen(name)}
        except BAD_ARRAYS as error:
            raise NotReleased(f"{self.id}: {kind} cannot be read as plain arrays") from error

    def constants(self, sensor: str) -> dict[str, Any]:
        """Return the constants of a sensor of the headset, such as `pv`. Raises NotReleased."""
        return self.arrays(f"calibration_{sensor}_npz")

    @cached_property
    def calibration(self) -> dict[str, Any]:
        """What is said of clock and sensors: units, frames and meaning of the constants."""
        found: dict[str, Any] = read_json(self.path("calibration_json"))
        return found

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """Steps as annotated: description, start_time, end_time (-1 where not done), errors where there were any."""
        found = self.data.read("annotation_json/error_annotations.json")
        try:
            return list(next(one["step_annotations"] for one in found if one["recording_id"] == self.id))
        except (*BAD_FILE, StopIteration) as error:
            raise NotReleased(f"{self.id}: its steps are not told") from error

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Errors, a row each, in seconds of the film; README.md explains the fields. None is what is not known."""
        return [row for row in self.data.error_rows if row.get("recording") == self.id]

    @cached_property
    def film(self) -> ShownFilm:
        """The camera's film, the largest of the small ones that is here."""
        for kind in FILMS:
            if self.has(kind):
                return ShownFilm(self, self.path(kind), self.arrays(f"{kind}_frames_npz"))
        raise NotReleased(f"{self.id} has no small film here")

    @cached_property
    def _film_times(self) -> tuple[Any, Any]:
        """Capture ns and seconds of the film's pictures that have a time; without a film of the headset's frames.

        Seconds without a film count from the first frame.
        """
        kind = next((one for one in (f"{film}_frames_npz" for film in FILMS) if self.has(one)), "")
        if not kind:
            taken = self.frames["capture_ns"]
            return taken, (taken - taken[0]) / 1e9
        arrays = self.arrays(kind)
        known = arrays["capture_ns"] != UNKNOWN
        if not known.any():
            raise NotReleased(f"{self.id}: nothing tells when its film was taken")
        seconds = np.arange(len(known)) * (arrays["fps"][1] / arrays["fps"][0])
        return arrays["capture_ns"][known], seconds[known]

    def seconds(self, capture_ns: Any) -> Any:
        """Return seconds of the film (n,) of capture ns (n,); before and after the film they go on at its pace."""
        taken, shown = self._film_times
        at = np.asarray(capture_ns, np.int64)
        found = np.interp((at - taken[0]) / 1e9, (taken - taken[0]) / 1e9, shown)
        found = np.where(at < taken[0], shown[0] + (at - taken[0]) / 1e9, found)
        found = np.where(at > taken[-1], shown[-1] + (at - taken[-1]) / 1e9, found)
        return np.where(at == UNKNOWN, np.nan, found)

    def capture_ns(self, seconds: float) -> int:
        """Return capture ns of a second of the film; before and after it they go on at its pace."""
        taken, shown = self._film_times
        at = a_second(seconds)
        beyond = min(at - shown[0], 0.0) + max(at - shown[-1], 0.0)
        found = float(np.interp(at, shown, (taken - taken[0]) / 1e9)) + float(beyond)
        return int(taken[0]) + round(1e9 * found)

    def utc(self, seconds: float) -> np.datetime64:
        """Return UTC of a second of the film, as the computer that recorded had it. Raises NotReleased."""
        clock, at = self.calibration["clock"], self.capture_ns(seconds)
        offset = clock["utc_minus_capture_ns"]
        if offset is None:
            raise NotReleased(f"{self.id}: nobody noted its UTC")
        if anchors := clock.get(
            "capture_ns_and_utc_ns"
        ):  # its clock may have been set: the nearest one tells
            capture_ns, utc_ns = min(anchors, key=lambda anchor: abs(anchor[0] - at))
            offset = utc_ns - capture_ns
        return np.datetime64(at + offset, "ns")

    @cached_property
    def frames(self) -> dict[str, Any]:
        """The table of frames: capture_ns, bound_ns, hidden, and the picture of the film beside each, -1 for none."""
        return self.arrays(f"{SYNC}_frames_npz")

    @cached_property
    def pv(self) -> FrontCameraValues:
        """The headset's front camera."""
        return FrontCameraValues(self, self.path(f"{SYNC}_pv_video"), self.frames)

    @cached_property
    def depth(self) -> DepthValues:
        """The headset's depth camera."""
        sensor = next(
            (k[len(SYNC) + 1 : -10] for k in sorted(self.links) if k.endswith("_depth_npz")), "depth"
        )
        return DepthValues(self, sensor)

    @cached_property
    def gyroscope(self) -> MotionValues:
        """The headset's gyroscope."""
        return MotionValues(self, f"{SYNC}_imu_gyroscope_npz")

    @cached_property
    def accelerometer(self) -> MotionValues:
        """The headset's accelerometer."""
        return MotionValues(self, f"{SYNC}_imu_accelerometer_npz")

    @cached_property
    def magnetometer(self) -> MotionValues:
        """The headset's magnetometer."""
        return MotionValues(self, f"{SYNC}_imu_magnetometer_npz")

    @cached_property
    def camera_gyroscope(self) -> MotionValues:
        """The gyroscope of the camera that filmed, x left, y out of the screen, z up."""
        return MotionValues(self, "gopro_gyroscope_npz")

    @cached_property
    def head(self) -> BodyValues:
        """Place and direction of the head: `position`, `forward`, `up`, (3,) each."""
        return BodyValues(self, {"position": "head_position", "forward": "head_forward", "up": "head_up"})

    @cached_property
    def gaze(self) -> BodyValues:
        """Where the person looked: `origin`, `direction`, (3,) each."""
        return BodyValues(self, {"origin": "eye_origin", "direction": "eye_direction"})

    @cached_property
    def hands(self) -> BodyValues:
        """Joints of both hands: `left`, `right`, (26, 3) each; `data.joints` names them."""
        return BodyValues(self, {"left": "left_hand_position", "right": "right_hand_position"})

    def at(self, seconds: float) -> dict[str, Any]:
        """Return what each stream that is here has nearest to a second of the film."""
        found, at_s = {}, a_second(seconds)
        for name in ("film", "pv", "depth", "gyroscope", "accelerometer", "head", "gaze", "hands"):
            try:
                found[name] = getattr(self, name).at(at_s)
            except NotReleased:
                continue
        return found


class ReleasedData:
    """All recordings: `data["1_26"]`, `for rec in data`, `data.split("recordings", "train")`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / LINKS).is_file():
            raise NotReleased(f"{folder} holds no data set: {LINKS} is not there")
        self.links: dict[str, dict[str, str]] = self.read(LINKS)
        if not are_links(self.links):
            raise NotReleased(f"{LINKS} is not recording -> kind -> file")

    def read(self, name: str) -> Any:
        """Return what a JSON file of the data set holds. Raises NotReleased."""
        return read_json(self.folder / name)

    @cached_property
    def error_rows(self) -> list[dict[str, Any]]:
        """The errors of all recordings."""
        return read_rows(self.folder / "errors.jsonl")

    @property
    def recordings(self) -> list[str]:
        """The ids of all recordings."""
        return sorted(self.links, key=lambda name: [(len(part), part) for part in name.split("_")])

    @property
    def joints(self) -> list[str]:
        """The names of the 26 joints of a hand."""
        found: list[str] = self.read("metadata/columns.json")["joints"]
        return found

    def split(self, kind: str, part: str, *, which: str = "combined") -> list[ReleasedRecording]:
        """Return the recordings of a part (train, val, test) by recordings, person, recipes or environment."""
        names = self.read(f"data_splits/{kind}_data_split_{which}.json")[part]
        return [self[name] for name in names]

    def __len__(self) -> int:
        return len(self.links)

    def __getitem__(self, name: str) -> ReleasedRecording:
        if name not in self.links:
            raise NotReleased(f"no recording {name!r}; there are {', '.join(self.recordings)}")
        return ReleasedRecording(self, name)

    def __iter__(self) -> Iterator[ReleasedRecording]:
        return (self[name] for name in self.recordings)


def open_data_set(folder: str | Path | None = None) -> ReleasedData:
    """Open a data set, by itself the one that this file is in."""
    return ReleasedData(Path(folder) if folder is not None else Path(__file__).resolve().parent)


if __name__ == "__main__":
    try:
        for one in open_data_set(sys.argv[1] if len(sys.argv) > 1 else None):
            print(one)
    except NotReleased as problem:
        sys.exit(f"load.py: {problem}")
