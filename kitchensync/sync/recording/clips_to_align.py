"""What `sync` reads of the cameras in a recording: clips with their chapters, gyroscopes, and when shutters opened.

The chapters of one clip are one video: one track of rotation rates, aligned once, on one clip time that is 0 at the
first picture.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.card_names import card_name
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clue import Clue
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.sensors.gopro.files.telemetry import ImuTrack
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.storage.reading.shutter_openings import clip_openings, read_media
from kitchensync.storage.recording import Recording
from kitchensync.storage.timeline.utc_times import utc_times
from kitchensync.sync.align.prior import (
    StatedCameraClock,
    StatedStart,
    start_from_camera_clock,
    start_from_shutter,
)
from kitchensync.sync.errors import one_line
from kitchensync.sync.fit.resample import GyroTrack, make_track
from kitchensync.sync.recording.clip_rates import clip_rates

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import ShutterForm

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class CameraFile:
    """One file of one camera: an alignment source of its own, whatever take it belongs to."""

    device: str
    path: Path
    relative: str
    frame_times_s: Floats
    start_s: float
    "Clip time of its first picture."
    last_gyro_s: float
    "Its own media time of its last rotation rate, or of its last picture."
    is_loose: bool
    "A chapter before it is missing and no stamp tells how long that was."
    problem: str
    telemetry_late_s: float = 0.0
    "By how much its own telemetry, read alone, lies later than on its pictures."

    @property
    def has_frames(self) -> bool:
        """Return whether there is anything to place."""
        return len(self.frame_times_s) > 0

    @property
    def source(self) -> str:
        """Name of the alignment source."""
        return f"{self.device}/{self.path.name}"


@dataclass(frozen=True, slots=True)
class CameraClip:
    """The chapters that one press of the shutter made, in order."""

    device: str
    files: tuple[CameraFile, ...]
    camera: str = ""
    "What made it: the device, or the serial number of an adopted film."
    gyro: GyroTrack | None = None
    "On clip time."
    gyro_report: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    starts: tuple[StatedStart, ...] = ()
    "What is said of the host time of clip time 0."
    clues: tuple[Clue, ...] = ()
    "What its files say of where the rates lie on its pictures."
    doubts: tuple[str, ...] = ()
    "Clues that contradict each other and that the pictures do not settle."
    noted: tuple[str, ...] = ()
    "What the certificate names beside its status."
    is_wrong_pace: bool = False
    "Whether it is not in real time, as `problem` says."

    @property
    def warnings(self) -> list[str]:
        """What is wrong with its clock, and which of its chapters are not here."""
        known = [name for name in (card_name(file.path.name) for file in self.files) if name is not None]
        here = {name.chapter for name in known}
        lost = [str(chapter) for chapter in range(1, max(here, default=0)) if chapter not in here]
        said = [*(start.warning for start in self.starts if start.warning), *self.noted]
        if lost:
            said.append(f"chapter {', '.join(lost)} of recording {known[0].number} is not here")
        return said

    @property
    def readable(self) -> tuple[CameraFile, ...]:
        """The chapters that have pictures."""
        return tuple(file for file in self.files if file.has_frames)


def camera_clips(recording: Recording) -> list[CameraClip]:
    """Read the metadata and the gyroscope of every camera file; no picture is decoded."""
    clips = []
    for device, paths in recording.gopro_files.items():
        for opening in clip_openings(read_media(recording.path, device), paths):
            clips += read_clip(recording, device, list(opening.files), _timed_opening(opening.opened))
    return clips


def read_clip(
    recording: Recording, device: str, paths: list[Path], shutter: ShutterForm | None
) -> list[CameraClip]:
    """Read one clip; files that only look like chapters of one are a clip each."""
    opened: dict[Path, GoProMedia] = {}
    problems: dict[Path, str] = {}
    for path in paths:
        try:
            media = open_media(path)
            if len(media.frame_times_s):
                opened[path] = media
            else:
                problems[path] = f"{path.name}: no pictures"
        except SensorError as error:
            pass_on_trouble(error)
            problems[path] = one_line(error, path)
    try:
        clip = Clip(list(opened.values())) if opened else None
    except SensorError as error:  # of several recordings, or one's header is damaged
        pass_on_trouble(error)
        each = [read_clip(recording, device, [path], shutter if path == paths[0] else None) for path in paths]
        return [one for clips in each for one in clips]
    if clip is None:
        files = tuple(_unreadable(recording, device, path, problems[path]) for path in paths)
        return [CameraClip(device, files, device, problem=files[0].problem)]
    return [_timed(recording, device, paths, clip, problems, shutter)]


def _timed(
    recording: Recording,
    device: str,
    paths: list[Path],
    clip: Clip,
    problems: dict[Path, str],
    shutter: ShutterForm | None,
) -> CameraClip:
    rates = clip_rates(clip)
    late_s = rates.late_s or (0.0,) * len(clip.chapters)
    readable = {
        media.path: CameraFile(
            device,
            media.path,
            _relative(recording, media.path),
            media.frame_times_s,
            start_s,
            _last_before(rates.track, end_s, start_s, media.frame_times_s),
            is_loose,
            rates.problem,
            late,
        )
        for media, start_s, end_s, is_loose, late in zip(
            clip.chapters, rates.starts_s, [*rates.starts_s[1:], np.inf], rates.loose, late_s, strict=True
        )
    }
    files = tuple(
        readable[path] if path in readable else _unreadable(recording, device, path, problems[path])
        for path in paths
    )
    starts = _starts(recording, clip, shutter)
    camera = _camera(recording, device, clip.chapters[0])
    if rates.track is None:
        return CameraClip(
            device, files, camera, problem=rates.problem, starts=starts, noted=rates.noted,
            is_wrong_pace=rates.is_wrong_pace,
        )  # fmt: skip
    gyro = make_track(f"{device}/{clip.path.name}", rates.track.t_s, rates.track.xyz)
    return CameraClip(
        device, files, camera, gyro, rates.report, "", starts, rates.clues, rates.doubts, rates.noted
    )


def _last_before(track: ImuTrack | None, end_s: float, start_s: float, frames_s: Floats) -> float:
    """Media time of a chapter's last rotation rate; of its last picture when it has none."""
    inside = track.t_s[(track.t_s < end_s) & (track.t_s >= start_s)] if track is not None else np.empty(0)
    return float(inside[-1]) - start_s if len(inside) else float(frames_s[-1])


