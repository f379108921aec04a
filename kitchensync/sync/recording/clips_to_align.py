"""Read the cameras of a recording for `sync`: clips with chapters, gyroscopes and shutter times.

The chapters of one clip are one video with one track of rotation rates. It is aligned as a whole, on a clip time that
is 0 at the first picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import av
import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.card_names import card_name
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clue import Clue
from kitchensync.sensors.gopro.files.media import GoProMedia, open_container, open_media
from kitchensync.sensors.gopro.files.pace import pace_warning
from kitchensync.storage.copies.read_through import promised_hashes
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.storage.reading.clip_starts import clip_starts, read_media
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
from kitchensync.sync.recording.clip_rates import ClipRates, clip_rates

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import ShutterForm

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class CameraFile:
    """One file of one camera, which is an alignment source."""

    device: str
    path: Path
    relative: str
    frame_times_s: Floats
    start_s: float  # clip time of its first picture
    last_gyro_s: float  # its own media time of its last rotation rate, or of its last picture
    is_loose: bool  # a chapter of unknown length before it is missing
    problem: str
    telemetry_late_s: float = 0.0
    "Delay of its own telemetry to its pictures."

    @property
    def has_frames(self) -> bool:
        """Return whether it has pictures."""
        return len(self.frame_times_s) > 0

    @property
    def source(self) -> str:
        """Name of the alignment source."""
        return f"{self.device}/{self.path.name}"


@dataclass(frozen=True, slots=True)
class CameraClip:
    """The chapters of one clip, in order."""

    device: str
    files: tuple[CameraFile, ...]
    camera: str = ""  # its camera: the device, or with the serial number of an adopted film
    gyro: GyroTrack | None = None  # on clip time
    gyro_report: dict[str, object] = field(default_factory=dict)
    problem: str = ""
    starts: tuple[StatedStart, ...] = ()  # host times of clip time 0 by shutter and camera clock
    clues: tuple[Clue, ...] = ()  # clues in its files to the delay of rates to pictures
    doubts: tuple[str, ...] = ()  # contradictory clues that the pictures do not decide
    noted: tuple[str, ...] = ()  # notes for the certificate
    is_wrong_pace: bool = False  # whether it is not in real time; see `problem`

    @property
    def warnings(self) -> list[str]:
        """Problems of its clock, and missing chapters."""
        names = [name for name in (card_name(file.path.name) for file in self.files) if name is not None]
        chapters = {name.chapter for name in names}
        lost = [str(chapter) for chapter in range(1, max(chapters, default=0)) if chapter not in chapters]
        problems = [*(start.warning for start in self.starts if start.warning), *self.noted]
        if lost:
            problems.append(f"chapter {', '.join(lost)} of recording {names[0].number} is not here")
        return problems

    @property
    def readable(self) -> tuple[CameraFile, ...]:
        """The chapters with pictures."""
        return tuple(file for file in self.files if file.has_frames)


def camera_clips(recording: Recording) -> list[CameraClip]:
    """Read the metadata and the gyroscope of every camera file; no picture is decoded."""
    clips = []
    for device, paths in recording.gopro_files.items():
        for start in clip_starts(read_media(recording.path, device), paths):
            opened = start.started  # useful only if its effect was observed
            is_timed = opened is not None and opened.get("observed_host_ns") is not None
            clips += read_clip(recording, device, list(start.files), opened if is_timed else None)
    return clips


def read_clip(
    recording: Recording, device: str, paths: list[Path], shutter: ShutterForm | None
) -> list[CameraClip]:
    """Read one clip; files that are not really chapters of one become a clip each."""
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
    except SensorError as error:  # files of several recordings, or a damaged header
        pass_on_trouble(error)
        each = [read_clip(recording, device, [path], shutter if path == paths[0] else None) for path in paths]
        return [clip for clips in each for clip in clips]
    if clip is None:
        files = tuple(_unreadable(recording, device, path, problems[path]) for path in paths)
        return [CameraClip(device, files, device, problem=files[0].problem)]
    rates = clip_rates(clip)
    readable = {file.path: file for file in _readable_files(recording, device, clip, rates)}
    files = tuple(
        readable.get(path) or _unreadable(recording, device, path, problems[path]) for path in paths
    )
    track, first = rates.track, clip.chapters[0]
    camera = device
    if recording.manifest["devices"][device].get("kind") != "gopro":
        camera = f"{device}/{first.serial or first.path.name}"  # films of several cameras are adopted as one device
    camera_clip = CameraClip(
        device,
        files,
        camera,
        make_track(f"{device}/{clip.path.name}", track.t_s, track.xyz) if track is not None else None,
        rates.report,
        problem=rates.problem,
        starts=_starts(recording, clip, shutter),
        clues=rates.clues,
        doubts=rates.doubts,
        noted=rates.noted,
        is_wrong_pace=rates.is_wrong_pace,
    )
    return [camera_clip]


def _readable_files(recording: Recording, device: str, clip: Clip, rates: ClipRates) -> Iterator[CameraFile]:
    track, late_s = rates.track, rates.late_s or (0.0,) * len(clip.chapters)
    ends_s = [*rates.starts_s[1:], np.inf]
    for media, start_s, end_s, is_loose, late in zip(
        clip.chapters, rates.starts_s, ends_s, rates.loose, late_s, strict=True
    ):
        last_s = float(media.frame_times_s[-1])
        if track is not None and len(inside := track.t_s[(track.t_s < end_s) & (track.t_s >= start_s)]):
            last_s = float(inside[-1]) - start_s
        relative = media.path.relative_to(recording.readable).as_posix()
        yield CameraFile(
            device, media.path, relative, media.frame_times_s, start_s, last_s, is_loose, rates.problem, late
        )


def _unreadable(recording: Recording, device: str, path: Path, problem: str) -> CameraFile:
    relative = path.relative_to(recording.readable).as_posix()
    return CameraFile(device, path, relative, np.empty(0), 0.0, 0.0, False, problem)


def _starts(recording: Recording, clip: Clip, shutter: ShutterForm | None) -> tuple[StatedStart, ...]:
    """Return the times of the first picture by shutter and camera clock; none for an adopted film."""
    manifest, first = recording.manifest, clip.chapters[0]
    if "adopted" in manifest:
        return ()
    name = card_name(first.path.name)
    is_first = name is None or name.chapter == 1
    try:
        before, label = first.frames_before, first.tmcd_displayed
        lost_s = 0.0 if is_first else None  # missing time before the first picture; None if unknown
        if before is not None:
            lost_s = float(before * first.frame_period) - first.payloads[0].start_s
        label_s = None
        if label is not None:
            hours, minutes, seconds = (int(part) for part in label[:8].split(":"))
            label_s = 3600.0 * hours + 60.0 * minutes + seconds + int(label[9:]) * float(first.frame_period)
        clock = StatedCameraClock(first.creation_time, first.tmcd_wall_seconds_since_midnight, label_s)
    except SensorError as error:
        pass_on_trouble(error)
        return ()  # the problem of the file is reported with its rates
    pressed = start_from_shutter(shutter, earlier_s=lost_s) if lost_s is not None else None
    own = start_from_camera_clock(
        clock,
        utc_times(manifest),
        zone_offset_s=int((manifest.get("zone") or {}).get("utc_offset_s") or 0),
        pressed_host_ns=pressed.host_ns if pressed else None,
        stopped_host_ns=(manifest.get("stopped") or {}).get("host_ns"),
        seconds=float(clip.duration_s),
    )
    if own is not None and lost_s and is_first:
        # a trimmed film: some tools update its start, others keep it
        half_s = lost_s / 2
        sigma_s = float(np.hypot(own.sigma_s, half_s))
        own = replace(own, host_ns=own.host_ns + round(half_s * 1e9), sigma_s=sigma_s)
    return tuple(start for start in (pressed, own) if start is not None)


KIND = "video"


def adopted_clips(recording: Recording) -> list[CameraClip]:
    """Read every adopted film in the order of adoption; chapters of a GoPro are one clip.

    Pictures are only decoded if the clues of a film contradict each other.
    """
    devices = [name for name, about in recording.manifest["devices"].items() if about.get("kind") == KIND]
    promised = list(promised_hashes(recording.readable, recording.manifest)) if devices else []
    clips = []
    for device in devices:
        films = [recording.readable / name for name in promised if name.partition("/")[0] == device]
        moving = [path for path in films if _has_motion(path)]
        for start in clip_starts({}, moving):
            clips += read_clip(recording, device, list(start.files), None)
        clips += [_still_clip(recording, device, path) for path in films if path not in moving]
    return sorted(clips, key=lambda clip: promised.index(clip.files[0].relative))


def _has_motion(path: Path) -> bool:
    try:
        return any(track.format == "gpmd" for track in open_media(path).tracks.values())
    except SensorError as error:
        pass_on_trouble(error)
        return False


def _still_clip(recording: Recording, device: str, path: Path) -> CameraClip:
    """Read the media time of each picture, from the first, of a film without motion data."""
    relative, problem = path.relative_to(recording.readable).as_posix(), ""
    times_s: npt.NDArray[np.floating] = np.empty(0)
    try:
        with open_container(path) as container:
            stream = next(iter(container.streams.video), None)
            if stream is not None and stream.time_base is not None:
                packets = (
                    packet for packet in container.demux(stream) if packet.size and not packet.is_discard
                )
                stamps = np.array(
                    sorted(packet.pts for packet in packets if packet.pts is not None), dtype=np.int64
                )
                times_s = (stamps - stamps[:1]) * float(stream.time_base)
    except (av.FFmpegError, OSError) as error:
        pass_on_trouble(error)
        problem = f"{path.name}: {(error.strerror or str(error)).lower()}"
    if not len(times_s):
        problem = problem or f"{path.name}: no pictures"
    file = CameraFile(device, path, relative, times_s, 0.0, 0.0, False, problem)
    noted = (f"{path.name}: {words}",) if (words := pace_warning(path)) else ()
    return CameraClip(device, (file,), relative, problem=f"{path.name}: no telemetry", noted=noted)
