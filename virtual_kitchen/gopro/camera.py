"""The virtual GoPro behind its network interface: shutter, states, files, truth."""

from __future__ import annotations

import enum
import logging
import threading
import time
from pathlib import Path
from typing import Any, Protocol

from virtual_kitchen.errors import KitchenError
from virtual_kitchen.gopro.card import Card, CardFile, replayed_file, sha256_of
from virtual_kitchen.gopro.clock import WallClock
from virtual_kitchen.gopro.models import MODELS, FileIds
from virtual_kitchen.gopro.recorder import LiveTake, TakeFile
from virtual_kitchen.gopro.replay import GYRO_RULE, ReplayFromShutter
from virtual_kitchen.gopro.sensors import FIRST_IMU_US, Mount, Timeline
from virtual_kitchen.gopro.settings import Settings
from virtual_kitchen.kitchen import Kitchen
from virtual_kitchen.world.clocks import CameraClock, media_map
from virtual_kitchen.world.seeds import generator

CARD_BYTES = 64 << 30
BYTES_PER_S = 7_500_000  # what a camera reckons with at 60 Mbit/s
NS_PER_S = 1_000_000_000
log = logging.getLogger(__name__)


class Phase(enum.Enum):
    """Where the camera stands between two shutter commands."""

    IDLE = "idle"
    STARTING = "starting"
    ENCODING = "encoding"
    FINALISING = "finalising"


class WrongState(KitchenError):
    """Refuse a command that the camera cannot follow now."""


class Take(Protocol):
    """One recording, from the shutter's start to the closed file."""

    def stop(self) -> float:
        """End it now and return the world time of that."""
        ...

    def abandon(self) -> None:
        """Give it up at once."""
        ...

    def record(self) -> bool:
        """Run it to its end; False when given up."""
        ...


class ReplayTake:
    """A recording that hands out a real file: nothing is written, it lasts until the stop."""

    def __init__(self, kitchen: Kitchen) -> None:
        """Prepare."""
        self._kitchen = kitchen
        self._stopped = threading.Event()
        self._is_abandoned = False
        self._stop_world_s = 0.0

    def stop(self) -> float:
        """End it now and return the world time of that."""
        if not self._stopped.is_set():
            self._stop_world_s = self._kitchen.world_time_s(time.monotonic_ns())
            self._stopped.set()
        return self._stop_world_s

    def abandon(self) -> None:
        """Give it up at once."""
        self._is_abandoned = True
        self.stop()

    def record(self) -> bool:
        """Wait for the end; False when given up."""
        self._stopped.wait()
        return not self._is_abandoned


