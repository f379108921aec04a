"""A camera's telemetry on media time, for one file and for the joined chapters of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadGpmf, UnreadableMedia
from kitchensync.sensors.gopro.mp4 import gpmf
from kitchensync.sensors.gopro.mp4.gpmf import StreamPart, numbers, text

WILD_S = 0.1
"""Deviation from the regression line that makes a timestamp an outlier, seconds. Correct timestamps are within 1 ms
of it, those of whole milliseconds within a few."""
Parts = list[tuple[int, StreamPart]]
"(number of the payload, its part of the stream)"


@dataclass(frozen=True)
class SampleTrack:
    """All samples of one stream: stored values divided by SCAL."""

    t_s: np.ndarray
    "(n,) float64 media seconds; the first may be a few milliseconds before the first frame."
    values: np.ndarray
    "(n, fields) float64, in stored order; text fields are NaN."
    rate_hz: float
    "By regression over all payloads."
    unit: str
    method: str
    "Source of the times: stmp (microseconds), tick (ms) or payload_times."


@dataclass(frozen=True)
class Timing:
    """Regression line from sample numbers to media time."""

    start_s: float
    rate_hz: float
    method: str
    first_index: np.ndarray
    "(payloads,) number of each payload's first sample, counted from 0."


def sample_track(
    payload_parts: list[list[StreamPart]], intervals: list[tuple[float, float]], key: str
) -> SampleTrack:
    """Join stream `key` of the camera over all payloads; `intervals` = their (start, duration) in media time.

    With STMP: t(k) = start of the first payload + (STMP_key,first - STMP_SHUT,first) / 1e6 + k / rate. The rate is
    the slope of a line through all timestamps. k is counted by TSMP if present, so that a lost payload leaves a gap
    and not a shift. Without STMP: TICK, else a line through the payloads' end times. Raises `BadGpmf` without such
    samples.
    """
    parts = parts_of(payload_parts, key)
    timing = find_timing(parts, payload_parts, intervals)
    blocks = [part.samples() for _, part in parts]
    if len({block.shape[1] for block in blocks}) != 1:
        raise BadGpmf(f"{key} changes its number of fields", parts[0][1].data[0].offset)
    k = sample_numbers(timing, blocks)
    first = parts[0][1]
    unit = text(first.meta["SIUN"]) if "SIUN" in first.meta else ""
    return SampleTrack(
        timing.start_s + k / timing.rate_hz, np.concatenate(blocks), timing.rate_hz, unit, timing.method
    )


def parts_of(payload_parts: list[list[StreamPart]], key: str) -> Parts:
    """Return the parts of a stream of the camera itself, not of another device. Raises `BadGpmf` without any."""
    parts = [
        (number, part)
        for number, parts_here in enumerate(payload_parts)
        for part in _first_device(parts_here)
        if part.key == key and part.count
    ]
    if not parts:
        raise BadGpmf(f"no {key} samples", 0)
    return parts


def find_timing(
    parts: Parts, payload_parts: list[list[StreamPart]], intervals: list[tuple[float, float]]
) -> Timing:
    """Return the timing of a stream's samples."""
    first_index = first_numbers(parts)
    return Timing(*_timing(parts, first_index, payload_parts, intervals), first_index)


def sample_numbers(timing: Timing, blocks: list[np.ndarray]) -> np.ndarray:
    """Return the number of every sample; lost samples are counted."""
    ranges = [first + np.arange(len(block)) for first, block in zip(timing.first_index, blocks, strict=True)]
    return np.concatenate(ranges)


def _first_device(parts: list[StreamPart]) -> list[StreamPart]:
    return [part for part in parts if (part.device, part.device_id) == (parts[0].device, parts[0].device_id)]


def first_numbers(parts: Parts) -> np.ndarray:
    """Return the number of each payload's first sample, from 0: by TSMP if it is plausible, else by counting."""
    counts = np.array([part.count for _, part in parts], np.int64)
    counted = np.concatenate([[0], np.cumsum(counts)[:-1]])
    totals = [part.integer("TSMP") for _, part in parts]
    if any(total is None for total in totals):
        return counted
    before = np.array(totals, np.int64) - counts
    return before - before[0] if np.all(np.diff(before) >= counts[:-1]) else counted


