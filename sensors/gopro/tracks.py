"""Telemetry over a whole file or recording: the samples of one stream and when each was taken, in media time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sensors.errors import BadGpmf
from sensors.gopro.gpmf import StreamPart, text

WILD_S = 0.1  # real stamps lie within 1 ms of their line, those of whole milliseconds within some
Parts = list[tuple[int, StreamPart]]
"(number of the payload, what it holds of the stream)"


@dataclass(frozen=True)
class SampleTrack:
    """All samples of one stream: values as stored, divided by SCAL."""

    t_s: np.ndarray
    "(n,) float64 media seconds; the first may lie some milliseconds before the first picture."
    values: np.ndarray
    "(n, fields) float64, in stored order; text fields are NaN."
    rate_hz: float
    "By regression over all payloads."
    unit: str
    method: str
    "How times were found: stmp (microseconds), tick (ms) or payload_times."


@dataclass(frozen=True)
class Timing:
    """The line from sample numbers to media time."""

    start_s: float
    rate_hz: float
    method: str
    first_index: np.ndarray
    "(payloads,) number of each payload's first sample, the file's first being 0."


def sample_track(
    payload_parts: list[list[StreamPart]], intervals: list[tuple[float, float]], key: str
) -> SampleTrack:
    """Join stream `key` of the camera over all payloads; `intervals` = their (start, duration) in media time.

    With STMP: t(k) = (STMP_key,first - STMP_SHUT,first) / 1e6 + k / rate, rate from a line through all stamps,
    k counted by TSMP where it is there, so that a lost payload leaves a hole and not a shift. Without: TICK,
    else a line through the payloads' end times. Raises `BadGpmf` when the file has no such samples.
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
    """Return what the camera itself (no device beside it) tells of a stream; `BadGpmf` when nothing."""
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
    """Find when the samples of a stream were taken."""
    first_index = _first_indices([part for _, part in parts])
    return Timing(*_timing(parts, first_index, payload_parts, intervals), first_index)


def sample_numbers(timing: Timing, blocks: list[np.ndarray]) -> np.ndarray:
    """Return the number of every sample, holes counted."""
    ranges = [first + np.arange(len(block)) for first, block in zip(timing.first_index, blocks, strict=True)]
    return np.concatenate(ranges)


def _first_device(parts: list[StreamPart]) -> list[StreamPart]:
    return [part for part in parts if (part.device, part.device_id) == (parts[0].device, parts[0].device_id)]


def _first_indices(parts: list[StreamPart]) -> np.ndarray:
    """Number of each payload's first sample, the file's first being 0: by TSMP if it is sane, else by counting."""
    counts = np.array([part.count for part in parts], np.int64)
    counted = np.concatenate([[0], np.cumsum(counts)[:-1]])
    totals = [part.integer("TSMP") for part in parts]
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
    """Find (media time of sample 0, samples a second, method)."""
    stamps = [part.integer("STMP") for _, part in parts]
    fallback_hz = _rate_of_one(parts[0], intervals)
    if all(stamp is not None for stamp in stamps):
        us = np.array(stamps, np.int64)
        rate = _slope(first_index, (us - us[0]) / 1e6, fallback_hz)
        return (int(us[0]) - _first_frame_us(payload_parts, int(us[0]))) / 1e6, rate, "stmp"
    begin_s = intervals[parts[0][0]][0]
    ticks = [part.tick_ms for _, part in parts]
    if len(parts) > 1 and all(tick is not None for tick in ticks):
        ms = np.array(ticks, np.int64)
        return begin_s, _slope(first_index, (ms - ms[0]) / 1e3, fallback_hz), "tick"
    whole = parts[:-1]  # the last payload is cut short: its end says nothing
    if len(whole) < 2:
        return begin_s, fallback_hz, "payload_times"
    ends_s = np.array([sum(intervals[number]) for number, _ in whole])
    totals = first_index[: len(whole)] + np.array([part.count for _, part in whole])
    period, start_s = np.polyfit(totals, ends_s, 1)
    if not period > 0:
        return begin_s, fallback_hz, "payload_times"
    return float(start_s), float(1 / period), "payload_times"


def _rate_of_one(part: tuple[int, StreamPart], intervals: list[tuple[float, float]]) -> float:
    duration_s = intervals[part[0]][1]
    return part[1].count / duration_s if duration_s > 0 else 200.0


def _slope(index: np.ndarray, seconds: np.ndarray, fallback_hz: float) -> float:
    """Samples a second by a line through (index, time), leaving out stamps that no camera can mean."""
    if len(index) < 2:
        return fallback_hz
    sane = _sane(index.astype(np.float64), seconds)
    period = float(np.polyfit(index[sane].astype(np.float64), seconds[sane], 1)[0])
    return 1 / period if np.isfinite(period) and period > 0 else fallback_hz


def _sane(index: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Mark the stamps near the line that most lie on: a single wrong one would tilt a line of least squares.

    That line has the median of the slopes over half the length; where fewer than half lie on it all count.
    """
    half = max(len(index) // 2, 1)
    period = float(np.median((seconds[half:] - seconds[:-half]) / (index[half:] - index[:-half])))
    rest = seconds - period * index
    sane: np.ndarray = np.abs(rest - np.median(rest)) < WILD_S
    return sane if sane.sum() >= max(2, len(sane) / 2) else np.ones(len(sane), bool)


def _first_frame_us(payload_parts: list[list[StreamPart]], otherwise: int) -> int:
    """Camera-clock stamp of the file's first picture: the first STMP of a per-frame stream."""
    for key in ("SHUT", "CORI"):
        for part in payload_parts[0]:
            stamp = part.integer("STMP")
            if part.key == key and stamp is not None:
                return stamp
    return otherwise
