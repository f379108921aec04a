"""What a camera is set to before a recording, in the order in which one setting allows the next, and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from sensors.errors import CameraRefused
from sensors.gopro.camera import GoProHttp

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
