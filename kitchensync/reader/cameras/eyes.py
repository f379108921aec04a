"""Cameras of a recording in the world: each frame with its lens and pose."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.reader.cameras.recorded import alignments, front_lens, rig_from, started_at
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.files.picture_reader import PictureReader
from kitchensync.sensors.hololens.catalogue import FRONT_CAMERA, is_front_camera
from kitchensync.sensors.shown_picture import quarter_turns
from kitchensync.shell.array_types import Mask, UInt8
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.geometry.camera_models import Fisheye, Pinhole
from kitchensync.storage.geometry.errors import NotAligned, Refused
from kitchensync.storage.geometry.reference_frames import (
    OPENCV_FROM_PV_AXES,
    Transform,
    inverse,
    opencv_camera_from_world,
)
from kitchensync.storage.reading.alignments import FilmClock
from kitchensync.storage.reading.calibration_results import lens_from_words, lens_result, mount_result
from kitchensync.storage.timeline.pose_track import PoseTrack

Ticks = npt.NDArray[np.int64]

PV = FRONT_CAMERA

LONGEST_GAP_TICKS = 2_500_000
"""Longest gap over which poses are interpolated, 0.25 s: far depth, which may carry the poses, comes every 0.2 s."""
TRACKING_LOST, NO_POSE = "tracking lost", "no pose"
"""Reasons why a frame has no pose: the headset lost tracking, or no pose was recorded."""


@dataclass(frozen=True)
class View:
    """Lens and pose of a camera at one instant."""

    camera: Pinhole | Fisheye
    camera_from_world: Transform
    "(4, 4) column-vector, metres, OpenCV's camera axes."
    world: int
    "Number of the world frame."

    def scaled(self, width: int) -> View:
        """Return the same view for a frame of another width."""
        if width == self.camera.width:
            return self
        return View(self.camera.scaled(width), self.camera_from_world, self.world)


@dataclass(frozen=True)
class Shot:
    """One frame of a camera."""

    row: int
    ticks: int
    rgb: UInt8
    view: View | None
    "None if the camera's pose is unknown."
    unplaced: str = ""
    "Why it is unknown: `TRACKING_LOST` or `NO_POSE`."


class FrontCamera:
    """The headset's front camera; every packet has its focal length and pose."""

    turns = 0

    def __init__(self, recording: RecordingSource, name: str) -> None:
        self.name, self.headset = PV, name.partition("/")[0]
        self._recording, self._stream = recording.stored, recording.stored[name]
        self.ticks: Ticks
        "(n,) device ticks of the middle of each frame."
        self.ticks = self._stream.index["device_ticks"].astype(np.int64)
        self._worlds = recording.worlds_of(name)
        first = next(self._stream.frames(), None)
        if first is None:
            raise Refused(f"{name} has no frame that can be decoded")
        lens = front_lens(self._recording, name, first)
        self.size = (lens.width, lens.height)

    def __enter__(self) -> FrontCamera:
        """Return the camera; nothing has to be opened."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there is nothing to close."""

    @property
    def rests_on(self) -> str:
        """Digest of the inputs outside of the recording: the name alone, as there are none."""
        return self.name

    def shots(self, rows: Sequence[int], width: int | None = None) -> Iterator[Shot]:
        """Yield some frames in rising order; decoding begins at the key frame before the first."""
        selected = set(rows)
        if not selected:
            return
        for frame in self._stream.frames(min(selected), max(selected) + 1):
            if frame.row not in selected:
                continue
            rgb = frame.rgb() if width is None else _resized(frame.rgb(), width)
            if frame.pose is None:
                unplaced = NO_POSE if self._stream.pose(frame.row) is None else TRACKING_LOST
                yield Shot(frame.row, frame.device_ticks, rgb, None, unplaced)
                continue
            lens = front_lens(self._recording, self._stream.name, frame)
            view = View(lens, opencv_camera_from_world(frame.pose), int(self._worlds[frame.row]))
            yield Shot(frame.row, frame.device_ticks, rgb, view.scaled(width or lens.width))