class Camera:
    """One camera: start, 50 to 500 ms later encoding, stop, at least 0.3 s busy, idle and the file listed."""

    def __init__(self, kitchen: Kitchen, model: str, replay: Path | None) -> None:
        """Make an idle camera with an empty card under the simulation's folder."""
        if model not in MODELS:
            raise KitchenError(f"no GoPro model {model!r}; choose one of {', '.join(MODELS)}")
        self.kitchen, self.model, self.replay = kitchen, MODELS[model], replay
        self.card = Card(kitchen.truth.folder / "gopro-card")
        self.clock = WallClock(kitchen)
        self.settings = Settings(self.model.name)
        self.is_usb_controlled = False
        self.is_turbo = False
        self.control_owner = 0
        self._lock = threading.Lock()
        self._phase = Phase.IDLE
        self._start_world_s = 0.0
        self._take: Take | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._has_failed = False

    @property
    def serial(self) -> str:
        """The camera's serial number."""
        return self.model.serial(self.kitchen.seed)

    @property
    def phase(self) -> Phase:
        """Where the camera stands now."""
        with self._lock:
            if self._phase is Phase.STARTING and self._world_now_s() >= self._start_world_s:
                self._phase = Phase.ENCODING
            return self._phase

    def start_recording(self) -> None:
        """Open the shutter a little later; refuse unless idle."""
        now_ns = time.monotonic_ns()
        if self.phase is not Phase.IDLE:
            raise WrongState("the camera is busy")
        if self.replay is not None and self.card.files():
            raise WrongState("the replayed file was recorded already")
        self.kitchen.start_world_if_needed(now_ns)
        command_world_s = self.kitchen.world_time_s(now_ns)
        # A replay turns the world at this moment, so no device may have looked that far ahead yet.
        shortest_s = 0.05 if self.replay is None else 0.25
        random = generator(self.kitchen.seed, "gopro start", round(command_world_s * 1e9))
        delay_s = random.uniform(shortest_s, 0.5)
        with self._lock:
            if self._phase is not Phase.IDLE:
                raise WrongState("the camera is busy")
            self._start_world_s = command_world_s + float(delay_s)
            self._phase = Phase.STARTING
            run = self._replayed if self.replay is not None else self._recorded
            self._thread = threading.Thread(target=run, name="gopro take", daemon=True)
            self._take = self._prepare_take()
            self._thread.start()

    def stop_recording(self) -> None:
        """Close the shutter; nothing happens when it is closed."""
        with self._lock:
            if self._take is not None and self._phase in (Phase.STARTING, Phase.ENCODING):
                self._phase = Phase.FINALISING
                self._take.stop()

    def close(self) -> None:
        """Give up a running take and wait for its thread."""
        self._closing.set()
        with self._lock:
            take, thread = self._take, self._thread
        if take is not None:
            take.abandon()
        if thread is not None:
            thread.join()

    def status(self) -> dict[str, int | str]:
        """Return the status values by id, as text keys."""
        phase = self.phase
        is_encoding = phase is Phase.ENCODING
        encoded_s = int(self._world_now_s() - self._start_world_s) if is_encoding else 0
        free = max(0, CARD_BYTES - sum(file.size for file in self.card.files()) - encoded_s * BYTES_PER_S)
        values = {
            1: 1, 2: 4, 6: 0, 8: int(phase in (Phase.STARTING, Phase.FINALISING)), 9: 0, 10: int(is_encoding),
            13: encoded_s, 17: 0, 32: 0, 33: 0, 34: free // 6_000_000, 35: free // BYTES_PER_S, 38: 0,
            39: len(self.card.files()), 45: 0, 54: free // 1024, 55: 1, 58: 0, 60: 500, 68: 0, 69: 0, 70: 92,
            75: 0, 77: 1, 79: 0, 82: 1, 83: 1, 85: 0, 86: 0, 89: 12, 93: 0, 94: 65536, 95: 131072,
            96: 1000, 97: 0, 99: 0, 101: 0, 104: 1, 105: 0, 106: 0, 107: 0, 108: 0, 110: 0,
            111: int(self._has_failed), 112: 0,
            113: int(self.is_turbo), 114: self.control_owner, 115: 1, 116: int(self.is_usb_controlled),
            117: CARD_BYTES // 1024, 118: 0,
        }  # fmt: skip
        return {**{str(key): value for key, value in values.items()}, "122": self.model.name}

    def _world_now_s(self) -> float:
        return self.kitchen.world_time_s(time.monotonic_ns())

    def _prepare_take(self) -> Take:
        self._wall = self.clock.at_world(self._start_world_s)
        if self.replay is not None:
            # A motion that waits for the shutter starts with it; any other one began with the world.
            self._media0_world_s = 0.0
            if isinstance(self.kitchen.motion, ReplayFromShutter):
                self.kitchen.motion.begin(self._start_world_s)
                self._media0_world_s = self._start_world_s
            return ReplayTake(self.kitchen)
        self._path = self.card.next_path()
        ids = FileIds(self.model, self.kitchen.seed, int(self._wall.local_s), self.clock.zone_minutes)
        self._timeline = Timeline(self.kitchen.camera_clock, self._start_world_s)
        return LiveTake(
            self.kitchen, self._timeline, TakeFile(self._path, self.kitchen, self._timeline, ids, self._wall)
        )

    def _recorded(self) -> None:
        """Run a take that writes its own file."""
        assert self._take is not None
        try:
            if self._take.record():
                created_s = int(self._wall.local_s)
                file = CardFile(self._path.name, self._path, self._path.stat().st_size, created_s)
                more = {
                    "gyro_rate_hz": Mount.of_seed(self.kitchen.seed).imu_hz,
                    "gyro_first_s": FIRST_IMU_US * 1e-6,
                }
                self._list(file, self.kitchen.camera_clock, self._start_world_s, more)
        except Exception:
            # The camera goes on answering, and says so in status 111, as one does whose card failed.
            log.exception("the virtual GoPro could not record %s", self._path)
            self._has_failed = True
        self._become_idle()

    def _replayed(self) -> None:
        """Run a take whose file is there already."""
        assert self._take is not None
        assert self.replay is not None
        if self._take.record():
            file = replayed_file(self.replay, int(self._wall.local_s))
            same_as_world = CameraClock(drift_ppm=0.0, wall_offset_s=0.0)
            self._list(file, same_as_world, self._media0_world_s, {"replay": self.replay.name})
        self._become_idle()

    def _list(
        self, file: CardFile, crystal: CameraClock, media0_world_s: float, more: dict[str, Any]
    ) -> None:
        """Stay busy for as long as a camera does, then write the truth and list the file."""
        busy_s = generator(self.kitchen.seed, "gopro busy", round(media0_world_s * 1e9)).uniform(0.3, 0.7)
        truth_map = media_map(self.kitchen.headset_clock, crystal, media0_world_s).as_dict()
        digest = sha256_of(file.path)
        self._closing.wait(float(busy_s))
        self.kitchen.truth.add_gopro_file(
            file.name,
            file.size,
            digest,
            truth_map,
            gyro_times=GYRO_RULE,
            start_world_s=media0_world_s,
            **more,
        )
        self.card.add(file)

    def _become_idle(self) -> None:
        with self._lock:
            self._take = None
            self._phase = Phase.IDLE
