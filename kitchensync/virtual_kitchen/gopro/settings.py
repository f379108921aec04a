"""Settings and presets of the virtual GoPro, with the ids and values of the public camera API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# setting id -> {option id: name}; the first option is the default.
OPTIONS: dict[int, dict[int, str]] = {
    2: {1: "4K", 100: "5.3K", 4: "2.7K", 9: "1080"},
    3: {8: "30"},
    59: {0: "Never", 1: "1 Min", 4: "5 Min", 6: "15 Min", 7: "30 Min"},
    83: {1: "On", 0: "Off"},
    91: {2: "All On", 3: "All Off", 4: "Front Off Only"},
    108: {1: "16:9"},
    121: {0: "Wide", 4: "Linear"},
    134: {2: "60Hz", 0: "NTSC"},
    135: {1: "Low", 0: "Off"},
    167: {4: "Off", 2: "15 Seconds"},
    175: {1: "Pro", 0: "Easy"},
    182: {0: "Standard", 1: "High"},
    183: {0: "8-Bit"},
    184: {0: "Standard"},
}
NO_GPS_MODELS = ("HERO12 Black",)
SETTING_UNKNOWN, OPTION_UNAVAILABLE = 2, 3  # error codes in a camera's answer 403


@dataclass
class Settings:
    """The current values; refusals are the bodies of the camera's 403 replies."""

    model_name: str
    values: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set every setting of the model to its first option."""
        hidden = {83} if self.model_name in NO_GPS_MODELS else set()
        self.values = {key: next(iter(options)) for key, options in OPTIONS.items() if key not in hidden}

    def refusal(self, setting: int, option: int) -> dict[str, Any] | None:
        """Return the body of the refusal of a value, or None if it can be set."""
        supported = OPTIONS[setting] if setting in self.values else {}
        if option in supported:
            return None
        return {
            "error": OPTION_UNAVAILABLE if supported else SETTING_UNKNOWN,
            "setting_id": setting,
            "option_id": option,
            "supported_options": [{"display_name": name, "id": number} for number, name in supported.items()],
        }

    def as_status(self) -> dict[str, int]:
        """Return the values with the keys of the state reply."""
        return {str(key): value for key, value in sorted(self.values.items())}

    def presets(self) -> dict[str, Any]:
        """Return the reply of presets/get: one video preset."""
        array = [
            {"id": key, "value": value, "isCaption": key in (2, 3, 121)} for key, value in self.values.items()
        ]
        preset = {
            "id": 0, "mode": "FLAT_MODE_VIDEO", "titleId": "PRESET_TITLE_STANDARD", "icon": "PRESET_ICON_VIDEO",
            "isModified": False, "isFixed": False, "userDefined": False, "settingArray": array,
        }  # fmt: skip
        group = {
            "id": "PRESET_GROUP_ID_VIDEO", "canAddPreset": False, "icon": "PRESET_GROUP_VIDEO_ICON_ID",
            "presetArray": [preset], "modeArray": ["FLAT_MODE_VIDEO"],
        }  # fmt: skip
        return {"presetGroupArray": [group], "customIconIds": [], "customTitleIds": []}
