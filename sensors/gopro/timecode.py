"""The camera's time code: frames since local midnight, and how players print them."""

from __future__ import annotations

from fractions import Fraction

from sensors.gopro.boxes import TimecodeFormat


def wall_seconds(frames: int, timecode: TimecodeFormat) -> Fraction:
    """Seconds from local midnight, exact: frames x frame duration, whatever the printed time code says."""
    return Fraction(frames * timecode.frame_duration, timecode.timescale)


def printed(frames: int, timecode: TimecodeFormat) -> str:
    """Print as players do: hh:mm:ss:ff, with `;` before the frames where numbers are dropped to follow the clock.

    Drop frame (SMPTE 12M): numbers 0 and 1 (0 to 3 at 60) are left out at each minute that is no tenth.
    Not so dropped, 29.97 frames a second printed as 30 run 0.1 % slow, up to 86 s before midnight.
    """
    nominal = max(1, round(timecode.timescale / timecode.frame_duration))
    sign = ":"
    if timecode.drop_frame and nominal % 30 == 0:
        dropped = nominal // 15
        per_ten = 600 * nominal - 9 * dropped
        per_minute = 60 * nominal - dropped
        tens, rest = divmod(frames, per_ten)
        frames += 9 * dropped * tens
        if rest >= 60 * nominal:
            frames += dropped * ((rest - 60 * nominal) // per_minute + 1)
        sign = ";"
    seconds, frame = divmod(frames, nominal)
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{sign}{frame:02}"


def wall_clock(seconds: float) -> str:
    """Print seconds since midnight as hh:mm:ss.mmm."""
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000 % 24:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"
