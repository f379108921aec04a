"""How heads move in the trials: simulated, walking in place, still, or as a real gyroscope recorded it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import signal
from scipy.interpolate import CubicSpline

from kitchensync.shell.array_types import Floats

Motion = Callable[[Floats], Floats]  # world seconds (n,) to rad/s (n, 3)

REAL_LONG = tuple(f"ear_{pace}_{side}" for pace in ("normal", "slow", "fast") for side in ("left", "right"))


def simulated_motion(
    rng: np.random.Generator, seconds: float, *, rms_deg: float = 35.0, before_s: float = 5.0
) -> Motion:
    """A head at work: slow wander, turns in bursts, and a little tremor."""
    hz = 200.0
    t_s = np.arange(-before_s, seconds + before_s, 1.0 / hz)
    white = rng.normal(size=(3, len(t_s), 3))
    bands = [(0.05, 0.5), (0.3, 3.0), (3.0, 8.0)]
    parts = [
        signal.sosfiltfilt(signal.butter(2, band, "bandpass", fs=hz, output="sos"), noise, axis=0)
        for band, noise in zip(bands, white, strict=True)
    ]
    parts = [part / part.std() for part in parts]
    knots = np.arange(-before_s, seconds + before_s + 3.0, 2.5)
    bursts = np.interp(t_s, knots, rng.gamma(0.7, 1.4, len(knots)))
    total = 0.35 * parts[0] + bursts[:, None] * parts[1] + 0.06 * parts[2]
    return _spline(t_s, total * np.deg2rad(rms_deg) / total.std())


def walking_in_place(rng: np.random.Generator, seconds: float, *, period_s: float = 1.05) -> Motion:
    """Strictly periodic motion: every period fits as well as any other."""
    size, phase = rng.normal(0, 0.5, (4, 3)), rng.uniform(0, 2 * np.pi, (4, 3))

    def motion(t_s: Floats) -> Floats:
        turns = 2 * np.pi * np.asarray(t_s)[:, None] / period_s
        return np.sum([size[k] * np.sin((k + 1) * turns + phase[k]) for k in range(4)], axis=0)

    return motion


def still(rng: np.random.Generator, seconds: float) -> Motion:
    """A device on a table."""
    return lambda t_s: np.zeros((len(t_s), 3))


def real_motion(data: Path, name: str) -> tuple[Motion, float]:
    """A recorded gyroscope as motion, with its length in seconds."""
    t_s, rates = _recorded(data, name)
    return _spline(t_s, rates), float(t_s[-1])


@lru_cache(maxsize=16)
def _recorded(data: Path, name: str) -> tuple[Floats, Floats]:
    with np.load(data / "motion" / "real_gyro.npz") as archive:
        return archive[f"{name}_t"], archive[f"{name}_w"].astype(np.float64)


def joined_real_motion(data: Path, rng: np.random.Generator, seconds: float) -> Motion:
    """Recorded gyroscopes one after the other in random order, each faded into the next over half a second."""
    hz, fade = 200.0, 100
    out, names = np.zeros((0, 3)), list(REAL_LONG)
    while len(out) < seconds * hz:
        rng.shuffle(names)
        for name in names:
            t_s, rates = _recorded(data, name)
            grid = np.arange(t_s[0], t_s[-1], 1.0 / hz)
            part = CubicSpline(t_s, rates, axis=0)(grid)
            ramp = np.linspace(0.0, 1.0, fade)[:, None]
            if len(out):
                out[-fade:] = out[-fade:] * (1.0 - ramp) + part[:fade] * ramp
                part = part[fade:]
            out = np.concatenate([out, part])
    return _spline(np.arange(len(out)) / hz, out)


def _spline(t_s: Floats, rates: Floats) -> Motion:
    spline = CubicSpline(t_s, rates.astype(np.float64), axis=0)

    def motion(at_s: Floats) -> Floats:
        return spline(at_s)

    return motion
