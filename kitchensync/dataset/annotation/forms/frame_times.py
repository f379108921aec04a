"""Convert regions of frames and seconds; frames count from 1 as in annotation tools, and both ends are inside."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

MOST_FPS = 10_000
_DIGITS = 9  # nanoseconds, the resolution of all stored times
_MOST_PARTS = 1001
"""Largest denominator of a rate: rates are whole numbers or fractions such as 30000/1001."""


def span_s(start: int, end: int, fps: Fraction) -> tuple[float, float]:
    """Return [from, to) of a region in seconds, to a nanosecond."""
    return _seconds(Fraction(start - 1) / fps), _seconds(Fraction(end) / fps)


def _seconds(exact: Fraction) -> float:
    return float(round(exact, _DIGITS))


def region_of(start_s: float | Fraction, end_s: float | Fraction, fps: Fraction) -> tuple[int, int]:
    """Return the first and last frame of a span in seconds, the inverse of `span_s`."""
    start = floor(_frames(start_s, fps)) + 1
    return start, max(start, ceil(_frames(end_s, fps)))


def _frames(at_s: float | Fraction, fps: Fraction) -> Fraction:
    """Return a time in frames; a whole frame within the rounding of seconds is returned exactly."""
    exact = Fraction(at_s) * fps
    near = round(exact)
    return Fraction(near) if abs(exact - near) <= fps * Fraction(1, 10**_DIGITS) else exact


def rate_near(number: float) -> Fraction:
    """Return the exact rate of a float: 29.97002997 is 30000/1001, 25.0 is 25."""
    return Fraction(number).limit_denominator(_MOST_PARTS)


def is_rate(number: float, fps: Fraction) -> bool:
    """Return whether a float is an exact rate, within 1e-6."""
    return abs(Fraction(number) / fps - 1) < Fraction(1, 10**6)
