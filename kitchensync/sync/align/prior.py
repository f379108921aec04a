"""The start of a camera by clocks, before motion is compared. Pure functions.

A prior centres the search and is compared with its result; it never narrows the search below a safe width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kitchensync.storage.timeline.alignment_evidence import ClockEvidence, ClockStatement
from kitchensync.storage.timeline.utc_times import UtcTimes

DAY_S = 86_400
LEAST_HALF_WIDTH_S = 6.0
SHUTTER_SIGMA_S = 0.15  # from the answered command to the first picture: 132 ms +- 20-40 ms, and the network
CREATION_SIGMA_S = 1.1  # whole seconds, and a clock set by a phone
ZONE_STEP_S = 900  # all time zones are multiples of a quarter of an hour
MOST_ZONE_S = 26 * 3600  # from UTC-12 to UTC+14
ZONE_AGREES_S = 60.0  # maximum difference to a whole zone step of a correct clock
TMCD_AGREES_S = 3.0  # in real files the right reading was within 1.1 s, the wrong one 57 s and more off


@dataclass(frozen=True, slots=True)
class Prior:
    """Estimate by clocks: media time 0 is tick `epoch_ticks + 1e7 tau0_s`, searched within the half width."""

    tau0_s: float
    sigma_s: float
    half_width_s: float
    source: str


@dataclass(frozen=True, slots=True)
class StatedStart:
    """One statement about the host time of a file's first picture.

    `serves`: whether it may centre a search; `warning` describes a problem of its clock.
    """

    source: str
    host_ns: int
    sigma_s: float
    note: str = ""
    serves: bool = True
    warning: str = ""
    tmcd: str = ""


@dataclass(frozen=True, slots=True)
class StatedCameraClock:
    """The camera's own clock at the first picture, from its file.

    `creation_time` is local time written as if UTC, on newer cameras UTC, whole seconds. The time code counts frames
    from local midnight: `frames_s` is their number times the length of a frame, `label_s` is the displayed time
    (hh:mm:ss:ff) read as a clock.
    """

    creation_time: str | None
    frames_s: float | None = None
    label_s: float | None = None


def start_from_shutter(shutter: Mapping[str, Any] | None, *, earlier_s: float) -> StatedStart | None:
    """Return the start by `before` and `observed` of the shutter; `earlier_s`: length of earlier chapters."""
    if not shutter:
        return None
    before, observed = int(shutter["before_host_ns"]), int(shutter["observed_host_ns"])
    middle = before + (observed - before) // 2 + round(earlier_s * 1e9)
    return StatedStart("shutter", middle, SHUTTER_SIGMA_S + (observed - before) / 4e9)


def start_from_camera_clock(
    clock: StatedCameraClock,
    utc: UtcTimes | None,
    *,
    zone_offset_s: int,
    pressed_host_ns: int | None = None,
    stopped_host_ns: int | None = None,
    seconds: float = 0.0,
) -> StatedStart | None:
    """Return the start by the camera's own clock, in the fitting time zone.

    With the shutter known (`pressed_host_ns`) any whole step of 15 minutes is tried. Without it a file of `seconds`
    has to overlap the recording, up to `stopped_host_ns`; if it does not, whole hours are tried, and used if only one
    fits. A clock that is wrong in another way, or on another day, has a warning and is not used.
    """
    if clock.creation_time is None or utc is None:
        return None
    try:
        local = datetime.fromisoformat(clock.creation_time)
    except ValueError:
        return None
    written_s = local.replace(tzinfo=UTC).timestamp()
    local_s, reading = _with_timecode(written_s, clock)
    utc_s = local_s - (0 if _is_utc(written_s, clock, zone_offset_s) else zone_offset_s)
    first_ns = int(utc.host_ns[0])
    # The camera may have the computer's time of before or after a step.
    near_ns = first_ns if pressed_host_ns is None else pressed_host_ns
    host_ns = min(utc.host_times(round(utc_s * 1e9)), key=lambda at_ns: abs(at_ns - near_ns))
    if pressed_host_ns is not None:
        shift_s, trouble = _shift_to_press((pressed_host_ns - host_ns) / 1e9)
    else:
        last_ns = stopped_host_ns if stopped_host_ns is not None else first_ns + DAY_S * 10**9 // 2
        away = (first_ns - host_ns) / 1e9, (last_ns - host_ns) / 1e9
        shift_s, trouble = _shift_into_span(away, seconds)
    note = f"tmcd {reading}" + (f", zone off by {shift_s} s" if shift_s else "")
    warning = f"the camera's clock said {local:%Y-%m-%d %H:%M:%S}: {trouble}" if trouble else ""
    if shift_s and not trouble:
        way = "slow" if shift_s > 0 else "fast"
        hours = f"{abs(shift_s) / 3600:g} h {way}"
        warning = f"the camera's clock was {hours}: another time zone, or summer time not set"
    at_ns = host_ns + (shift_s or 0) * 10**9
    return StatedStart("creation_time", at_ns, CREATION_SIGMA_S, note, not trouble, warning, reading)


def _shift_to_press(away_s: float) -> tuple[int, str]:
    """Return the whole zone steps from the camera's clock to the shutter, or a problem."""
    shift_s = round(away_s / ZONE_STEP_S) * ZONE_STEP_S
    if abs(shift_s) > MOST_ZONE_S:
        return 0, _other_day(away_s)
    if abs(away_s - shift_s) > ZONE_AGREES_S:
        return 0, f"{abs(away_s):.0f} s {'slow' if away_s > 0 else 'fast'} by the shutter"
    return shift_s, ""


