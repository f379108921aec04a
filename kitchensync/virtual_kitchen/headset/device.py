"""The headset state that all ports share: clock, pose, camera subsystem, end of the streams."""

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kitchensync.virtual_kitchen.faults import FaultPlan
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.world.clocks import FILETIME_MINUS_UNIX_TICKS, TickCounter, headset_clock
from kitchensync.virtual_kitchen.world.motion import HeadMotion, rotations
from kitchensync.virtual_kitchen.world.seeds import generator

CAMERA_START_S = 0.3  # the PV subsystem needs this long to open, host time
_LONGEST_SLEEP_S = 0.5
_QUIET_S = 1.5  # a recorder connects one stream after the other


@dataclass
class CameraSettings:
    """Controls of the front camera as set by remote configuration; lost when it stops."""

    lens_position: int = 2145
    exposure_us: int = 16_660
    white_balance_k: int = 4600


class CommonStart:
    """Lets streams that first make a ring begin together: when no ring is being made and no new client connects."""

    def __init__(self, *, is_enabled: bool) -> None:
        self._is_enabled = is_enabled
        self._lock = threading.Lock()
        self._making = 0
        self._changed_s = 0.0
        self._has_begun = False

    def __enter__(self) -> None:
        self._change(1)

    def __exit__(self, *_: object) -> None:
        self._change(-1)

    def _change(self, step: int) -> None:
        with self._lock:
            self._making += step
            self._changed_s = time.monotonic()

    def wait(self) -> None:
        """Wait until all streams can begin."""
        while self._is_enabled and not self._has_begun:
            with self._lock:
                self._has_begun = not self._making and time.monotonic() - self._changed_s >= _QUIET_S
            time.sleep(0.01)


@dataclass
class HeadsetState:
    """State shared by the ports of one headset. Its streams end at `end_world_s`; None: never."""

    kitchen: Kitchen
    faults: FaultPlan = field(default_factory=FaultPlan)
    gyroscope_unit: str = "deg_per_s"
    end_world_s: float | None = None
    has_rings: bool = False
    is_unthrottled: bool = False
    ring_store: Path | None = None
    is_virtual: bool = True
    "Whether recordings of it count as virtual; False if it replays people."
    replays: str = ""
    "The uuid of the recording that it replays, if any."
    camera_on: bool = False
    camera: CameraSettings = field(default_factory=CameraSettings)
    prepared_pv: dict[Hashable, dict[int, bytes]] = field(default_factory=dict)
    "Encoded images of the front camera by number, for each prepared configuration."
    prepared_sound: dict[int, dict[int, list[bytes]]] = field(default_factory=dict)
    "AAC frames of each second by its number, for each prepared rate in bytes/s."
    restarts: int = 0
    swaps: int = 0
    clock: TickCounter = field(init=False)
    "The QPC; after a swap another one with its own drift."
    start: CommonStart = field(init=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    _utc_offset: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.clock = self.kitchen.headset_clock
        self.start = CommonStart(is_enabled=self.ring_store is not None)

    @property
    def motion(self) -> HeadMotion:
        """Return the motion of the head that wears it."""
        return self.kitchen.motion

    def now_s(self) -> float:
        """Return the world time now; 0.0 until the world starts."""
        return self.kitchen.now_s()

    def now_ticks(self) -> int:
        """Return the QPC now; it stays at its epoch until the world starts."""
        return self.clock.ticks_at(self.now_s())

    def utc_offset_ticks(self) -> int:
        """Return UTC as FILETIME minus QPC, computed once at the first call."""
        with self._lock:
            if self._utc_offset is None:
                self._utc_offset = self.now_filetime() - self.now_ticks() - 4 * self.restarts
            return self._utc_offset

    def now_filetime(self) -> int:
        """Return UTC now, 100 ns since 1601."""
        return self.kitchen.utc_ns_of_host(self.kitchen.clock.now_ns()) // 100 + FILETIME_MINUS_UNIX_TICKS

    def wait_until(self, world_s: float) -> bool:
        """Sleep until a world time (not if unthrottled); return False if the headset is stopped before."""
        if self.is_unthrottled:
            return not self.stopping.is_set()
        due_ns, clock = self.kitchen.host_ns_of(world_s), self.kitchen.clock
        while (left_s := (due_ns - clock.now_ns()) / 1e9) > 0:
            if clock.nap(self.stopping, min(left_s, _LONGEST_SLEEP_S)):
                return False
        return not self.stopping.is_set()

    def wait_for_end(self) -> None:
        """Sleep until the streams end or the headset is stopped."""
        if self.end_world_s is None:
            self.stopping.wait()
        else:
            self.wait_until(self.end_world_s)

    def open_camera(self) -> None:
        """Start the PV subsystem, which takes CAMERA_START_S."""
        self.close_camera()
        self.camera_on = not self.stopping.wait(CAMERA_START_S)

    def close_camera(self) -> None:
        """Stop the PV subsystem and reset its settings."""
        self.camera_on = False
        self.camera = CameraSettings()

    def restart(self, *, is_swap: bool = False) -> None:
        """Restart the app: camera off, new UTC offset, new world frame."""
        self.close_camera()
        with self._lock:
            self.restarts += 1
            if is_swap:
                self.swaps += 1
                self.clock = headset_clock(self.kitchen.seed + 1000 * self.swaps)
            self._utc_offset = None

    def frame(self) -> rotations.Floats:
        """Return the transform from the world to the world frame of this app start, 4x4 for row vectors."""
        if self.restarts == 0:
            return np.eye(4)
        rng = generator(self.kitchen.seed, "world frame", self.restarts)
        matrix = np.eye(4)
        matrix[:3, :3] = rotations.matrices(self.frame_turn())[0].T
        matrix[3, :3] = rng.uniform(-1.5, 1.5, 3)
        return matrix

    def frame_turn(self) -> rotations.Floats:
        """Return the rotation of that frame, a quaternion (1, 4): only the heading changes."""
        if self.restarts == 0:
            return np.array([[1.0, 0.0, 0.0, 0.0]])
        rng = generator(self.kitchen.seed, "heading", self.restarts)
        return rotations.about_axis(1, rng.uniform(0.5, 2.5, 1))

    def place(self, world_s: float) -> rotations.Floats:
        """Return the rig's pose in the world frame of this app start, 4x4 for row vectors."""
        return pose_matrix(self.motion, world_s) @ self.frame()

    def pose(self, world_s: float) -> bytes:
        """Return the rig's pose: 4x4 float32, rows of p_world = p_local x M."""
        return self.place(world_s).astype("<f4").tobytes()


def pose_matrix(motion: HeadMotion, world_s: float) -> rotations.Floats:
    """Return head to world as a 4x4 matrix for row vectors."""
    at = np.array([max(world_s, 0.0)])
    matrix = np.eye(4)
    matrix[:3, :3] = rotations.matrices(motion.orientation(at))[0].T
    matrix[3, :3] = motion.position(at)[0]
    return matrix
