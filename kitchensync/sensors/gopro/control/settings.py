"""Settings of a camera for a recording, made in the order in which one setting allows the next, and its clock."""

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

ANTI_FLICKER, ASPECT, RESOLUTION, RATE, LENS, STABILISATION = 134, 108, 2, 3, 121, 135  # ids of Open GoPro
HINDSIGHT, POWER_DOWN, GPS = 167, 59, 83  # ids of Open GoPro
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
"Key of rig.toml -> (setting, {value: option})."
FIXED = ((ASPECT, 1), (STABILISATION, 0), (HINDSIGHT, 4), (POWER_DOWN, 0))
"""Settings of every recording: 16:9; no stabilisation, which crops and warps frames, so that they no longer match the
gyroscope; no Hindsight, whose time code is that of its arming; no automatic power down."""
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
    """The result of applying settings."""

    settings: dict[str, int] = field(default_factory=dict)
    "Options by setting id, as the camera reports them afterwards."
    problems: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    "Settings that this model lacks."


def wanted_options(settings: dict[str, Any] | None = None) -> dict[int, int]:
    """Convert settings of rig.toml (`resolution`, `fps`, `lens`, `anti_flicker`, `gps`) to options, in order.

    Raises ValueError with the name of an invalid setting.
    """
    options = dict(FIXED)
    for name, value in GoProSettings(**(settings or {})):
        setting, values = OPTIONS[name]
        options[setting] = values[value]
    return {setting: options[setting] for setting in ORDER}


def apply_settings(camera: GoProHttp, options: dict[int, int]) -> Applied:
    """Set the options that differ, one by one, then read all of them back; refused settings become problems.

    GPS that stays on is also a problem, since recordings are made in people's homes.
    """
    applied = Applied()
    before = camera.state().settings
    for setting, option in options.items():
        if str(setting) not in before:
            applied.absent.append(NAMES[setting])
        elif _integer(before[str(setting)]) != option:
            try:
                camera.set_setting(setting, option)
                camera.wait_idle()  # after each change it is busy for a moment and refuses everything
            except CameraRefused as error:
                applied.problems.append(f"{NAMES[setting]}: {error}")
    after = camera.state().settings
    for setting, option in options.items():
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
POLL_S = 0.005  # widens the interval that bounds the clock's offset
CATCH_LIMIT_S = 2.5  # two changes of the second come within 2 s
TICKS_WANTED = 2  # a slow answer makes one interval wide; the narrower one is used


@dataclass(frozen=True)
class ClockOffset:
    """Offset of the camera's local clock from this computer's UTC, at a moment of the capture clock."""

    host_ns: int
    offset_ns: int
    "Camera's local time read as UTC, minus this computer's UTC; it includes the time zone."
    error_ns: int
    "Error bound of the offset: half of the interval in which the camera's second changed."
    zone_minutes: int | None
    samples: int

    def as_dict(self) -> dict[str, Any]:
        """Return the offset for media.json."""
        return asdict(self)


def set_clock_now(camera: GoProHttp, zone_minutes: int) -> None:
    """Set the camera to this computer's local time, with a command that arrives when a second begins."""
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
    """Poll the camera's clock until its second changes between two requests; None if it does not change in time.

    Two changes are observed and the narrower interval is used. Works on models with `get_date_time` (HERO11 and
    later).
    """
    deadline_ns = host_ns() + int(limit_s * NS_PER_S)
    anchor = utc_anchor()
    best: ClockOffset | None = None
    last: tuple[int, CameraClock] | None = None
    changes = requests = 0
    while host_ns() < deadline_ns and changes < TICKS_WANTED:
        sent_ns = host_ns()
        try:
            clock = camera.get_clock()
        except SensorError:
            return best
        requests += 1
        if (
            last is not None
            and clock.local != last[1].local
            and clock.local - last[1].local <= timedelta(seconds=1)
        ):
            changes += 1
            offset = _offset(anchor, last[0], clock, requests)
            best = offset if best is None or offset.error_ns < best.error_ns else best
        last = (sent_ns, clock)
        wait(POLL_S)
    return best


def _offset(anchor: UtcAnchor, sent_ns: int, clock: CameraClock, samples: int) -> ClockOffset:
    """Return the offset for a second that began after the previous request was sent and before this answer came."""
    middle_ns = (sent_ns + clock.host_ns) // 2
    shown = clock.local.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    local_ns = (shown.days * 86400 + shown.seconds) * NS_PER_S
    utc_ns = anchor.utc_ns + middle_ns - anchor.host_ns
    error_ns = (clock.host_ns - sent_ns + 1) // 2
    return ClockOffset(middle_ns, local_ns - utc_ns, error_ns, clock.zone_minutes, samples)
