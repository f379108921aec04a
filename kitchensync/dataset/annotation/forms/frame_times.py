"""Frames of a film as annotation tools count them, from 1, and seconds; both ends belong to a region."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

MOST_FPS = 10_000
_DIGITS = 9
_MOST_PARTS = 1001
"""Rates are whole numbers, or thousandths of 1.001 (30000/1001): a float near one of them is that one."""


def span_s(start: int, end: int, fps: Fraction) -> tuple[float, float]:
    """Return [from, to) of a region in seconds, to a nanosecond."""
    return _seconds(Fraction(start - 1) / fps), _seconds(Fraction(end) / fps)


def _seconds(exact: Fraction) -> float:
    return float(round(exact, _DIGITS))


def region_of(start_s: float | Fraction, end_s: float | Fraction, fps: Fraction) -> tuple[int, int]:
    """Return the first and last frame of a span in seconds; a span made of a region gives the region again."""
    start = floor(_frames(start_s, fps)) + 1
    return start, max(start, ceil(_frames(end_s, fps)))


def _frames(at_s: float | Fraction, fps: Fraction) -> Fraction:
    """Return a time in frames; what is a whole frame but for the rounding of seconds is that frame."""
    exact = Fraction(at_s) * fps
    near = round(exact)
    return Fraction(near) if abs(exact - near) <= fps * Fraction(1, 10**_DIGITS) else exact


def rate_near(number: float) -> Fraction:
    """Return the exact rate that a float stands for: 29.97002997 is 30000/1001, 25.0 is 25."""
    return Fraction(number).limit_denominator(_MOST_PARTS)


def is_rate(number: float, fps: Fraction) -> bool:
    """Return whether a float stands for an exact rate."""
    return abs(Fraction(number) / fps - 1) < Fraction(1, 10**6)
