"""Search the board in GoPro videos, decoding each once, for frames to calibrate with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.calibration.estimate.board import Detector
from kitchensync.calibration.estimate.choice import CandidateFrame, sample_frames
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.storage.geometry.errors import Refused

Progress = Callable[[float], None]
"""Called with the seconds of video searched so far."""


@dataclass
class BoardFilm:
    """Result of searching the board in one video."""

    path: Path
    serial: str
    model: str
    mode: str
    filmed: str
    "Creation time in the file: ISO 8601, UTC or the camera's local clock."
    seconds: float
    candidates: list[CandidateFrame] = field(default_factory=list)
    without_board: list[str] = field(default_factory=list)
    "Names of the sampled frames without a board."
    why_without: str = ""
    "Most recent explanation for a frame without a board."


def search_board(path: Path, detector: Detector, progress: Progress | None = None) -> BoardFilm:
    """Search the board five times a second, each time also in the next frame to measure its motion."""
    media = open_media(path)
    if media.video is None:
        raise Refused(f"{path.name} has no pictures")
    film = BoardFilm(
        path, media.serial or "unknown", media.camera_model or "unknown", media.mode.lens_name,
        media.creation_time or "", float(media.duration_s),
    )  # fmt: skip
    if media.mode.is_stabilised:
        raise Refused(
            f"{path.name} is stabilized: each frame is warped differently; film with stabilization off"
        )
    times = media.frame_times_s
    frames = ((index, float(times[index]), grey) for index, grey in grey_frames(media))
    for sample in sample_frames(frames, detector, lambda at_s: f"{path.name} {at_s:.2f} s"):
        if sample.view is None:
            _note_missing(film, f"{path.name} {sample.at_s:.2f} s", sample.grey, detector)
        else:
            film.candidates.append(CandidateFrame(sample.view, sample.motion_px))
        if progress is not None:
            progress(sample.at_s)
    return film


def _note_missing(film: BoardFilm, name: str, grey: npt.NDArray[np.uint8], detector: Detector) -> None:
    """Note a frame without a board and, for some of them, the reason."""
    film.without_board.append(name)
    count = len(film.without_board)
    if count <= 3 or count % 25 == 0:  # finding the reason is slow
        why = detector.explain_missing(grey)
        if "no board" not in why or not film.why_without:
            film.why_without = why


def grey_frames(media: GoProMedia) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield number and luma (height, width) uint8 of every frame, in order."""
    pts = media.frame_pts
    with media.container() as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            if frame.pts is not None:
                yield int(np.searchsorted(pts, frame.pts)), luma(frame)


def luma(frame: Any) -> npt.NDArray[np.uint8]:
    """Return the luma of a decoded frame (height, width) uint8; ten-bit video is reduced to eight bits."""
    if frame.format.name in ("yuv420p", "yuvj420p", "nv12"):
        plane = frame.planes[0]
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        return np.ascontiguousarray(rows[:, : plane.width])
    return np.asarray(frame.to_ndarray(format="gray"), np.uint8)
