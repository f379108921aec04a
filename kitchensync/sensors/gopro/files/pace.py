"""Whether a video shows time as it passed: time-lapse and TimeWarp videos do not, and no clock fits them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadGpmf, SensorError, UnreadableMedia
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.sensors.gopro.files.telemetry import Parts, parts_of

LEAST_HZ, SAMPLES_A_PICTURE = 100.0, 1.1
"""Motion in real time is sampled at 197 Hz and more; a picture of a time-lapse has one sample."""
REAL_TIME = (0.8, 1.25)
"""Seconds by the camera's stamps in a second of the video; TimeWarp begins at 2, slow motion at 0.5."""
LAPSE = "as in time-lapse and TimeWarp videos"


class VideoPace(NamedTuple):
    """Why a video is not in real time, or, where nothing in the file tells (`is_wrong` False), may not be."""

    words: str
    is_wrong: bool


def pace_words(path: Path) -> str:
    """Return why a video is or may be not in real time, or nothing: what cannot be read is named by others."""
    try:
        pace = pace_of(open_media(path))
    except SensorError:
        return ""
    return pace.words if pace is not None else ""


def pace_of(media: GoProMedia) -> VideoPace | None:
    """Return why a video is not in real time; None where it is, or where its telemetry cannot be read."""
    try:
        parts = _parts(media, "GYRO") or _parts(media, "ACCL")
        if not parts:
            kinds = {track.format for track in media.tracks.values()}
            words = f"it has neither sound nor motion, {LAPSE}: nothing tells whether it is in real time"
            return (
                None
                if kinds & {"gpmd", "camm"} or media.audio is not None
                else VideoPace(words, is_wrong=False)
            )
        at = np.array(
            [(media.payloads[k].start_s, part.integer("STMP") or 0) for k, part in parts], np.float64
        )
        lasts_s = np.array([max(media.payloads[k].duration_s, 1e-3) for k, _ in parts])
    except UnreadableMedia:
        return None
    (media_s, stamped_s), per_s = np.diff(at, axis=0).T, [part.count for _, part in parts] / lasts_s
    stamped = (
        np.median(stamped_s[media_s > 0] / 1e6 / media_s[media_s > 0]) if (media_s * stamped_s).any() else 1.0
    )
    if not REAL_TIME[0] < stamped < REAL_TIME[1]:
        words = f"by its camera's stamps each second of it shows {stamped:.1f} s, {LAPSE}"
        return VideoPace(f"not in real time: {words}", is_wrong=True)
    if np.median(per_s) < min(LEAST_HZ, SAMPLES_A_PICTURE / float(media.frame_period)):
        return VideoPace(f"not in real time: one sample of motion a picture, {LAPSE}", is_wrong=True)
    return None


def _parts(media: GoProMedia, key: str) -> Parts:
    try:
        return parts_of(media.stream_parts, key)
    except BadGpmf:
        return []
