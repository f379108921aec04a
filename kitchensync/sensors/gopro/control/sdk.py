"""Control through the camera maker's library (`open_gopro`): over USB, and at home over TLS.

The library polls the state before nearly every command. So while a camera records, only the shutter goes through it:
requests for state and keep-alive use plain HTTP at the same address.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from kitchensync.sensors.errors import CameraLost, CameraRefused
from kitchensync.sensors.gopro.control.entry import CameraAddress
from kitchensync.sensors.gopro.control.library import (
    COMMAND_LIMIT_S,
    SETTINGS,
    LibraryCamera,
    Loop,
    NoRadio,
    need_library,
)

OPEN_LIMIT_S = 20.0  # on a camera that already records `open` never returns
POLL_S = 0.2  # the library's default of 2 s delays each command by up to as much


class SdkCamera(LibraryCamera):
    """One camera whose commands go through the library; requests for state and files use plain HTTP."""

    def __init__(
        self, url: str, entry: CameraAddress, make: Callable[[Path], Any], timeout_s: float = 5.0
    ) -> None:
        """`make` returns the library's object; its argument is a folder for the library's database."""
        super().__init__(url, entry, timeout_s)
        self._make = make

    def open(self) -> None:
        """Open the library's session."""
        if self._sdk is not None:
            return
        state = self.state()  # over plain HTTP, as the library would try five times to reach an absent camera
        if state.encoding:
            super()._press(False)  # the library's `open` would wait until the camera stops recording
        if not state.ready:
            self.wait_idle()
        try:
            self._loop = Loop(f"gopro {self.url}")
            self._sdk = self._make(Path(self._folder.name))
            self._call(self._sdk.open(), OPEN_LIMIT_S, "to open")
        except CameraLost:
            self._sdk = None
            raise

    def set_setting(self, setting: int, option: int) -> None:
        """Set one setting through the library, or over plain HTTP if the library does not know it."""
        self.open()
        if setting not in SETTINGS:
            super().set_setting(setting, option)
            return
        from open_gopro.models.constants import settings as values

        attribute, kind = SETTINGS[setting]
        try:
            value = getattr(values, kind)(option)
        except ValueError:
            super().set_setting(setting, option)
            return
        answer = self._call(
            getattr(self._sdk.http_setting, attribute).set(value), COMMAND_LIMIT_S, f"setting {setting}"
        )
        self._need_ok(answer, f"setting {setting}")

    def set_clock(self, local: datetime, zone_minutes: int, summer_time: bool = False) -> None:
        """Set the clock through the library."""
        self.open()
        work = self._sdk.http_command.set_date_time(
            date_time=local, tz_offset=zone_minutes, is_dst=summer_time
        )
        self._need_ok(self._call(work, COMMAND_LIMIT_S, "set_date_time"), "set_date_time")

    def external_control(self) -> None:
        """Announce external control to the camera, and switch off its fast transfer mode."""
        self.open()
        from open_gopro.models import constants

        command = self._sdk.http_command
        self._call(command.set_turbo_mode(mode=constants.Toggle.DISABLE), COMMAND_LIMIT_S, "turbo_transfer")
        from open_gopro.models.proto import EnumCameraControlStatus

        control = EnumCameraControlStatus.CAMERA_EXTERNAL_CONTROL
        self._call(command.set_camera_control(mode=control), COMMAND_LIMIT_S, "set_ui_controller")

    def _press(self, on: bool) -> None:
        self.open()
        from open_gopro.models import constants

        shutter = constants.Toggle.ENABLE if on else constants.Toggle.DISABLE
        work = self._sdk.http_command.set_shutter(shutter=shutter)
        self._need_ok(self._call(work, COMMAND_LIMIT_S, "the shutter"), "the shutter")

    def _need_ok(self, answer: Any, command: str) -> None:
        if answer.ok:
            return
        data = answer.data if isinstance(answer.data, dict) else {}
        offered = [str(option.get("display_name", option)) for option in data.get("supported_options", [])]
        status = 403 if offered or "error" in data else 500
        raise CameraRefused(self.url, command, status, f"it offers {', '.join(offered)}" if offered else "")


def wired(serial: str, base_url: str | None = None, timeout_s: float = 5.0) -> SdkCamera:
    """Return a camera on USB by its serial number (the last three digits suffice), or at another address."""
    url = f"usb:{serial}"
    digits = serial[-3:]
    if len(digits) != 3 or not digits.isdigit():
        raise CameraLost(url, "not a serial number; its last three characters must be digits")
    address = (base_url or f"http://172.2{digits[0]}.1{digits[1:]}.51:8080").rstrip("/")
    need_library(url)

    def make(_: Path) -> Any:
        return _wired_class()(serial, address, poll_period=POLL_S)

    return SdkCamera(url, CameraAddress(address), make, timeout_s)


def _wired_class() -> Any:
    """Return a subclass of the library's wired camera that uses no proxy, at any address."""
    import requests
    from open_gopro import WiredGoPro

    class Wired(WiredGoPro):  # type: ignore[misc]
        def __init__(self, serial: str, address: str, **options: Any) -> None:
            self._address = address
            super().__init__(serial, **options)

        @property
        def ip_address(self) -> str:
            return self._address.partition("://")[2].partition(":")[0]

        @property
        def _base_url(self) -> str:
            return self._address + "/"

        @property
        def _requests_session(self) -> requests.Session:
            session = requests.Session()
            session.trust_env = False
            return session

    return Wired


def at_home(name: str, entry: CameraAddress, timeout_s: float = 5.0) -> SdkCamera:
    """Return a camera on the home network (COHN): TLS with its own certificate, name and password."""
    need_library(f"cohn:{name}")

    def make(folder: Path) -> Any:
        from open_gopro import WirelessGoPro
        from open_gopro.models import CohnInfo

        credentials = CohnInfo(
            ip_address=entry.base_url.partition("://")[2],
            username=entry.username,
            password=entry.password,
            certificate=entry.certificate,
        )
        return WirelessGoPro(
            target=name,
            interfaces={WirelessGoPro.Interface.COHN},
            ble_adapter=NoRadio,
            wifi_adapter=NoRadio,
            maintain_state=False,
            cohn_db=folder / "cohn.json",
            cohn_credentials=credentials,
        )

    return SdkCamera(f"cohn:{name}", entry, make, timeout_s)
