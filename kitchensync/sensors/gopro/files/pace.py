"""Detection of videos that are not in real time: time-lapse and TimeWarp videos, which cannot be aligned."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadGpmf, SensorError, UnreadableMedia
from kitchensync.sensors.gopro.files.media import GoProMedia, open_media
from kitchensync.sensors.gopro.files.telemetry import Parts, parts_of

LEAST_HZ, SAMPLES_A_PICTURE = 100.0, 1.1
"""Smallest rates of motion samples in real time, per second and per frame.

In real time cameras sample motion at 197 Hz or more; in a time-lapse each frame has one sample."""
REAL_TIME = (0.8, 1.25)
"""Range of real time, in seconds of the camera's timestamps per second of video; TimeWarp begins at 2, slow motion
ends at 0.5."""
LAPSE = "as in time-lapse and TimeWarp videos"


class VideoPace(NamedTuple):
    """Why a video is not in real time (`is_wrong`), or may not be."""

    message: str
    is_wrong: bool


def pace_warning(path: Path) -> str:
    """Return why a video is not or may not be in real time; empty if it is, or cannot be read."""
    try:
        pace = pace_of(open_media(path))
    except SensorError:
        return ""
    return pace.message if pace is not None else ""


def pace_of(media: GoProMedia) -> VideoPace | None:
    """Return why a video is not or may not be in real time; None if it is, or its telemetry cannot be read."""
    try:
        parts = _parts(media, "GYRO") or _parts(media, "ACCL")
        if not parts:
            has_motion = not {track.format for track in media.tracks.values()}.isdisjoint({"gpmd", "camm"})
            if has_motion or media.audio is not None:
                return None
            message = f"it has neither sound nor motion, {LAPSE}: it may not be in real time"
            return VideoPace(message, is_wrong=False)
        starts = [(media.payloads[k].start_s, part.integer("STMP") or 0) for k, part in parts]
        durations_s = np.array([max(media.payloads[k].duration_s, 1e-3) for k, _ in parts])
    except UnreadableMedia:
        return None
    media_s, stamp_us = np.diff(np.array(starts, np.float64), axis=0).T
    pace = 1.0
    if (media_s * stamp_us).any():
        pace = float(np.median(stamp_us[media_s > 0] / 1e6 / media_s[media_s > 0]))
    if not REAL_TIME[0] < pace < REAL_TIME[1]:
        why = f"one second of video is {pace:.1f} s by the camera's timestamps, {LAPSE}"
        return VideoPace(f"not in real time: {why}", is_wrong=True)
    samples_per_s = [part.count for _, part in parts] / durations_s
    if np.median(samples_per_s) < min(LEAST_HZ, SAMPLES_A_PICTURE / float(media.frame_period)):
        return VideoPace(f"not in real time: one motion sample per frame, {LAPSE}", is_wrong=True)
    return None


def _parts(media: GoProMedia, key: str) -> Parts:
    try:
        return parts_of(media.stream_parts, key)
    except BadGpmf:
        return []
