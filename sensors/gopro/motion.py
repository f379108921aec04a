"""Inertial samples of GPMF payloads: when each was taken, in media time, and which way it points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sensors.errors import BadGpmf
from sensors.gopro.gpmf import StreamPart, numbers, text
from sensors.gopro.tracks import find_timing, parts_of, sample_numbers

CANONICAL = "XYZ"

TO_IMAGE_AXES = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, -1.0, 0.0]])
"""(3, 3) from canonical GoPro axes (X left, Y out of the screen, Z up) to OpenCV's (x right, y down, z forward)."""
ORIN_OF_OLD_CAMERAS = {"camera": "ZXY", "fusion": "yXZ", "hero6 black": "YxZ", "hero7 black": "YxZ"}
"Axis of each channel by device name where the file does not say it; lower case = negated ('Camera' is HERO5)."
ORIN_DEFAULT = "ZXY"


@dataclass(frozen=True)
class ImuTrack:
    """Samples of one inertial sensor over a whole file."""

    t_s: np.ndarray
    "(n,) float64 media seconds; the first may lie some milliseconds before the first picture."
    xyz: np.ndarray
    "(n, 3) float32 in the camera's X (left), Y (out of the screen), Z (up), seen from behind."
    rate_hz: float
    "By regression over all payloads."
    unit: str
    method: str
    "How times were found: stmp (microseconds), tick (ms) or payload_times."


def imu_track(
    payload_parts: list[list[StreamPart]], intervals: list[tuple[float, float]], key: str
) -> ImuTrack:
    """Join stream `key` of the camera over all payloads; `intervals` = their (start, duration) in media time.

    Times as `tracks.sample_track` finds them. Raises `BadGpmf` when the file has no such samples.
    """
    parts = parts_of(payload_parts, key)
    timing = find_timing(parts, payload_parts, intervals)
    stored = [part.samples()[:, :3] for _, part in parts]
    if any(block.shape[1:] != (3,) for block in stored):
        raise BadGpmf(f"{key} without three axes", parts[0][1].data[0].offset)
    k = sample_numbers(timing, stored)
    rotation = axes_matrix(parts[0][1])
    with np.errstate(all="ignore"):  # garbage may hold any float
        xyz = (np.concatenate(stored) @ rotation.T).astype(np.float32)
    unit = text(parts[0][1].meta["SIUN"]) if "SIUN" in parts[0][1].meta else ""
    return ImuTrack(timing.start_s + k / timing.rate_hz, xyz, timing.rate_hz, unit, timing.method)


def axes_matrix(part: StreamPart) -> np.ndarray:
    """Build the (3, 3) matrix from stored channels to canonical X Y Z, from ORIN, or MTRX with ORIO, or the model."""
    orin = text(part.meta["ORIN"]) if "ORIN" in part.meta else ""
    if sorted(orin.upper()) == sorted(CANONICAL):
        return _signed_permutation(orin)
    orio = text(part.meta["ORIO"]) if "ORIO" in part.meta else ""
    if sorted(orio.upper()) == sorted(CANONICAL) and "MTRX" in part.meta:
        matrix = numbers(part.meta["MTRX"]).ravel()
        if matrix.size == 9:
            turned: np.ndarray = _signed_permutation(orio) @ matrix.reshape(3, 3)
            return turned
    return _signed_permutation(ORIN_OF_OLD_CAMERAS.get(part.device.lower(), ORIN_DEFAULT))


def _signed_permutation(letters: str) -> np.ndarray:
    """Letter i names the axis in channel i, lower case = negated."""
    matrix = np.zeros((3, 3))
    for channel, letter in enumerate(letters):
        matrix[CANONICAL.index(letter.upper()), channel] = 1.0 if letter.isupper() else -1.0
    return matrix
