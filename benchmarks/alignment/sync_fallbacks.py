"""Trials of what stands in for a missing gyroscope: sound, and the head pose. `sync_trials.py` prints them.

Sounds: clatter in a kitchen through two microphones that differ in place, colour, gain, echo, noise and crystal.
Poses: 30 a second, 0.03 degrees of noise, 1 % lost. Truth is a formula in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import signal
from scipy.spatial.transform import Rotation

from kitchensync.shell.array_types import Floats

SOUND_HZ, WORLD_HZ = 12_000, 48_000
PATH_S = 0.3e-3  # microphones ten centimetres apart hear each noise so much earlier or later
POSE_HZ, POSE_NOISE_DEG, POSES_LOST = 30.0, 0.03, 0.01
INTEGRATION_HZ = 240.0


@dataclass(frozen=True)
class Scene:
    """Noises of one kitchen: when they begin (s), how long they last (s), how loud they are, and their seeds."""

    begin_s: Floats
    length_s: Floats
    loud: Floats
    seeds: npt.NDArray[np.int64]

    @classmethod
    def drawn(cls, rng: np.random.Generator, seconds: float) -> Scene:
        """A noise and a half a second, from a click to half a second of water."""
        count = int(1.5 * seconds)
        return cls(
            rng.uniform(0.0, seconds, count),
            rng.uniform(0.02, 0.4, count),
            rng.uniform(0.1, 1.0, count),
            rng.integers(0, 2**31, count),
        )

    def heard(self, rng: np.random.Generator, seconds: float) -> Floats:
        """Sound (n,) at 48 kHz at one place: each noise with the delay of its path, and echoes."""
        out = np.zeros(int(seconds * WORLD_HZ))
        for begin, length, loud, seed in zip(self.begin_s, self.length_s, self.loud, self.seeds, strict=True):
            count = int(length * WORLD_HZ)
            at = round((begin + rng.uniform(-0.5, 0.5) * PATH_S) * WORLD_HZ)
            if at < 0 or at + count > len(out):
                continue
            burst = np.random.default_rng(seed).normal(size=count) * np.exp(-np.linspace(0.0, 5.0, count))
            out[at : at + count] += loud * burst
        tail = np.exp(-np.arange(int(0.15 * WORLD_HZ)) / (0.03 * WORLD_HZ))
        echo = tail * rng.normal(size=len(tail)) * 0.02
        echo[0] = 1.0
        return np.asarray(signal.oaconvolve(out, echo)[: len(out)])


def recorded(world: Floats, rng: np.random.Generator, start_s: float, seconds: float, drift: float) -> Floats:
    """What a microphone with its own crystal, colour, gain and noise makes of it, 12 kHz."""
    band = rng.uniform(100.0, 350.0), rng.uniform(4000.0, 5500.0)
    sos = signal.butter(2, band, "bandpass", fs=WORLD_HZ, output="sos")
    coloured = signal.sosfilt(sos, world)
    t_s = start_s + np.arange(int(seconds * SOUND_HZ)) / SOUND_HZ * (1.0 + drift)
    taken = np.interp(t_s * WORLD_HZ, np.arange(len(world)), coloured)
    taken = taken * rng.uniform(0.3, 3.0) + rng.uniform(0.005, 0.05) * rng.normal(size=len(t_s))
    return np.clip(taken, -0.8, 0.8)


def sound_trial(rng: np.random.Generator, *, seconds: float = 120.0, related: bool = True) -> dict[str, Any]:
    """Align two recordings of one kitchen (or of two); status, largest error and claimed bound, ms."""
    from kitchensync.sync.align.pair_alignment import by_sound
    from kitchensync.sync.align.sound import Sound, align_sounds
    from kitchensync.sync.result.result import sound_errors

    offset_s, drift = float(rng.uniform(0.0, 8.0)), float(rng.uniform(-50e-6, 50e-6))
    scene = Scene.drawn(rng, seconds + 20.0)
    other = scene if related else Scene.drawn(rng, seconds + 20.0)
    headset = recorded(scene.heard(rng, seconds + 20.0), rng, 0.0, seconds + 10.0, 0.0)
    camera = recorded(other.heard(rng, seconds + 20.0), rng, offset_s, seconds, drift)
    heard = align_sounds(Sound(0.0, headset), Sound(0.0, camera))
    if heard is None:
        return {"status": "not_aligned", "error_ms": np.nan, "bound_ms": np.nan, "reasons": ("too short",)}
    verdict, clock_map = by_sound(heard, 0)
    if clock_map is None:
        nothing = {"error_ms": np.nan, "bound_ms": np.nan}
        return {"status": verdict.status, "reasons": verdict.reasons, **nothing}
    t_s = np.linspace(0.0, seconds, 31)
    error = np.abs(clock_map.tau_s(t_s) - offset_s - drift * t_s).max() * 1e3
    bound = sound_errors(heard).largest_bound_ms
    return {"status": verdict.status, "error_ms": error, "bound_ms": bound, "reasons": verdict.reasons}


def poses(
    motion: Any, rng: np.random.Generator, first_s: float, last_s: float, epoch_ticks: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Ticks (n,) and head-to-world rotations (n, 4), w x y z, of a head that turns with `motion`, rad/s."""
    grid = np.arange(first_s, last_s, 1.0 / INTEGRATION_HZ)
    turns = Rotation.from_rotvec(motion(grid + 0.5 / INTEGRATION_HZ) / INTEGRATION_HZ)
    step = 1
    while step < len(grid):  # running product, by doubling
        turns = Rotation.concatenate([turns[:step], turns[:-step] * turns[step:]])
        step *= 2
    every = int(INTEGRATION_HZ / POSE_HZ)
    seen = turns[every - 1 :: every]
    noise = Rotation.from_rotvec(rng.normal(0.0, np.deg2rad(POSE_NOISE_DEG), (len(seen), 3)))
    at_s = grid[every - 1 :: every] + 1.0 / INTEGRATION_HZ
    x, y, z, w = (seen * noise).as_quat().T
    kept = rng.random(len(seen)) >= POSES_LOST
    ticks = epoch_ticks + np.rint(at_s * 1e7).astype(np.int64)
    return ticks[kept], np.column_stack([w, x, y, z])[kept]