def _timing(
    parts: list[tuple[int, StreamPart]],
    first_index: np.ndarray,
    payload_parts: list[list[StreamPart]],
    intervals: list[tuple[float, float]],
) -> tuple[float, float, str]:
    """Return (media time of sample 0, samples per second, method)."""
    stamps = [part.integer("STMP") for _, part in parts]
    fallback_hz = _rate_of_one(parts[0], intervals)
    if all(stamp is not None for stamp in stamps):
        us = np.array(stamps, np.int64)
        rate = _slope(first_index, (us - us[0]) / 1e6, fallback_hz)
        shutter_us = shutter_stamp_us(payload_parts)
        after_s = (int(us[0]) - shutter_us) / 1e6 if shutter_us is not None else 0.0
        return intervals[0][0] + after_s, rate, "stmp"
    start_s = intervals[parts[0][0]][0]
    ticks = [part.tick_ms for _, part in parts]
    if len(parts) > 1 and all(tick is not None for tick in ticks):
        ms = np.array(ticks, np.int64)
        return start_s, _slope(first_index, (ms - ms[0]) / 1e3, fallback_hz), "tick"
    complete = parts[:-1]  # the last payload is cut short, so its end time does not fit its samples
    if len(complete) < 2:
        return start_s, fallback_hz, "payload_times"
    ends_s = np.array([sum(intervals[number]) for number, _ in complete])
    totals = first_index[: len(complete)] + np.array([part.count for _, part in complete])
    period, fitted_start_s = np.polyfit(totals, ends_s, 1)
    if not period > 0:
        return start_s, fallback_hz, "payload_times"
    return float(fitted_start_s), float(1 / period), "payload_times"


def _rate_of_one(part: tuple[int, StreamPart], intervals: list[tuple[float, float]]) -> float:
    duration_s = intervals[part[0]][1]
    return part[1].count / duration_s if duration_s > 0 else 200.0


def _slope(index: np.ndarray, seconds: np.ndarray, fallback_hz: float) -> float:
    """Return samples per second by a line through (index, time) without outliers."""
    if len(index) < 2:
        return fallback_hz
    # One wrong timestamp tilts a least-squares line. The line that tells the outliers has the median of the
    # slopes over half the length.
    x, half = index.astype(np.float64), max(len(index) // 2, 1)
    slope_s = float(np.median((seconds[half:] - seconds[:-half]) / (x[half:] - x[:-half])))
    rest = seconds - slope_s * x
    sane = np.abs(rest - np.median(rest)) < WILD_S
    if sane.sum() < max(2, len(sane) / 2):
        sane[:] = True  # fewer than half are near the reference: all count
    period = float(np.polyfit(x[sane], seconds[sane], 1)[0])
    return 1 / period if np.isfinite(period) and period > 0 else fallback_hz


def shutter_stamp_us(payload_parts: list[list[StreamPart]]) -> int | None:
    """Return the camera-clock timestamp of the first frame, us: the first STMP of a stream with one value per frame.

    None for a camera without timestamps.
    """
    parts = picture_parts(payload_parts)
    return parts[0][1].integer("STMP") if parts and parts[0][0] == 0 else None


def picture_parts(payload_parts: list[list[StreamPart]]) -> Parts:
    """Return the stream with one value and timestamp per frame, SHUT or else CORI; empty without timestamps."""
    for key in ("SHUT", "CORI"):
        has_samples = any(
            part.key == key and part.count for payload in payload_parts for part in _first_device(payload)
        )
        parts = parts_of(payload_parts, key) if has_samples else []
        if parts and all(part.integer("STMP") is not None for _, part in parts):
            return parts
    return []


CANONICAL = "XYZ"

TO_IMAGE_AXES = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, -1.0, 0.0]])
"""(3, 3) from canonical GoPro axes (X left, Y out of the screen, Z up) to OpenCV's (x right, y down, z forward)."""
ORIN_OF_OLD_CAMERAS = {"camera": "ZXY", "fusion": "yXZ", "hero6 black": "YxZ", "hero7 black": "YxZ"}
"Axis of each channel by device name for files without ORIN; lower case = negated ('Camera' is HERO5)."
ORIN_DEFAULT = "ZXY"


@dataclass(frozen=True)
class ImuTrack:
    """Samples of one inertial sensor over a whole file."""

    t_s: np.ndarray
    "(n,) float64 media seconds; the first may be a few milliseconds before the first frame."
    xyz: np.ndarray
    "(n, 3) float32 in the camera's X (left), Y (out of the screen), Z (up), seen from behind."
    rate_hz: float
    "By regression over all payloads."
    unit: str
    method: str
    "Source of the times: stmp (microseconds), tick (ms) or payload_times."


