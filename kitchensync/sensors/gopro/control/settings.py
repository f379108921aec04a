"""What a camera is set to before a recording, in the order in which one setting allows the next, and checked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from kitchensync.sensors.errors import CameraRefused, SensorError
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.camera_types import CameraClock
from kitchensync.shell.host_clock import UtcAnchor, host_ns, utc_anchor

ANTI_FLICKER, ASPECT, RESOLUTION, RATE, LENS, STABILISATION = 134, 108, 2, 3, 121, 135
HINDSIGHT, POWER_DOWN, GPS = 167, 59, 83
NAMES = {
    ANTI_FLICKER: "anti-flicker",
    ASPECT: "aspect",
    RESOLUTION: "resolution",
    RATE: "frames a second",
    LENS: "lens",
    STABILISATION: "stabilisation",
    HINDSIGHT: "hindsight",
    POWER_DOWN: "power down",
    GPS: "GPS",
}
OPTIONS: dict[str, tuple[int, dict[Any, int]]] = {
    "anti_flicker": (ANTI_FLICKER, {"60Hz": 2, "50Hz": 3, "NTSC": 0, "PAL": 1}),
    "resolution": (RESOLUTION, {"4K": 1, "5.3K": 100, "2.7K": 4, "1080": 9}),
    "fps": (RATE, {24: 10, 25: 9, 30: 8, 50: 6, 60: 5, 120: 1}),
    "lens": (LENS, {"wide": 0, "linear": 4, "narrow": 2, "superview": 3}),
    "gps": (GPS, {False: 0, True: 1}),
}
"Words of rig.toml -> (setting, {word: option})."
FIXED = ((ASPECT, 1), (STABILISATION, 0), (HINDSIGHT, 4), (POWER_DOWN, 0))
"""16:9; no stabilisation, which crops and warps and so breaks the tie between picture and gyroscope; no Hindsight,
whose time code says when it was armed; never asleep."""
ORDER = (ANTI_FLICKER, ASPECT, RESOLUTION, RATE, LENS, STABILISATION, HINDSIGHT, POWER_DOWN, GPS)


class GoProSettings(BaseModel):
    """What rig.toml may say about the cameras below [camera]. Raises pydantic's ValidationError."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    anti_flicker: Literal["60Hz", "50Hz", "NTSC", "PAL"] = "60Hz"
    resolution: Literal["4K", "5.3K", "2.7K", "1080"] = "4K"
    fps: Literal[24, 25, 30, 50, 60, 120] = 30
    lens: Literal["wide", "linear", "narrow", "superview"] = "wide"
    gps: bool = False
    "Recordings are made in people's homes: off unless asked for."


@dataclass
class Applied:
    """What the camera made of what was wanted."""

    settings: dict[str, int] = field(default_factory=dict)
    "By setting id, as the camera says afterwards."
    problems: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    "Settings that this model does not have."


def wanted_options(words: dict[str, Any] | None = None) -> dict[int, int]:
    """Turn words (`resolution`, `fps`, `lens`, `anti_flicker`, `gps`) into options by setting, in order.

    Raises ValueError naming the word that no camera knows.
    """
    options = dict(FIXED)
    for word, value in GoProSettings(**(words or {})):
        setting, known = OPTIONS[word]
        options[setting] = known[value]
    return {setting: options[setting] for setting in ORDER}


def apply_settings(camera: GoProHttp, wanted: dict[int, int]) -> Applied:
    """Set what differs, one by one, then read everything back; a refusal is noted, the rest goes on.

    GPS that stays on is a problem like any other: recordings are made in people's homes.
    """
    applied = Applied()
    before = camera.state().settings
    for setting, option in wanted.items():
        if str(setting) not in before:
            applied.absent.append(NAMES[setting])
        elif _integer(before[str(setting)]) != option:
            try:
                camera.set_setting(setting, option)
                camera.wait_idle()  # busy for a moment after each change, and refuses everything meanwhile
            except CameraRefused as error:
                applied.problems.append(f"{NAMES[setting]}: {error}")
    after = camera.state().settings
    for setting, option in wanted.items():
        value = _integer(after.get(str(setting)))
        if value is not None and value != option:
            applied.problems.append(f"{NAMES[setting]} is {value} instead of {option}")
    applied.settings = {
        key: number for key, value in after.items() if (number := _integer(value)) is not None
    }
    return applied


def _integer(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


NS_PER_S = 1_000_000_000
POLL_S = 0.005
CATCH_LIMIT_S = 2.5
TICKS_WANTED = 2


@dataclass(frozen=True)
class ClockOffset:
    """The camera's local clock against this computer's UTC, at a moment of the capture clock."""

    host_ns: int
    offset_ns: int
    "Camera's local time as if it were UTC, minus this computer's UTC: the zone is in it."
    error_ns: int
    "Half of the interval in which the camera's second turned: the offset is right to this."
    zone_minutes: int | None
    samples: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as media.json holds it."""
        return asdict(self)


def set_clock_now(camera: GoProHttp, zone_minutes: int) -> None:
    """Set the camera to this computer's local time, sent so that it arrives at the turn of a second."""
    begin_ns = host_ns()
    camera.get_clock()
    one_way_ns = (host_ns() - begin_ns) // 2
    anchor = utc_anchor()
    now_ns = anchor.utc_ns
    wait_ns = (NS_PER_S - (now_ns + one_way_ns) % NS_PER_S) % NS_PER_S
    time.sleep(wait_ns / NS_PER_S)
    utc_s = round((now_ns + wait_ns + one_way_ns) / NS_PER_S)
    local = datetime.fromtimestamp(utc_s, UTC).replace(tzinfo=None)
    camera.set_clock(local + timedelta(minutes=zone_minutes), zone_minutes)


def measure_clock(
    camera: GoProHttp, limit_s: float = CATCH_LIMIT_S, wait: Callable[[float], None] = time.sleep
) -> ClockOffset | None:
    """Ask again and again until the second turns; the turn lies between two questions. None when it never did.

    Two turns are caught and the narrower interval kept. Works on models that answer `get_date_time` (HERO11 on).
    """
    deadline_ns = host_ns() + int(limit_s * NS_PER_S)
    anchor = utc_anchor()
    best: ClockOffset | None = None
    last: tuple[int, CameraClock] | None = None
    caught = asked = 0
    while host_ns() < deadline_ns and caught < TICKS_WANTED:
        sent_ns = host_ns()
        try:
            clock = camera.get_clock()
        except SensorError:
            return best
        asked += 1
        if (
            last is not None
            and clock.local != last[1].local
            and clock.local - last[1].local <= timedelta(seconds=1)
        ):
            caught += 1
            found = _offset(anchor, last[0], clock, asked)
            best = found if best is None or found.error_ns < best.error_ns else best
        last = (sent_ns, clock)
        wait(POLL_S)
    return best


def _offset(anchor: UtcAnchor, asked_ns: int, clock: CameraClock, samples: int) -> ClockOffset:
    """The new second began after the last question before it was sent, and before its own answer came."""
    middle_ns = (asked_ns + clock.host_ns) // 2
    shown = clock.local.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    local_ns = (shown.days * 86400 + shown.seconds) * NS_PER_S
    utc_ns = anchor.utc_ns + middle_ns - anchor.host_ns
    error_ns = (clock.host_ns - asked_ns + 1) // 2
    return ClockOffset(middle_ns, local_ns - utc_ns, error_ns, clock.zone_minutes, samples)