class GoPro:
    """A GoPro file with calibrated lens and mount and an aligned clock, mounted on the headset.

    Its rolling shutter is ignored: rows are read out over some hundredths of a second, but a frame has one time.
    """

    def __init__(self, recording: RecordingSource, alignment: FilmClock, data: Path | None = None) -> None:
        """`data` holds the calibrations; by default the folder of the recording.

        Raises Refused if lens or mount is unknown.
        """
        stored, data = recording.stored, data or recording.path.absolute().parent
        self._media = open_media(alignment.file)
        self.name, self.headset = alignment.file.name, alignment.headset
        serial, mode = self._media.serial or "unknown", self._media.mode.lens_name
        when = started_at(stored)
        self._lens = lens_from_words(lens_result(data, serial, mode, when)[1])[0]
        self._camera_from_pv: Transform = np.array(
            mount_result(data, serial, mode, when)[1]["camera_from_pv"]
        )
        self.size = (self._lens.width, self._lens.height)
        video = self._media.video
        self.turns = quarter_turns(-video.clockwise_deg) if video is not None else 0
        "Quarter turns that players apply to a frame; lens and mount are those of the stored frame."
        self.ticks = alignment.taken_at(self._media.frame_times_s)
        self._hidden = hidden_in_film(stored, alignment.file, self._media.frame_times_s)
        self._track = front_track(recording, alignment.headset)
        self._stack = ExitStack()
        self._reader: PictureReader | None = None

    def __enter__(self) -> GoPro:
        """Open the file."""
        self._reader = self._stack.enter_context(PictureReader(self._media))
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the file."""
        self._stack.__exit__(None, None, None)

    @property
    def rests_on(self) -> str:
        """Digest of the inputs outside of the recording: lens, mount and clock."""
        parts = (self._lens.parameters, self._camera_from_pv, self.ticks)
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
        return f"{self.name} {digest.hexdigest()}"

    def shots(self, rows: Sequence[int], width: int | None = None) -> Iterator[Shot]:
        """Yield some frames in rising order; those a few frames ahead are reached by decoding on."""
        assert self._reader is not None, "use the camera in a `with` block"
        lens = self._lens if width is None else self._lens.scaled(width)
        rows = [row for row in rows if not self._hidden[row]]
        for row, (view, unplaced) in zip(rows, self.views(rows, lens), strict=True):
            rgb = self._reader.number(row, width=width).rgb
            if rgb.shape[:2] != (lens.height, lens.width):
                rgb = _resized(rgb, lens.width, lens.height)
            yield Shot(row, int(self.ticks[row]), rgb, view, unplaced)

    def views(
        self, rows: Sequence[int], lens: Pinhole | Fisheye | None = None
    ) -> Iterator[tuple[View | None, str]]:
        """Yield the camera's view of some stored frames, or None and the reason why its pose is unknown."""
        poses = self._track.at(self.ticks[rows], longest_gap=LONGEST_GAP_TICKS)
        lost = lost_at(self._track, self.ticks[rows])
        for pose, world, is_lost in zip(poses.world_from_local, poses.world, lost, strict=True):
            if world >= 0 and not is_lost:
                yield View(lens or self._lens, self._camera_from_pv @ inverse(pose), int(world)), ""
            else:
                yield None, TRACKING_LOST if is_lost else NO_POSE


Eye = FrontCamera | GoPro


def front_track(recording: RecordingSource, headset: str) -> PoseTrack:
    """Return the poses of the headset's front camera (OpenCV's axes), from its own stream or from the rig's poses.

    Raises Refused if no stream of the headset has poses.
    """
    stored = recording.stored
    names = [name for name in stored.streams if name.partition("/")[0] == headset]
    for name in sorted(names, key=lambda name: not is_front_camera(name)):
        sensor, poses = stored.sensor(name), stored[name].poses()
        if poses is None or sensor is None or sensor.rays_from_own_pose:
            continue
        ticks = stored[name].index["device_ticks"].astype(np.int64)
        track = PoseTrack.of_wire(ticks, poses, recording.worlds_of(name))
        if sensor.is_front_camera:
            return track.moved(inverse(OPENCV_FROM_PV_AXES))
        return track.moved(rig_from(stored, f"{headset}/{PV}"))
    raise Refused(f"no stream of {headset} has poses: record with mode 1 (with poses)")


def lost_at(track: PoseTrack, ticks: Ticks) -> Mask:
    """Return a mask of the instants (m,) next to a pose that was not tracked."""
    order = np.argsort(track.ticks, kind="stable")
    pose_ticks, untracked = track.ticks[order], ~np.isfinite(track.position_m[order, 0])
    if not len(pose_ticks):
        return np.zeros(len(ticks), np.bool_)
    after = np.searchsorted(pose_ticks, ticks).clip(max=len(pose_ticks) - 1)
    before = np.where(pose_ticks[after] > ticks, after - 1, after).clip(min=0)
    lost: Mask = untracked[before] | untracked[after]
    return lost


def eye_of(recording: RecordingSource, camera: str, data: Path | None = None) -> Eye:
    """Return a camera by name: `pv`, `gopro` for the only video, or the file name of a video.

    `data` holds the calibrations; by default the folder of the recording. Raises Refused, NotAligned.
    """
    if camera == PV:
        sensors = {name: recording.stored.sensor(name) for name in recording.stored.streams}
        names = [name for name, sensor in sensors.items() if sensor and sensor.is_front_camera]
        if not names:
            raise Refused(f"{recording.id} has no front camera")
        return FrontCamera(recording, names[0])
    films = alignments(recording.stored)
    chosen = [film for film in films if camera in ("gopro", film.file.name)]
    if len(chosen) != 1:
        names = [film.file.name for film in films]
        raise Refused(
            f"camera must be one of {', '.join([PV, *names])}: {camera!r} does not name one camera of {recording.id}"
        )
    return GoPro(recording, chosen[0], data)


def usable_eyes(recording: RecordingSource, data: Path | None = None) -> tuple[list[Eye], dict[str, str]]:
    """Return all cameras that can be used, and the reasons why others cannot, by name."""
    eyes: list[Eye] = []
    reasons: dict[str, str] = {}
    names = [PV]
    try:
        names += [film.file.name for film in alignments(recording.stored)]
    except NotAligned as error:
        reasons["gopro"] = str(error)
    for name in names:
        try:
            eyes.append(eye_of(recording, name, data))
        except (Refused, SensorError) as error:
            reasons[name] = " ".join(str(error).split())
    return eyes, reasons


def _resized(rgb: UInt8, width: int, height: int | None = None) -> UInt8:
    if rgb.shape[1] == width and height is None:
        return rgb
    rows = height or max(2, 2 * round(rgb.shape[0] * width / rgb.shape[1] / 2))
    return np.asarray(cv2.resize(rgb, (width, rows), interpolation=cv2.INTER_AREA), np.uint8)