def _shift_into_span(away_s: tuple[float, float], seconds: float) -> tuple[int, str]:
    """Return whole hours to shift a file of `seconds` into the recording at `away_s` (start, end), or a problem."""

    def overlaps(shift_s: int) -> bool:
        first, last = away_s
        return shift_s + seconds > first - ZONE_AGREES_S and shift_s < last + ZONE_AGREES_S

    if overlaps(0):
        return 0, ""
    hours = range(-MOST_ZONE_S // 3600, MOST_ZONE_S // 3600 + 1)
    fitting_s = [3600 * hour for hour in hours if overlaps(3600 * hour)]
    if len(fitting_s) == 1:
        return fitting_s[0], ""
    if fitting_s:
        return 0, f"not during the recording, and {len(fitting_s)} zones would fit"
    return 0, _other_day(away_s[0])


def _other_day(away_s: float) -> str:
    days = abs(away_s) / DAY_S
    if days < 2:
        return "not during the recording"
    return f"{days:.0f} days {'before' if away_s > 0 else 'after'} the recording; it was probably reset, set it again"


def prior_of(
    starts: list[StatedStart], *, ticks_of_host: Any, epoch_ticks: int
) -> tuple[Prior | None, ClockEvidence]:
    """Return the best statement as a prior, and all as evidence; `ticks_of_host` maps host ns to device ticks."""
    statements = tuple(
        ClockStatement(
            source=start.source,
            prior_s=(int(ticks_of_host(start.host_ns)) - epoch_ticks) / 1e7,
            sigma_s=start.sigma_s,
            note=start.note,
            serves=start.serves,
        )
        for start in starts
    )
    reading = next((start.tmcd for start in starts if start.tmcd), None)
    evidence = ClockEvidence(tmcd_reading=reading, statements=statements)
    serving = [start for start in starts if start.serves]
    if not serving:
        return None, evidence
    best = min(serving, key=lambda start: start.sigma_s)
    prior_s = (int(ticks_of_host(best.host_ns)) - epoch_ticks) / 1e7
    prior = Prior(prior_s, best.sigma_s, max(LEAST_HALF_WIDTH_S, 3.0 * best.sigma_s), best.source)
    return prior, replace(evidence, prior_s=prior_s, sigma_s=best.sigma_s, source=best.source)


def _with_timecode(local_s: float, clock: StatedCameraClock) -> tuple[float, str]:
    """Add the sub-second part of the time code reading that is nearer to the creation time.

    Whole zone steps between them are ignored: newer cameras write one in UTC and the other in local time.
    """
    readings = {"frames": clock.frames_s, "label": clock.label_s}
    rests = {
        name: (tmcd_s - local_s + ZONE_STEP_S / 2) % ZONE_STEP_S - ZONE_STEP_S / 2
        for name, tmcd_s in readings.items()
        if tmcd_s is not None
    }
    if not rests:
        return local_s, "absent"
    name, rest = min(rests.items(), key=lambda item: abs(item[1]))
    return (local_s + rest, name) if abs(rest) <= TMCD_AGREES_S else (local_s, "unusable")


def _is_utc(written_s: float, clock: StatedCameraClock, zone_offset_s: int) -> bool:
    """Return whether the creation time is UTC: the local time code is ahead of it by the time zone."""
    ahead = [tmcd_s - written_s for tmcd_s in (clock.frames_s, clock.label_s) if tmcd_s is not None]
    away = [(by_s - zone_offset_s + DAY_S / 2) % DAY_S - DAY_S / 2 for by_s in ahead]
    return zone_offset_s != 0 and any(abs(by_s) <= TMCD_AGREES_S for by_s in away)
