"""Cameras through the maker's library (`open_gopro`): its thread and time limits; and cameras on Bluetooth."""

from __future__ import annotations

import asyncio
import gc
import logging
import tempfile
import threading
import warnings
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from datetime import datetime
from pathlib import Path
from typing import Any

from kitchensync.sensors.errors import CameraLost, CameraRefused, SdkMissing
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.camera_types import CameraClock, CameraInfo, CameraState, MediaFile
from kitchensync.sensors.gopro.control.entry import CameraAddress
from kitchensync.shell.host_clock import host_ns

COMMAND_LIMIT_S = 15.0  # some waits of the library have no end
SETTINGS = {
    2: ("video_resolution", "VideoResolution"),
    3: ("frames_per_second", "FramesPerSecond"),
    59: ("auto_power_down", "AutoPowerDown"),
    83: ("gps", "Gps"),
    108: ("video_aspect_ratio", "VideoAspectRatio"),
    121: ("video_lens", "VideoLens"),
    134: ("anti_flicker", "Anti_Flicker"),
    135: ("hypersmooth", "Hypersmooth"),
    167: ("hindsight", "Hindsight"),
}
"Setting id -> the library's names of the setting and of its values."


class Loop:
    """A thread with an event loop; a call that takes too long is abandoned, with its thread."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, Any], limit_s: float) -> Any:
        """Run a coroutine to its end. Raises TimeoutError after the limit, even if the library blocks inside."""
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, limit_s), self._loop)
        try:
            return future.result(limit_s + 0.5)
        except FutureTimeout as error:
            future.cancel()
            raise TimeoutError(f"no answer within {limit_s:g} s") from error

    def close(self) -> None:
        """End the loop; a thread that is stuck in the library is abandoned."""
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(timeout=2)
        if not self._thread.is_alive():
            self._loop.close()

    def _stop(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)


class LibraryCamera(GoProHttp):
    """One camera whose commands go through the library, as `_sdk` on the thread `_loop` while a session is open."""

    def __init__(self, url: str, entry: CameraAddress, timeout_s: float) -> None:
        """`url` names the camera in errors, `entry` is its address for plain HTTP."""
        super().__init__(entry, timeout_s)
        self.url = url
        self._sdk: Any = None
        self._loop: Loop | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="kitchensync-gopro-")

    def close(self) -> None:
        """Close the session and its resources."""
        if self._loop is not None:
            if self._sdk is not None:
                try:
                    self._loop.call(self._sdk.close(), COMMAND_LIMIT_S)
                except Exception:  # noqa: BLE001 (the library's own; the camera may be gone, and we are leaving)
                    logging.getLogger(__name__).warning("%s: the session was not closed in order", self.url)
            self._loop.close()
        self._loop = self._sdk = None
        with warnings.catch_warnings():  # about a coroutine never awaited, an open database
            warnings.simplefilter("ignore")
            gc.collect()
        self._folder.cleanup()
        super().close()

    def _call(self, work: Coroutine[Any, Any, Any], limit_s: float, what: str) -> Any:
        """Run a call of the library. Raises CameraLost for any of its errors."""
        assert self._loop is not None
        try:
            return self._loop.call(work, limit_s)
        except Exception as error:
            raise CameraLost(self.url, f"{what}: {str(error) or type(error).__name__}".lower()) from error


class NoRadio:
    """Replaces the library's adapters of Bluetooth and WiFi, which the home network does not need."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def need_library(url: str) -> None:
    """Import the library without its log output. Raises `SdkMissing` if the extra is not installed."""
    try:
        import open_gopro  # noqa: F401
    except ImportError as error:
        raise SdkMissing(url) from error
    library = logging.getLogger("open_gopro")
    library.addHandler(logging.NullHandler())
    library.propagate = False


OPEN_LIMIT_S = 60.0  # covers scanning, connecting and pairing over Bluetooth
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
        """Scan, connect and pair; the library also sets the camera's clock."""
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
        """Request model, firmware and serial number."""
        info = self._command("get_hardware_info")
        return CameraInfo(info.model_name, info.firmware_version, info.serial_number, {})

    def state(self) -> CameraState:
        """Request all statuses and settings."""
        self.open()
        statuses = self._command("get_camera_statuses")
        settings = self._command("get_camera_settings")
        return CameraState(_by_number(statuses), _by_number(settings), host_ns())

    def media(self) -> list[MediaFile]:
        """Return no files: Bluetooth does not list them."""
        return []

    def get_clock(self) -> CameraClock:
        """Request the camera's clock (whole seconds)."""
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
        """Do nothing: Bluetooth needs no announcement."""

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
    """Convert the library's names to numbers, as in HTTP answers."""
    return {str(int(key.value)): getattr(value, "value", value) for key, value in values.items()}
