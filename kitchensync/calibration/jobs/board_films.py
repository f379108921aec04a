"""Films of a board: GoPro files looked through once, decoded forward, for pictures worth calibrating with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.calibration.estimate.board import Detector
from kitchensync.calibration.estimate.choice import CandidateFrame, looks
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.storage.geometry.errors import Refused

Progress = Callable[[float], None]
"""Called with the seconds of film looked through so far."""


@dataclass
class BoardFilm:
    """What a film showed."""

    path: Path
    serial: str
    model: str
    mode: str
    filmed: str
    "When, as the file says: ISO 8601, UTC or the camera's local clock."
    seconds: float
    candidates: list[CandidateFrame] = field(default_factory=list)
    without_board: list[str] = field(default_factory=list)
    "Names of pictures that were looked at and show no board."
    why_without: str = ""
    "Why, of the last one that says more than that nothing is there."


def look_through(path: Path, detector: Detector, progress: Progress | None = None) -> BoardFilm:
    """Look for the board five times a second, and in the frame after, which tells how fast it moved."""
    media = open_media(path)
    if media.video is None:
        raise Refused(f"{path.name} has no pictures")
    film = BoardFilm(
        path, media.serial or "unknown", media.camera_model or "unknown", media.mode.lens_name,
        media.creation_time or "", float(media.duration_s),
    )  # fmt: skip
    if media.mode.is_stabilised:
        raise Refused(
            f"{path.name} is stabilized: each picture is warped otherwise; film with stabilization off"
        )
    times = media.frame_times_s
    frames = ((index, float(times[index]), grey) for index, grey in grey_frames(media))
    for look in looks(frames, detector, lambda at_s: f"{path.name} {at_s:.2f} s"):
        if look.seen is None:
            _note_missing(film, f"{path.name} {look.at_s:.2f} s", look.grey, detector)
        else:
            film.candidates.append(CandidateFrame(look.seen, look.way_px))
        if progress is not None:
            progress(look.at_s)
    return film


def _note_missing(film: BoardFilm, name: str, grey: npt.NDArray[np.uint8], detector: Detector) -> None:
    """Remember a picture without a board; ask why for the first ones and then rarely, since it takes long."""
    film.without_board.append(name)
    count = len(film.without_board)
    if count <= 3 or count % 25 == 0:
        why = detector.why_not(grey)
        if "no board" not in why or not film.why_without:
            film.why_without = why


def grey_frames(media: GoProMedia) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield number and luma (height, width) uint8 of every picture, in order."""
    pts = media.frame_pts
    with media.container() as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            if frame.pts is not None:
                yield int(np.searchsorted(pts, frame.pts)), luma(frame)


def luma(frame: Any) -> npt.NDArray[np.uint8]:
    """View the luma of a decoded frame (height, width) uint8; ten-bit films are brought to eight."""
    if frame.format.name in ("yuv420p", "yuvj420p", "nv12"):
        plane = frame.planes[0]
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        return np.ascontiguousarray(rows[:, : plane.width])
    return np.asarray(frame.to_ndarray(format="gray"), np.uint8)
