"""The clock of each device, from the seed.

The headset's QPC is the reference of the truth; it has its own epoch and drift relative to world time.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.world.seeds import generator

Seconds = TypeVar("Seconds", float, npt.NDArray[np.float64])
TICKS_PER_S = 10_000_000
FILETIME_MINUS_UNIX_TICKS = 116_444_736_000_000_000  # 100 ns from 1601 to 1970


@dataclass(frozen=True, slots=True)
class TickCounter:
    """A 100 ns counter: ticks = epoch_ticks + 1e7 * (1 + drift_ppm * 1e-6) * world_s."""

    epoch_ticks: int
    drift_ppm: float

    @property
    def ticks_per_world_s(self) -> float:
        """Return the ticks in one second of world time."""
        return TICKS_PER_S * (1 + self.drift_ppm * 1e-6)

    def ticks_at(self, world_s: float) -> int:
        """Return the counter at a world time, rounded to a tick."""
        return self.epoch_ticks + round(self.ticks_per_world_s * world_s)

    def ticks_of(self, world_s: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the counter at many world times."""
        return self.epoch_ticks + np.rint(self.ticks_per_world_s * world_s).astype(np.int64)

    def world_s_at(self, ticks: int) -> float:
        """Return the world time of a count."""
        return (ticks - self.epoch_ticks) / self.ticks_per_world_s


@dataclass(frozen=True, slots=True)
class CameraCrystal:
    """A camera's crystal: media seconds run `1 + drift` to the world's; its wall clock is off by seconds.

    media_s = (world_s - start_world_s) / (1 + drift_ppm * 1e-6)
    """

    drift_ppm: float
    wall_offset_s: float

    def world_s_at(self, media_s: Seconds, start_world_s: float) -> Seconds:
        """Return the world time of media times of a recording that started at `start_world_s`."""
        return start_world_s + media_s * (1 + self.drift_ppm * 1e-6)


@dataclass(frozen=True, slots=True)
class TrueClockMap:
    """The truth between two clocks: ticks = epoch_ticks + 1e7 * (t + tau0_s + drift_ppm * 1e-6 * t)."""

    epoch_ticks: int
    tau0_s: float
    drift_ppm: float

    def as_dict(self) -> dict[str, int | float]:
        """Return it as written to the truth file."""
        return {"epoch_ticks": self.epoch_ticks, "tau0_s": self.tau0_s, "drift_ppm": self.drift_ppm}


def media_map(headset: TickCounter, camera: CameraCrystal, start_world_s: float) -> TrueClockMap:
    """Return the map of media time (0 at `start_world_s`) to the headset's ticks."""
    rate = 1 + headset.drift_ppm * 1e-6
    together = rate * (1 + camera.drift_ppm * 1e-6)
    return TrueClockMap(headset.epoch_ticks, rate * start_world_s, (together - 1) * 1e6)


def headset_clock(seed: int) -> TickCounter:
    """Return the headset's QPC: booted minutes to days ago, drift within 20 ppm."""
    rng = generator(seed, "headset clock")
    return TickCounter(int(rng.integers(6 * 10**9, 3 * 10**12)), float(rng.uniform(-20, 20)))


def camera_clock(seed: int) -> CameraCrystal:
    """Return the camera's clocks: crystal within 40 ppm, wall clock within a second of UTC."""
    rng = generator(seed, "camera clock")
    return CameraCrystal(float(rng.uniform(-40, 40)), float(rng.uniform(-0.8, 0.8)))
