"""A recording's camera files for a report: what they hold, and where they lie on the time axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.shell.array_types import Floats, Mask
from kitchensync.storage.exports.hidden_films import hidden_in_film
from kitchensync.storage.reading.clip_starts import clip_starts, read_media, shutter_host_ns
from kitchensync.storage.recording import Recording
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.sync.errors import one_line
from kitchensync.sync.report.alignment import ShownAlignment
from kitchensync.sync.report.streams import TicksToHost

BY_MAP = "placed by the alignment"
BY_SHUTTER = "placed by the shutter's stamps only: may be off by some tenths of a second"


@dataclass(frozen=True)
class ShownFile:
    """One file of a camera; times are host ns of its first and last picture."""

    device: str
    path: Path
    bytes: int
    seconds: float | None = None
    frames: int = 0
    rate_hz: float | None = None
    picture: str = ""
    model: str = ""
    start_host_ns: int | None = None
    end_host_ns: int | None = None
    problem: str = ""
    clock_map: ClockMap | None = None  # None where it is not aligned
    hides: Callable[[Floats], Mask] | None = None  # which media seconds (n,) may lie in a privacy pause

    @property
    def name(self) -> str:
        """Camera and file."""
        return f"{self.device}/{self.path.name}"

    @property
    def placed_by(self) -> str:
        """How its place on the time axis is known."""
        if self.start_host_ns is None:
            return "not placed"
        return BY_SHUTTER if self.clock_map is None else BY_MAP


def read_cameras(
    recording: Recording, alignments: list[ShownAlignment], clocks: dict[str, TicksToHost]
) -> list[ShownFile]:
    """Describe and place every camera file; with the reason where one cannot be read.

    What has no clock map is placed by the shutter: the chapters of a clip one after another from when it opened.
    """
    found: list[ShownFile] = []
    for device, paths in recording.gopro_files.items():
        media = read_media(recording.path, device)
        closed = media.get("shutter_off")
        closed_ns = shutter_host_ns(closed) if closed else None
        for start in clip_starts(media, paths):
            at_ns = opened_ns = start.started_host_ns
            for path in start.files:
                file = _placed(_described(recording, device, path), alignments, clocks)
                if at_ns is not None and opened_ns is not None and file.start_host_ns is None:
                    unknown_s = ((closed_ns or opened_ns) - opened_ns) / 1e9
                    known_s = file.seconds if file.seconds is not None else unknown_s
                    file = replace(file, start_host_ns=at_ns, end_host_ns=at_ns + round(known_s * 1e9))
                if at_ns is not None:
                    at_ns = file.end_host_ns or at_ns
                found.append(file)
    return found


def _described(recording: Recording, device: str, path: Path) -> ShownFile:
    file = ShownFile(device, path, path.stat().st_size, hides=partial(hidden_in_film, recording, path))
    try:
        media = open_media(path)
        times, video = media.frame_times_s, media.video
        usual_s = float(times[-1]) / (len(times) - 1) if len(times) > 1 else 0.0
        return replace(
            file,
            seconds=float(times[-1]) + usual_s if len(times) else 0.0,
            frames=len(times),
            rate_hz=1.0 / usual_s if usual_s > 0 else None,
            picture=f"{video.width}x{video.height} {video.codec}" if video else "",
            model=media.camera_model or "",
        )
    except (SensorError, OSError, ValueError, IndexError) as error:
        return replace(file, problem=one_line(error, path))


def _placed(file: ShownFile, alignments: list[ShownAlignment], clocks: dict[str, TicksToHost]) -> ShownFile:
    """Place a file by its clock map, when it has one that may be believed."""
    alignment = next((a.alignment for a in alignments if a.is_of(file.device, file.path.name)), None)
    if alignment is None or alignment.clock_map is None or file.seconds is None:
        return file
    clock = clocks.get(alignment.headset) or next(iter(clocks.values()), None)
    if clock is None:
        return file
    ends = alignment.clock_map.to_ticks(np.array([0.0, file.seconds]))
    start_ns, end_ns = (clock.host_ns(ticks) for ticks in ends)
    return replace(file, start_host_ns=start_ns, end_host_ns=end_ns, clock_map=alignment.clock_map)
