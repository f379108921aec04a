"""What stands below a film to find moments by: how loud it was, how the camera moved, and small pictures of it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.media import open_container
from kitchensync.sensors.shown_picture import even_width

if TYPE_CHECKING:
    from kitchensync.dataset.source.own_recording import OwnRecording

EACH_S = 0.2
"""Duration of one value of a lane, seconds."""
MOST = 99  # lanes.js of the desk divides by the same number
QUIETEST_DB, FASTEST_RAD_PER_S = -60.0, 3.0
THUMBNAILS, THUMBNAIL_HEIGHT = 40, 54


def sound_levels(film: Path, length_s: float) -> list[int]:
    """Return the sound level of a video, 0 (60 dB below full scale, or silence) to 99, a value for each 0.2 s."""
    sums = np.zeros((_count(length_s), 2))
    with open_container(film) as source:
        if not source.streams.audio:
            return []
        for frame in source.decode(audio=0):
            block = frame.to_ndarray().astype(np.float64)
            if frame.format.name.startswith("s16"):
                block /= 32768
            at = int((frame.time or 0.0) / EACH_S)
            if 0 <= at < len(sums):
                sums[at] += (np.square(block).sum(), block.size)
    rms = np.sqrt(sums[:, 0] / np.maximum(sums[:, 1], 1))
    level = 1 - 20 * np.log10(np.maximum(rms, 1e-9)) / QUIETEST_DB
    return _whole(level)


def motion_levels(own: OwnRecording) -> list[int]:
    """Return the camera's turning rate, 0 to 99 (3 rad/s and more), a value for each 0.2 s; 0 in a pause.

    Empty if its gyroscope cannot be read.
    """
    count = _count(own.film_s)
    sums = np.zeros((count, 2))
    try:
        for start_s, chapter in zip(own.clip.starts_s, own.clip.chapters, strict=True):
            track = chapter.gyroscope()
            at = np.clip(((track.t_s + float(start_s)) / EACH_S).astype(int), 0, count - 1)
            np.add.at(sums, at, np.column_stack([np.linalg.norm(track.xyz, axis=1), np.ones(len(at))]))
    except SensorError:
        return []
    mean = sums[:, 0] / np.maximum(sums[:, 1], 1)
    hidden_s = np.flatnonzero(own.hidden) / float(own.frames.fps)
    mean[np.clip((hidden_s / EACH_S).astype(int), 0, count - 1)] = 0
    return _whole(mean / FASTEST_RAD_PER_S)


def thumbnails(film: Path, frames: int) -> dict[str, Any]:
    """Return thumbnails of a video side by side in a JPEG: `count`, `width` of each, interval `every` in frames."""
    every = max(1, frames // THUMBNAILS)
    images = list[Any]()
    with open_container(film) as source:
        stream = source.streams.video[0]
        assert stream.time_base is not None
        assert stream.average_rate is not None
        for number in range(0, frames, every):
            source.seek(int(number / stream.average_rate / stream.time_base), stream=stream)
            frame = next(source.decode(video=0), None)
            if frame is None:
                break
            width = even_width(frame.width, frame.height, THUMBNAIL_HEIGHT)
            images.append(frame.reformat(width=width, height=THUMBNAIL_HEIGHT).to_ndarray(format="bgr24"))
    if not images:
        return {"count": 0, "width": 0, "every": every, "jpeg": ""}
    jpeg = cv2.imencode(".jpg", np.hstack(images), [cv2.IMWRITE_JPEG_QUALITY, 70])[1].tobytes()
    text = base64.b64encode(jpeg).decode()
    return {"count": len(images), "width": images[0].shape[1], "every": every, "jpeg": text}


def _count(length_s: float) -> int:
    return int(length_s / EACH_S) + 1


def _whole(levels: npt.NDArray[np.float64]) -> list[int]:
    return [int(level) for level in np.clip(levels * MOST, 0, MOST)]