def imu_track(
    payload_parts: list[list[StreamPart]], intervals: list[tuple[float, float]], key: str
) -> ImuTrack:
    """Join stream `key` of the camera over all payloads; `intervals` = their (start, duration) in media time.

    Times as in `sample_track`. Raises `BadGpmf` without such samples.
    """
    parts = parts_of(payload_parts, key)
    timing = find_timing(parts, payload_parts, intervals)
    stored = [part.samples()[:, :3] for _, part in parts]
    if any(block.shape[1:] != (3,) for block in stored):
        raise BadGpmf(f"{key} without three axes", parts[0][1].data[0].offset)
    k = sample_numbers(timing, stored)
    rotation = axes_matrix(parts[0][1])
    with np.errstate(all="ignore"):  # damaged data may have any float
        xyz = (np.concatenate(stored) @ rotation.T).astype(np.float32)
    unit = text(parts[0][1].meta["SIUN"]) if "SIUN" in parts[0][1].meta else ""
    return ImuTrack(timing.start_s + k / timing.rate_hz, xyz, timing.rate_hz, unit, timing.method)


def axes_matrix(part: StreamPart) -> np.ndarray:
    """Return the (3, 3) matrix from stored channels to canonical X Y Z, by ORIN, or MTRX with ORIO, or the model."""
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
    """Return the matrix for letters: letter i is the axis of channel i, lower case = negated."""
    matrix = np.zeros((3, 3))
    for channel, letter in enumerate(letters):
        matrix[CANONICAL.index(letter.upper()), channel] = 1.0 if letter.isupper() else -1.0
    return matrix


class Payload(NamedTuple):
    """One GPMF payload: about a second of telemetry."""

    start_s: float
    "Start of its interval on the media timeline."
    duration_s: float
    data: bytes


class Telemetry:
    """The streams of all payloads; subclasses provide `path` and `payloads`."""

    path: Path

    @property
    def payloads(self) -> list[Payload]:
        """All GPMF payloads in order; empty without a telemetry track."""
        raise NotImplementedError

    @cached_property
    def stream_parts(self) -> list[list[gpmf.StreamPart]]:
        """The parts of each payload. Raises `UnreadableMedia` with the number of a damaged payload."""
        parts = []
        for number, payload in enumerate(self.payloads, 1):
            try:
                parts.append(gpmf.read_streams(payload.data))
            except BadGpmf as error:
                raise UnreadableMedia(self.path, f"telemetry payload {number} is {error}") from error
        return parts

    @property
    def stream_names(self) -> list[str]:
        """Four-letter names of the streams with samples, in order of appearance."""
        return list(dict.fromkeys(part.key for parts in self.stream_parts for part in parts if part.count))

    @property
    def _intervals(self) -> list[tuple[float, float]]:
        return [(payload.start_s, payload.duration_s) for payload in self.payloads]

    def samples(self, key: str) -> SampleTrack:
        """Read any stream by its four letters (MAGN, CORI, IORI, GRAV, SHUT, SROT, MSKP, GPS5, ...)."""
        try:
            return sample_track(self.stream_parts, self._intervals, key)
        except BadGpmf as error:
            raise UnreadableMedia(self.path, str(error)) from error

    def gyroscope(self) -> ImuTrack:
        """Read the angular velocity: rad/s in the camera's X Y Z (left, out of the screen, up), on media time."""
        return self._imu("GYRO")

    def accelerometer(self) -> ImuTrack:
        """Read the specific force: m/s^2 in the camera's X Y Z (left, out of the screen, up), on media time."""
        return self._imu("ACCL")

    def _imu(self, key: str) -> ImuTrack:
        try:
            return imu_track(self.stream_parts, self._intervals, key)
        except BadGpmf as error:
            raise UnreadableMedia(self.path, str(error)) from error

    @property
    def frames_before(self) -> int | None:
        """Number of frames of the recording before this file, by TSMP; None if it is unknown."""
        for part in self.stream_parts[0] if self.stream_parts else ():
            total = part.integer("TSMP")
            if part.key in ("SHUT", "CORI") and total is not None:
                return max(total - part.count, 0)
        return None
