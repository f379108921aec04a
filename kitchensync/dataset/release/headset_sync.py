"""Write the synchronized data of one recording: the headset's streams on the frames of its index.

File names are the published names: `captain_cook_4d/hololens/sync/<kind>/<recording>_<stream>`, arrays as `.npz`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from kitchensync.dataset.release.headset_frames import (
    Fill,
    HeadsetFrames,
    NothingThere,
    beside_of,
    frames_of,
    poses,
    records,
    samples,
    save_arrays,
)
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.headset_stream import DEPTH, RECORDS, SAMPLES, HeadsetStream
from kitchensync.shell.array_types import Int64
from kitchensync.storage.exports.arrays_file import ArraysFile, made_of
from kitchensync.storage.exports.film import made_of_film
from kitchensync.storage.exports.headset_film import write_headset_film
from kitchensync.storage.options.outputs import check_output, written
from kitchensync.storage.reading.alignments import alignment_files
from kitchensync.storage.reading.headset_pictures import DepthFrame, unbroken_depth
from kitchensync.storage.reading.instants import INDEX
from kitchensync.storage.recording import StoredStream

FOLDER = "captain_cook_4d/hololens/sync"
PREFIX = "hololens_sync"
IMAGES = {"depth": "depth_mm", "ab": "brightness"}
"""Folder of each kind of depth image -> attribute of the decoded image."""
Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class SyncFile:
    """The link key of a kind of data, and its path in the data set."""

    kind: str
    path: str


@dataclass
class Synced:
    """The written files: path by kind, absent kinds with the reason, and number of frames without data by kind."""

    links: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    holes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SyncWriter:
    """Writes the synchronized data of one recording into a data set; `published_id` names its files."""

    frames: HeadsetFrames
    published_id: str
    out: Path
    force: bool
    tell: Tell

    def write(self) -> Synced:
        """Write all streams; up-to-date files are skipped. Raises OutputRefused."""
        result = Synced()
        self._frame_table(result)
        for short, sensor in STREAMS.items():
            stream = self.frames.stream(short)
            if stream is None:
                if sensor.is_default:
                    absent = (f"{PREFIX}_{kind}" for kind in _kinds(short, sensor))
                    result.absent |= dict.fromkeys(absent, "nothing was recorded of it")
            elif sensor.is_front_camera:
                self._pictures(short, stream, result)
                self._arrays(self._place(f"{short}_pose", f"{short}_pose"), short, stream, poses, result)
            elif sensor.kind == DEPTH:
                self._depth(short, stream, result)
                self._arrays(self._place("depth_pose", f"{short}_pose"), short, stream, poses, result)
            elif sensor.kind == SAMPLES:
                self._arrays(self._place(f"imu_{short}", f"imu_{short}"), short, stream, samples, result)
            elif sensor.is_head_pose:
                self._arrays(self._place("spatial_pose", "spatial"), short, stream, records, result)
            elif sensor.kind == RECORDS:
                self._arrays(self._place(short, short), short, stream, records, result)
            else:
                result.absent[f"{PREFIX}_{short}"] = "the published form has no place for it"
        return result

    def _place(self, folder: str, stem: str, ending: str = "npz") -> SyncFile:
        path = f"{FOLDER}/{folder}/{self.published_id}_{stem}.{ending}"
        return SyncFile(f"{PREFIX}_{stem}_{'video' if ending == 'mp4' else ending}", path)

    @property
    def _made_of(self) -> str:
        """Digest of the recording, its pauses and its synchronization."""
        recording = self.frames.recording
        digest = hashlib.sha256(f"{recording.stored.manifest['uuid']} {self.frames.pauses}".encode())
        for path in (recording.path / INDEX, *alignment_files(recording.path)):
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def _is_there(self, place: SyncFile, digest: str) -> bool:
        """Return whether a file is up to date. Raises OutputRefused if it must be replaced and `force` is not set."""
        if digest == self._made_of:
            return True
        check_output(self.out / place.path, force=self.force)
        return False

    def _arrays(self, place: SyncFile, short: str, stream: StoredStream, fill: Fill, result: Synced) -> None:
        try:
            if not self._is_there(place, made_of(self.out / place.path)):
                arrays = fill(self.frames, short, stream)
                save_arrays(self.out / place.path, self._made_of, arrays, force=self.force)
        except NothingThere as error:
            result.absent[place.kind] = str(error)
        else:
            self._written(place, result)

    def _written(self, place: SyncFile, result: Synced) -> None:
        result.links[place.kind] = place.path
        with np.load(self.out / place.path, allow_pickle=False) as arrays:
            if holes := len(self.frames) - len(arrays["frame"]):
                result.holes[place.kind] = holes

    def _frame_table(self, result: Synced) -> None:
        """Write the table of frames: capture time, and matched frame of the camera's video."""
        place = self._place("metadata", "frames")
        if not self._is_there(place, made_of(self.out / place.path)):
            arrays = frames_of(self.frames, np.arange(len(self.frames)))
            arrays["hidden"] = self.frames.hidden
            arrays["fps"] = np.array([self._fps.numerator, self._fps.denominator])
            if self.frames.film is not None:
                number, taken_ns, bound_ns = self.frames.film_numbers
                arrays |= {"film_frame": number, "film_capture_ns": taken_ns, "film_bound_ns": bound_ns}
            save_arrays(self.out / place.path, self._made_of, arrays, force=self.force)
        result.links[place.kind] = place.path
        if untaken := self.frames.untaken():
            result.holes[place.kind] = untaken

    @property
    def _fps(self) -> Fraction:
        """Frame rate: as configured for the master stream, else as measured."""
        stream = self.frames.stream(self.frames.instants.master)
        if stream is not None and "hz" in stream.format:
            return Fraction(int(stream.format["hz"]), int(stream.format.get("divisor", 1)))
        if self.frames.film is not None and self.frames.is_of_film:
            return self.frames.film.frames.fps
        steps = np.diff(self.frames.capture_ns)
        return Fraction(round(10**9 / float(np.median(steps)))) if len(steps) else Fraction(30)

    def _pictures(self, short: str, stream: StoredStream, result: Synced) -> None:
        """Write the front camera's video; its frame k is frame k of the synchronized data."""
        height = stream.format.get("height", 360)
        place = SyncFile(f"{PREFIX}_{short}_video", f"{FOLDER}/{short}/{self.published_id}_{height}p.mp4")
        try:
            if not {"codec", "width", "height"} <= stream.format.keys():
                raise NothingThere("the manifest does not say how its pictures are coded")
            beside = beside_of(self.frames, short, stream)
        except NothingThere as error:
            result.absent[place.kind] = str(error)
            return
        rows = np.full(len(self.frames), -1)
        rows[beside.frame] = beside.row
        if not self._is_there(place, made_of_film(self.out / place.path)):
            with written(self.out / place.path, force=self.force, ending=".mp4") as part:
                write_headset_film(stream, rows, self._fps, part, made_of=self._made_of, tell=self.tell)
        result.links[place.kind] = place.path
        if holes := len(rows) - len(beside.frame):
            result.holes[place.kind] = holes

    def _depth(self, short: str, stream: StoredStream, result: Synced) -> None:
        """Write depth and brightness in one pass: an array per frame, `depth-000123` and `ab-000123`."""
        places = {name: self._place(name, f"{short}_{name}") for name in IMAGES}
        try:
            beside = beside_of(self.frames, short, stream)
            first = next(_rising(stream, beside.row), None)
            if first is None:
                raise NothingThere("none of its pictures decodes")
        except NothingThere as error:
            result.absent |= dict.fromkeys((place.kind for place in places.values()), str(error))
            return
        if first[1].brightness is None:
            result.absent[places.pop("ab").kind] = "it was sent without brightness"
        with ExitStack() as stack:
            files = {}
            for name, place in places.items():
                if not self._is_there(place, made_of(self.out / place.path)):
                    part = stack.enter_context(written(self.out / place.path, force=self.force))
                    files[name] = stack.enter_context(ArraysFile(part, self._made_of))
            decoded = []
            for at, image in _rising(stream, beside.row) if files else ():
                for name, file in files.items():
                    file.add(f"{name}-{beside.frame[at]:06d}", getattr(image, IMAGES[name]))
                decoded.append(at)
                if at % 100 == 0:
                    self.tell(at, len(beside.frame))
            for file in files.values():
                for name, values in frames_of(self.frames, beside.frame[decoded]).items():
                    file.add(name, values)
                file.add("sample_capture_ns", beside.taken_ns[decoded])
        for place in places.values():
            self._written(place, result)


def _rising(stream: StoredStream, rows: Int64) -> Iterator[tuple[int, DepthFrame]]:
    """Yield (place in `rows`, depth image) of rows that decode; `rows` are in rising order."""
    images = unbroken_depth(stream, int(rows[0]), int(rows[-1]) + 1)
    image = next(images, None)
    for place, row in enumerate(rows.tolist()):
        while image is not None and image.row < row:
            image = next(images, None)
        if image is not None and image.row == row:
            yield place, image


def _kinds(short: str, sensor: HeadsetStream) -> list[str]:
    if sensor.is_front_camera:
        return [f"{short}_video", f"{short}_pose_npz"]
    if sensor.kind == DEPTH:
        return [f"{short}_{name}_npz" for name in ("depth", "ab", "pose")]
    if sensor.kind == SAMPLES:
        return [f"imu_{short}_npz"]
    return ["spatial_npz" if sensor.is_head_pose else short]
