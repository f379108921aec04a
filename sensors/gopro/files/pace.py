"""Whether a video shows time as it passed: time-lapse and TimeWarp videos do not, and no clock fits them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadGpmf, UnreadableMedia
from kitchensync.sensors.gopro.files.media import GoProMedia
from kitchensync.sensors.gopro.files.telemetry import Parts, parts_of

MOTION = ("GYRO", "ACCL")
MOTION_TRACKS = ("gpmd", "camm")
LEAST_HZ = 100.0
"""Motion in real time is sampled at 197 Hz and more; a picture of a time-lapse has one sample."""
REAL_TIME = (0.8, 1.25)
"""Seconds by the camera's stamps in a second of the video; TimeWarp begins at 2, slow motion at 0.5."""
LAPSE = "as in time-lapse and TimeWarp videos"


class Pace(NamedTuple):
    """Why a video is not, or may not be, in real time."""

    words: str
    is_wrong: bool
    "Whether the file itself says so; else nothing in it tells."


def pace_of(media: GoProMedia) -> Pace | None:
    """Return why a video is not in real time; None where it is, or where its telemetry cannot be read."""
    try:
        parts = _motion(media)
        if not parts:
            is_silent = not any(track.format in MOTION_TRACKS for track in media.tracks.values())
            words = f"it has neither sound nor motion, {LAPSE}: nothing tells whether it is in real time"
            return Pace(words, is_wrong=False) if is_silent and media.audio is None else None
        stamped, per_s = _stamped_per_s(media, parts), _samples_per_s(media, parts)
        if not REAL_TIME[0] < stamped < REAL_TIME[1]:
            words = f"by its camera's stamps each second of it shows {stamped:.1f} s, {LAPSE}"
            return Pace(f"not in real time: {words}", is_wrong=True)
        if per_s < LEAST_HZ and per_s * float(media.frame_period) < 1.1:
            return Pace(f"not in real time: one sample of motion a picture, {LAPSE}", is_wrong=True)
    except UnreadableMedia:
        return None  # what is wrong with it is said of its telemetry
    return None


def _motion(media: GoProMedia) -> Parts:
    for key in MOTION:
        try:
            return parts_of(media.stream_parts, key)
        except BadGpmf:
            continue
    return []


def _samples_per_s(media: GoProMedia, parts: Parts) -> float:
    """Samples in a second of the video: of the payloads' the median."""
    return float(np.median([part.count / max(media.payloads[k].duration_s, 1e-3) for k, part in parts]))


def _stamped_per_s(media: GoProMedia, parts: Parts) -> float:
    """Seconds by the camera's stamps in a second of the video: of the payloads' the median; 1 without stamps."""
    known = [(media.payloads[k].start_s, us) for k, part in parts if (us := part.integer("STMP")) is not None]
    if len(known) < 2:
        return 1.0
    media_s, stamped_us = np.diff(np.array(known, np.float64), axis=0).T
    return float(np.median(stamped_us[media_s > 0] / 1e6 / media_s[media_s > 0])) if media_s.any() else 1.0
