"""What `sync` reads of the cameras in a recording: files, frames, gyroscopes, and when their shutters fell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sensors.errors import SensorError
from sensors.gopro.media import GoProMedia, open_media
from storage.names import MEDIA
from storage.recording import Recording
from sync.prior import Start, start_from_camera_clock, start_from_shutter
from sync.resample import GyroTrack, make_track

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class CameraFile:
    """One file of one camera: an alignment source of its own."""

    device: str
    path: Path
    relative: str
    frame_times_s: Floats
    gyro: GyroTrack | None
    gyro_report: dict[str, Any]
    problem: str
    starts: tuple[Start, ...]

    @property
    def can_be_placed(self) -> bool:
        """Tell whether it has frames at all."""
        return len(self.frame_times_s) > 0

    @property
    def source(self) -> str:
        """Name of the alignment source."""
        return f"{self.device}/{self.path.name}"


def camera_files(recording: Recording) -> list[CameraFile]:
    """Read the metadata and the gyroscope of every camera file; no picture is decoded."""
    files = []
    for device, paths in recording.gopro_files.items():
        shutter = _shutter(recording.path / device / MEDIA)
        earlier_s, take = 0.0, ""
        for path in paths:
            same_take = not take or path.stem[4:] == take
            take = take or path.stem[4:]
            file = _read(recording, device, path, shutter if same_take else None, earlier_s)
            earlier_s += _length_s(file.frame_times_s)
            files.append(file)
    return files


def _read(
    recording: Recording, device: str, path: Path, shutter: dict[str, Any] | None, earlier_s: float
) -> CameraFile:
    relative = path.relative_to(recording.path).as_posix()
    nothing: Floats = np.empty(0)
    try:
        media = open_media(path)
        frames = media.frame_times_s
        starts = _starts(recording, media, shutter, earlier_s)
    except SensorError as error:
        return CameraFile(device, path, relative, nothing, None, {}, _one_line(error), ())
    try:
        track = media.gyroscope()
    except SensorError as error:
        return CameraFile(device, path, relative, frames, None, {}, _one_line(error), starts)
    report = {"rate_hz": round(track.rate_hz, 4), "samples": len(track.t_s), "stamp": track.method}
    gyro = make_track(f"{device}/{path.name}", track.t_s, track.xyz) if len(track.t_s) > 1 else None
    problem = "" if gyro else f"{path.name}: fewer than two gyroscope samples"
    return CameraFile(device, path, relative, frames, gyro, report, problem, starts)


def _starts(
    recording: Recording, media: GoProMedia, shutter: dict[str, Any] | None, earlier_s: float
) -> tuple[Start, ...]:
    """Collect what shutter and camera clock say of the first picture."""
    manifest = recording.manifest
    started = manifest.get("started") or None
    pressed = start_from_shutter(shutter, earlier_s=earlier_s)
    near_ns = pressed.host_ns if pressed else int((started or {}).get("host_ns", 0))
    own = start_from_camera_clock(
        media.creation_time,
        media.tmcd_wall_seconds_since_midnight,
        started,
        zone_offset_s=int((manifest.get("zone") or {}).get("utc_offset_s") or 0),
        near_host_ns=near_ns,
    )
    return tuple(start for start in (pressed, own) if start is not None)


def _shutter(path: Path) -> dict[str, Any] | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    shutter = body.get("shutter_on") if isinstance(body, dict) else None
    return (
        shutter
        if isinstance(shutter, dict) and {"before_host_ns", "observed_host_ns"} <= set(shutter)
        else None
    )


def _length_s(frame_times_s: Floats) -> float:
    if len(frame_times_s) < 2:
        return 0.0
    return float(frame_times_s[-1] + np.median(np.diff(frame_times_s)))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
