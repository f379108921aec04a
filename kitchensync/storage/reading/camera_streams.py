"""The streams of a GoPro in a recording: `gopro/video`, `audio`, `gyroscope`, `accelerometer`, on media time.

Media time is seconds from the first picture of a clip, all its chapters together; `sync` maps it to the headset's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import CannotJoin
from kitchensync.sensors.gopro.files.card_names import ClipFiles, card_name, group_clips
from kitchensync.sensors.gopro.files.clip import Clip, open_clip
from kitchensync.sensors.gopro.files.film_sound import SoundBlock, sound_blocks
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.storage.errors import UnknownStream
from kitchensync.storage.reading.clip_starts import clip_starts, read_media
from kitchensync.storage.reading.stream_kinds import CAMERA, CAMERA_STREAMS, CameraStreamKind, check_kind

if TYPE_CHECKING:
    from kitchensync.sensors.gopro.files.clip import ClipPictures
    from kitchensync.sensors.gopro.files.telemetry import ImuTrack


@dataclass(frozen=True)
class CameraStream:
    """One stream of one clip of a camera."""

    name: str
    clip: Clip
    telemetry_late_s: float = 0.0
    "Delay of the telemetry to the pictures by `sync`."

    @property
    def is_inertial(self) -> bool:
        """Return whether it has inertial samples."""
        return self._kind.imu is not None

    def placed(self, telemetry_late_s: float) -> CameraStream:
        """Return the stream with its telemetry earlier by the delay that `sync` found."""
        return replace(self, telemetry_late_s=telemetry_late_s)

    @property
    def t_s(self) -> npt.NDArray[np.float64]:
        """Media seconds of every picture or inertial sample, (n,)."""
        if self._kind.reader == "pictures":
            return self.clip.frame_times_s
        if self._kind.reader == "sound":
            return np.array([block.t_s for block in self.sound()])
        return self.imu().t_s

    @property
    def _kind(self) -> CameraStreamKind:
        return CAMERA_STREAMS[self.name.rpartition("/")[2]]

    def imu(self) -> ImuTrack:
        """Read the inertial samples: rad/s or m/s^2, X left, Y out of the screen, Z up. Raises NotOfThisKind."""
        check_kind(self.name, "imu", CAMERA)
        assert self._kind.imu is not None, "it is of this kind"
        track = self._kind.imu(self.clip)
        return replace(track, t_s=track.t_s - self.telemetry_late_s)

    def pictures(self) -> ClipPictures:
        """Open the pictures for access by time or number (a context manager). Raises NotOfThisKind."""
        check_kind(self.name, "pictures", CAMERA)
        return self.clip.pictures()

    def sound(self) -> Iterator[SoundBlock]:
        """Decode the sound lazily, chapter by chapter, each block at its own time. Raises NotOfThisKind."""
        check_kind(self.name, "sound", CAMERA)
        starts = zip(self.clip.chapters, self.clip.starts_s, strict=True)
        return chain.from_iterable(sound_blocks(chapter, start_s) for chapter, start_s in starts)


class PlaceInClip(NamedTuple):
    """Place of a camera's file in the streams of its clips."""

    clip: int | None
    "Number of the clip; None for a file without a name of a camera."
    first_picture: int
    "Number of its first picture in the clip."


def place_in_clip(files: Iterable[Path], path: Path) -> PlaceInClip:
    """Find a file among those of its camera. Raises SensorError if a chapter before it cannot be counted."""
    for number, clip in enumerate(group_clips(files)):
        if path in clip.paths:
            before = clip.paths[: clip.paths.index(path)]
            _require_all_up_to(clip, path)
            return PlaceInClip(number, sum(len(open_media(chapter).frame_pts) for chapter in before))
    return PlaceInClip(None, 0)


def film_of(recording: Path, camera: str, files: Iterable[Path]) -> Clip:
    """Return the clips that the recorder started at a camera as one film.

    It is the first clip if no start is known. Raises CannotJoin, UnreadableMedia.
    """
    clips = clip_starts(read_media(recording, camera), files)
    starts = [(clip.started_host_ns, clip.files) for clip in clips if clip.started_host_ns is not None]
    ours = [paths for _, paths in sorted(starts)] or [clip.files for clip in clips[:1]]
    for group in group_clips(path for paths in ours for path in paths):
        _require_all_up_to(group, group.paths[-1])
    return Clip([chapter for paths in ours for chapter in open_clip(*paths).chapters])


def camera_stream(files: Mapping[str, list[Path]], name: str, clip: int) -> CameraStream:
    """Return one stream of one clip. Raises UnknownStream, CannotJoin if a chapter in the middle is missing."""
    device, _, kind = name.rpartition("/")
    groups = group_clips(files.get(device, []))
    if kind not in CAMERA_STREAMS or not 0 <= clip < len(groups):
        raise UnknownStream(name, [f"{camera}/{kind}" for camera in files for kind in CAMERA_STREAMS])
    _require_all_up_to(groups[clip], groups[clip].paths[-1])
    return CameraStream(name, open_clip(*groups[clip].paths))


def _require_all_up_to(clip: ClipFiles, path: Path) -> None:
    """Raise CannotJoin if a chapter between the first and this one is missing, as later times would be wrong."""
    first, last = (
        name.chapter for file in (clip.paths[0], path) if (name := card_name(file.name)) is not None
    )
    if lost := [chapter for chapter in clip.missing if first < chapter < last]:
        why = f"chapter {lost[0]} of recording {clip.number} is not here; read the files one by one"
        raise CannotJoin(clip.paths[0].name, why)
