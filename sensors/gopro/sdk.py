"""Control through the camera maker's library (`open_gopro`): over USB, and at home over TLS.

The library is asynchronous, blocks inside, waits without limits and polls the state before nearly every command.
So it lives on a thread of its own, each call has a limit here, and while a camera records only the shutter goes
through it: questions and keep-alive are asked by plain HTTP on the same connection data.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import tempfile
import threading
import warnings
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from datetime import datetime
from pathlib import Path
from typing import Any

from sensors.errors import CameraLost, CameraRefused, SdkMissing
from sensors.gopro.camera import GoProHttp
from sensors.gopro.entry import CameraAddress

OPEN_LIMIT_S = 20.0
COMMAND_LIMIT_S = 15.0
POLL_S = 0.2
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
"Setting id -> the library's names of it and of its values."


class Loop:
    """A thread with an event loop; a call that takes too long is given up, the thread is left behind."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, Any], limit_s: float) -> Any:
        """Run a coroutine to its end; raises TimeoutError after the limit, even when the library blocks inside."""
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, limit_s), self._loop)
        try:
            return future.result(limit_s + 0.5)
        except FutureTimeout as error:
            future.cancel()
            raise TimeoutError(f"no answer within {limit_s:g} s") from error

    def close(self) -> None:
        """End the loop; a thread that is stuck in the library is left to itself."""
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(timeout=2)
        if not self._thread.is_alive():
            self._loop.close()

    def _stop(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)


class SdkCamera(GoProHttp):
    """One camera whose commands go through the library; questions and files go by plain HTTP beside it."""

    def __init__(
        self, url: str, entry: CameraAddress, make: Callable[[Path], Any], timeout_s: float = 5.0
    ) -> None:
        """`make` builds the library's object, given a folder for its database."""
        super().__init__(entry, timeout_s)
        self.url = url
        self._make = make
        self._sdk: Any = None
        self._loop: Loop | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="kitchensync-gopro-")

    def open(self) -> None:
        """Open the library's session. A camera that records already is stopped first: its `open` waits for ever."""
        if self._sdk is not None:
            return
        state = self.state()  # plainly: an absent camera is one line, not the library's five tries
        if state.encoding:
            super()._press(False)
        if not state.ready:
            self.wait_idle()
        try:
            self._loop = Loop(f"gopro {self.url}")
            self._sdk = self._make(Path(self._folder.name))
            self._call(self._sdk.open(), OPEN_LIMIT_S, "to open")
        except CameraLost:
            self._sdk = None
            raise

    def close(self) -> None:
        """Close the session and everything that belongs to it."""
        if self._loop is not None:
            if self._sdk is not None:
                try:
                    self._loop.call(self._sdk.close(), COMMAND_LIMIT_S)
                except Exception:  # noqa: BLE001 (the library's own; the camera may be gone, and we are leaving)
                    logging.getLogger(__name__).warning("%s: the session was not closed in order", self.url)
            self._loop.close()
            self._loop = None
        self._sdk = None
        collect_quietly()
        self._folder.cleanup()
        super().close()

    def set_setting(self, setting: int, option: int) -> None:
        """Set one setting through the library; one that it does not know goes plainly."""
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
        """Tell the camera that it is controlled from outside, and to record rather than to transfer."""
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

    def _call(self, work: Coroutine[Any, Any, Any], limit_s: float, what: str) -> Any:
        """Run a call of the library; all that it raises becomes one line of ours."""
        assert self._loop is not None
        try:
            return self._loop.call(work, limit_s)
        except Exception as error:
            raise CameraLost(self.url, f"{what}: {str(error) or type(error).__name__}".lower()) from error

    def _need_ok(self, answer: Any, command: str) -> None:
        if answer.ok:
            return
        data = answer.data if isinstance(answer.data, dict) else {}
        offered = [str(option.get("display_name", option)) for option in data.get("supported_options", [])]
        status = 403 if offered or "error" in data else 500
        raise CameraRefused(self.url, command, status, f"it offers {', '.join(offered)}" if offered else "")


def wired(serial: str, base_url: str | None = None, timeout_s: float = 5.0) -> SdkCamera:
    """Reach a camera on USB by its serial number (its last three digits are enough), or at another address."""
    url = f"usb:{serial}"
    digits = serial[-3:]
    if len(digits) != 3 or not digits.isdigit():
        raise CameraLost(url, "no serial number; its last three characters are digits")
    address = (base_url or f"http://172.2{digits[0]}.1{digits[1:]}.51:8080").rstrip("/")
    need_library(url)

    def make(_: Path) -> Any:
        return _wired_class()(serial, address, poll_period=POLL_S)

    return SdkCamera(url, CameraAddress(address), make, timeout_s)


def _wired_class() -> Any:
    """The library's wired camera, kept off the office's proxy, at an address of our choice."""
    import requests
    from open_gopro import WiredGoPro

    class Wired(WiredGoPro):
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
    """Reach a camera on the home network (COHN): TLS with its own certificate, name and password."""
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


class NoRadio:
    """Stands where the library wants Bluetooth and WiFi of this computer: at home neither is needed."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def collect_quietly() -> None:
    """Let go of what the library leaves, a coroutine never awaited and an open database, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def need_library(url: str) -> None:
    """Import the library, quietly; raises `SdkMissing` where the extra is not installed."""
    try:
        import open_gopro  # noqa: F401
    except ImportError as error:
        raise SdkMissing(url) from error
    library = logging.getLogger("open_gopro")
    library.addHandler(logging.NullHandler())
    library.propagate = False
