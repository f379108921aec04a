"""What every camera reached through the maker's library (`open_gopro`) has: its thread, its limits and its end.

The library is asynchronous, blocks inside and waits without limits: it lives on a thread of its own, and each call
has a limit here.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import tempfile
import threading
import warnings
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from sensors.errors import CameraLost, SdkMissing
from sensors.gopro.camera import GoProHttp
from sensors.gopro.entry import CameraAddress

COMMAND_LIMIT_S = 15.0
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


class LibraryCamera(GoProHttp):
    """One camera whose commands go through the library, as `_sdk` on the thread `_loop` while a session is open."""

    def __init__(self, url: str, entry: CameraAddress, timeout_s: float) -> None:
        """`url` names the camera in errors, `entry` is where plain HTTP reaches it."""
        super().__init__(entry, timeout_s)
        self.url = url
        self._sdk: Any = None
        self._loop: Loop | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="kitchensync-gopro-")

    def close(self) -> None:
        """Close the session and everything that belongs to it."""
        if self._loop is not None:
            if self._sdk is not None:
                try:
                    self._loop.call(self._sdk.close(), COMMAND_LIMIT_S)
                except Exception:  # noqa: BLE001 (the library's own; the camera may be gone, and we are leaving)
                    logging.getLogger(__name__).warning("%s: the session was not closed in order", self.url)
            self._loop.close()
        self._loop = self._sdk = None
        collect_quietly()
        self._folder.cleanup()
        super().close()

    def _call(self, work: Coroutine[Any, Any, Any], limit_s: float, what: str) -> Any:
        """Run a call of the library; all that it raises becomes one line of ours."""
        assert self._loop is not None
        try:
            return self._loop.call(work, limit_s)
        except Exception as error:
            raise CameraLost(self.url, f"{what}: {str(error) or type(error).__name__}".lower()) from error


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
