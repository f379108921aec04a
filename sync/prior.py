"""What the clocks say about a camera's start, before any motion is compared: pure.

A prior centres the search and is compared with its answer; it never narrows the search below what is safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sync.gyro import Prior

DAY_S = 86_400
LEAST_HALF_WIDTH_S = 6.0
SHUTTER_SIGMA_S = 0.15  # from the answered command to the first picture: 132 ms +- 20-40 ms, and the network
CREATION_SIGMA_S = 1.1  # whole seconds, and a clock set by a phone
ZONE_STEP_S = 900
TMCD_AGREES_S = 3.0


@dataclass(frozen=True, slots=True)
class Start:
    """One statement about the host time of a file's first picture."""

    source: str
    host_ns: int
    sigma_s: float
    note: str = ""


def start_from_shutter(shutter: dict[str, Any] | None, *, earlier_s: float) -> Start | None:
    """The shutter was pressed between `before` and `observed`; `earlier_s` is what earlier chapters lasted."""
    if not shutter:
        return None
    before, observed = int(shutter["before_host_ns"]), int(shutter["observed_host_ns"])
    middle = before + (observed - before) // 2 + round(earlier_s * 1e9)
    return Start("shutter", middle, SHUTTER_SIGMA_S + (observed - before) / 4e9)


def start_from_camera_clock(
    creation_time: str | None,
    tmcd_s: float | None,
    started: dict[str, int] | None,
    *,
    zone_offset_s: int,
    near_host_ns: int,
) -> Start | None:
    """The camera's own clock: `creation_time` is local time written as if UTC, `tmcd_s` seconds since its midnight.

    The zone is the one, in steps of 15 minutes, that brings it nearest to `near_host_ns`.
    """
    if creation_time is None or not started:
        return None
    try:
        local = datetime.fromisoformat(creation_time)
    except ValueError:
        return None
    local_s = local.replace(tzinfo=UTC).timestamp()
    local_s, reading = _with_timecode(local_s, tmcd_s)
    host_ns = _host_ns(local_s - zone_offset_s, started)
    away_s = (near_host_ns - host_ns) / 1e9
    steps = round(away_s / ZONE_STEP_S)
    note = f"tmcd {reading}" + (f", zone off by {steps * ZONE_STEP_S} s" if steps else "")
    if abs(steps) > DAY_S // ZONE_STEP_S:
        return Start("creation_time", host_ns, CREATION_SIGMA_S, f"tmcd {reading}, another day")
    return Start("creation_time", host_ns + steps * ZONE_STEP_S * 10**9, CREATION_SIGMA_S, note)


def prior_of(
    starts: list[Start], *, ticks_of_host: Any, epoch_ticks: int
) -> tuple[Prior | None, dict[str, Any]]:
    """The best statement as a prior, and all of them as evidence; `ticks_of_host` maps host ns to device ticks."""
    said: list[dict[str, Any]] = []
    for start in starts:
        since_s = (int(ticks_of_host(start.host_ns)) - epoch_ticks) / 1e7
        said.append(
            {"source": start.source, "prior_s": since_s, "sigma_s": start.sigma_s, "note": start.note}
        )
    if not said:
        return None, {"prior_s": None, "sigma_s": None, "source": "none", "statements": []}
    best = min(said, key=lambda one: one["sigma_s"])
    half_s = max(LEAST_HALF_WIDTH_S, 3.0 * best["sigma_s"])
    prior = Prior(best["prior_s"], best["sigma_s"], half_s, best["source"])
    return prior, {key: best[key] for key in ("prior_s", "sigma_s", "source")} | {"statements": said}


def _with_timecode(local_s: float, tmcd_s: float | None) -> tuple[float, str]:
    """Take the sub-second part from the time code where it agrees with the creation time."""
    if tmcd_s is None:
        return local_s, "absent"
    away = (tmcd_s - local_s + DAY_S / 2) % DAY_S - DAY_S / 2
    return (local_s + away, "frames") if abs(away) <= TMCD_AGREES_S else (local_s, "unusable")


def _host_ns(utc_s: float, started: dict[str, int]) -> int:
    return int(started["host_ns"]) + round(utc_s * 1e9) - int(started["utc_ns"])
