"""Control over Bluetooth alone: shutter, clock and settings, no files.

The tests put a radio of their own under the library's classes; it has never been tried on a real one. A camera
reached so keeps its files on the card: bring them home with `kitchensync gopro import`.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from sensors.errors import CameraRefused
from sensors.gopro.camera_types import CameraClock, CameraInfo, CameraState, MediaFile
from sensors.gopro.entry import CameraAddress
from sensors.gopro.library import COMMAND_LIMIT_S, SETTINGS, LibraryCamera, Loop, NoRadio, need_library
from sensors.host_clock import host_ns

OPEN_LIMIT_S = 60.0
NO_ADDRESS = "http://127.0.0.1:9"


class BleCamera(LibraryCamera):
    """One camera on Bluetooth, by the last four digits of its name; the same interface, without files."""

    def __init__(self, identity: str, timeout_s: float = 10.0, *, radio: type[Any] | None = None) -> None:
        """`radio` is a `BLEController` of the library to use instead of this computer's Bluetooth."""
        need_library(f"ble:{identity}")
        super().__init__(f"ble:{identity}", CameraAddress(NO_ADDRESS), timeout_s)
        self.base_url = self.url
        self._identity = identity
        self._radio = radio

    def open(self) -> None:
        """Scan, connect and pair; the library sets the camera's clock by itself while it does."""
        if self._sdk is not None:
            return
        from open_gopro import WirelessGoPro

        self._loop = Loop(self.base_url)
        sdk = WirelessGoPro(
            self._identity,
            interfaces={WirelessGoPro.Interface.BLE},
            maintain_state=False,
            cohn_db=Path(self._folder.name) / "cohn.json",
            wifi_adapter=NoRadio,
            **({"ble_adapter": self._radio} if self._radio is not None else {}),
        )
        self._call(sdk.open(), OPEN_LIMIT_S, "to open")
        self._sdk = sdk

    def info(self) -> CameraInfo:
        """Ask for model, firmware and serial number."""
        facts = self._command("get_hardware_info")
        return CameraInfo(facts.model_name, facts.firmware_version, facts.serial_number, {})

    def state(self) -> CameraState:
        """Ask for all statuses and settings."""
        self.open()
        statuses = self._command("get_camera_statuses")
        settings = self._command("get_camera_settings")
        return CameraState(_by_number(statuses), _by_number(settings), host_ns())

    def media(self) -> list[MediaFile]:
        """No files over Bluetooth: none are listed."""
        return []

    def get_clock(self) -> CameraClock:
        """Ask for the camera's clock (whole seconds)."""
        local: datetime = self._command("get_date_time")
        return CameraClock(local.replace(tzinfo=None, microsecond=0), None, False, host_ns())

    def set_clock(self, local: datetime, zone_minutes: int, summer_time: bool = False) -> None:
        """Set the clock."""
        self._command("set_date_time_tz_dst", date_time=local, tz_offset=zone_minutes, is_dst=summer_time)

    def set_setting(self, setting: int, option: int) -> None:
        """Set one setting."""
        self.open()
        from open_gopro.models.constants import settings as values

        if setting not in SETTINGS:
            raise CameraRefused(self.base_url, f"setting {setting}", 501, "not over Bluetooth")
        attribute, kind = SETTINGS[setting]
        work = getattr(self._sdk.ble_setting, attribute).set(getattr(values, kind)(option))
        if not self._call(work, COMMAND_LIMIT_S, f"setting {setting}").ok:
            raise CameraRefused(self.base_url, f"setting {setting}", 403)

    def keep_alive(self) -> None:
        """Keep the camera from falling asleep."""
        self.open()
        self._call(self._sdk.ble_setting.led.set(66), COMMAND_LIMIT_S, "keep_alive")

    def external_control(self) -> None:
        """Nothing to hand over on Bluetooth."""

    def _press(self, on: bool) -> None:
        self.open()
        from open_gopro.models import constants

        self._command("set_shutter", shutter=constants.Toggle.ENABLE if on else constants.Toggle.DISABLE)

    def _command(self, name: str, **arguments: Any) -> Any:
        self.open()
        answer = self._call(getattr(self._sdk.ble_command, name)(**arguments), COMMAND_LIMIT_S, name)
        if not answer.ok:
            raise CameraRefused(self.base_url, name, 500)
        return answer.data


def _by_number(values: dict[Any, Any]) -> dict[str, Any]:
    """Turn the library's names into numbers, as HTTP has them."""
    return {str(int(key.value)): getattr(value, "value", value) for key, value in values.items()}