def _unreadable(recording: Recording, device: str, path: Path, problem: str) -> CameraFile:
    return CameraFile(device, path, _relative(recording, path), np.empty(0), 0.0, 0.0, False, problem)


def _relative(recording: Recording, path: Path) -> str:
    return path.relative_to(recording.readable).as_posix()


def _starts(recording: Recording, clip: Clip, shutter: ShutterForm | None) -> tuple[StatedStart, ...]:
    """Collect what shutter and camera clock say of the first picture; of an adopted film nobody knows."""
    manifest, first = recording.manifest, clip.chapters[0]
    if "adopted" in manifest:
        return ()
    try:
        lost_s = _lost_before_s(first)
        clock = _camera_clock(first)
    except SensorError as error:
        pass_on_trouble(error)
        return ()  # what is wrong with the file is said of its rates
    pressed = start_from_shutter(shutter, earlier_s=lost_s) if lost_s is not None else None
    own = start_from_camera_clock(
        clock,
        utc_times(manifest),
        zone_offset_s=int((manifest.get("zone") or {}).get("utc_offset_s") or 0),
        pressed_host_ns=pressed.host_ns if pressed else None,
        stopped_host_ns=(manifest.get("stopped") or {}).get("host_ns"),
        seconds=float(clip.duration_s),
    )
    known = card_name(first.path.name)
    if own is not None and lost_s and (known is None or known.chapter == 1):
        own = _of_trimmed(own, lost_s)
    return tuple(start for start in (pressed, own) if start is not None)


def _of_trimmed(own: StatedStart, trimmed_s: float) -> StatedStart:
    """Let the camera's clock say less of a trimmed film: some tools write its start anew, others keep the old one."""
    half_s = trimmed_s / 2
    sigma_s = float(np.hypot(own.sigma_s, half_s))
    return replace(own, host_ns=own.host_ns + round(half_s * 1e9), sigma_s=sigma_s)


def _camera(recording: Recording, device: str, first: GoProMedia) -> str:
    """Name what made a clip: films of several cameras are adopted as files of one device."""
    if recording.manifest["devices"][device].get("kind") == "gopro":
        return device
    return f"{device}/{first.serial or first.path.name}"


def _camera_clock(first: GoProMedia) -> StatedCameraClock:
    label = first.tmcd_displayed
    label_s = None
    if label is not None:
        hours, minutes, seconds = (int(part) for part in label[:8].split(":"))
        label_s = 3600.0 * hours + 60.0 * minutes + seconds + int(label[9:]) * float(first.frame_period)
    return StatedCameraClock(first.creation_time, first.tmcd_wall_seconds_since_midnight, label_s)


def _lost_before_s(first: GoProMedia) -> float | None:
    """Seconds of the clip before the first picture that is here; None when nothing tells."""
    known, before = card_name(first.path.name), first.frames_before
    if before is None:
        return 0.0 if known is None or known.chapter == 1 else None
    return float(before * first.frame_period) - first.payloads[0].start_s


def _timed_opening(opened: ShutterForm | None) -> ShutterForm | None:
    """An opening that was seen to be obeyed; another one says too little."""
    return opened if opened and opened.get("observed_host_ns") is not None else None
