"""The kitchen that all its devices share: one motion, one scene, one time, one truth.

A camera plugs in as `VirtualGoPro(kitchen, host, port, model, replay_file)` in `gopro/server.py`:
`start() -> int` binds, listens and answers the port (0 takes a free one; raise `PortBusy`); `stop()` ends its
threads and sockets; `idle_and_fetched() -> bool` is true when it does not record and every finished file was
read to its last byte. It registers each finished file with `kitchen.truth.add_gopro_file(...)`.
It calls `kitchen.start_world_if_needed(host_ns)` at shutter start; `clocks.media_map(kitchen.headset_clock, crystal,
start_world_s)` is the true clock of a file. All cameras share motion, scene and sound. Mount, crystal and serial
number of a camera follow from its `camera_seed`.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.boards import BoardShow
from kitchensync.virtual_kitchen.world.clocks import CameraCrystal, TickCounter, camera_clock, headset_clock
from kitchensync.virtual_kitchen.world.host_clock import ComputerClock
from kitchensync.virtual_kitchen.world.motion import HeadMotion
from kitchensync.virtual_kitchen.world.scene import Scene

NS_PER_S = 1_000_000_000
Encoded = TypeVar("Encoded")


def encode_groups(encode: Callable[[int], dict[int, Encoded]], starts: range) -> dict[int, Encoded]:
    """Encode groups of pictures on all processors; return the encoded pictures by number."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return {number: picture for group in pool.map(encode, starts) for number, picture in group.items()}


@dataclass
class Kitchen:
    """The world of one seed. World time 0 is the first data connection or shutter start; nothing moves before."""

    seed: int
    motion: HeadMotion
    truth: Truth
    speed: float = 1.0
    utc_minus_host_ns: int = field(default_factory=lambda: time.time_ns() - time.monotonic_ns())
    world0_host_ns: int | None = None
    show: BoardShow | None = None
    """The calibration board that the cook shows instead of cooking, if any."""
    gopro_size: tuple[int, int] = (640, 360)
    """Width and height of the GoPro video, pixels."""
    frame_counter: bool = False
    """Whether cameras draw its number into each frame."""
    clock: ComputerClock = field(default_factory=ComputerClock)
    """The clock that drives the world."""
    _started: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def scene(self) -> Scene:
        """Return the scene; painted at the first use."""
        return Scene(self.seed)

    @cached_property
    def headset_clock(self) -> TickCounter:
        """Return the headset's QPC."""
        return headset_clock(self.seed)

    @cached_property
    def camera_clock(self) -> CameraCrystal:
        """Return the crystal and the wall clock of the first camera."""
        return camera_clock(self.seed)

    def start_world_if_needed(self, host_ns: int) -> None:
        """Set world time 0 to `host_ns`, unless the world is already running."""
        with self._lock:
            if self.world0_host_ns is None:
                self.world0_host_ns = host_ns
                self.truth.world0_host_ns = host_ns
                self._started.set()

    def wait_started(self, timeout_s: float) -> bool:
        """Wait for the world to start; return whether it is running."""
        return self._started.wait(timeout_s)

    def world_time_s(self, host_ns: int) -> float:
        """Return the world time of a host time; 0.0 until the world starts."""
        if self.world0_host_ns is None:
            return 0.0
        return (host_ns - self.world0_host_ns) / NS_PER_S * self.speed

    def now_s(self) -> float:
        """Return the world time now; 0.0 until the world starts."""
        return self.world_time_s(self.clock.now_ns())

    def host_ns_of(self, world_s: float) -> int:
        """Return the host time of a world time; before the world starts, as if it started now."""
        begin_ns = self.clock.now_ns() if self.world0_host_ns is None else self.world0_host_ns
        return begin_ns + round(world_s / self.speed * NS_PER_S)

    def utc_ns_of_host(self, host_ns: int) -> int:
        """Return the world's UTC, Unix nanoseconds, at a host time: the host's clock plus a constant."""
        return host_ns + self.utc_minus_host_ns
