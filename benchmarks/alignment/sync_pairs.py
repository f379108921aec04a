"""Pairs of gyroscopes with a known clock map: both are cut from one motion, and the truth is a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sync_motion import Floats, Motion, joined_real_motion, real_motion, simulated_motion

BATCH = 315
HEADSET_HZ = 6550.0
CAMERA_HZ = 199.25
EPOCH_TICKS = 133_875_715_436_816_907
DEGREES = 180.0 / np.pi
MARGIN_S = 8.0  # motion before and after what the devices see


@dataclass(frozen=True)
class Truth:
    """World seconds of media time: `start + (1 + drift) t`, a bend, a warm-up, and jumps (media s, size s)."""

    start_s: float
    drift: float
    seconds: float
    curve_s: float = 0.0
    warm_s: float = 0.0
    jumps: tuple[tuple[float, float], ...] = ()

    def world_s(self, t_s: Floats) -> Floats:
        """World time without the start, so that no digit is lost."""
        t_s = np.asarray(t_s, dtype=np.float64)
        part = t_s / self.seconds
        bent = self.curve_s * (2.0 * part - 1.0) ** 2 + self.warm_s * np.exp(-4.0 * part)
        jumped = sum((size * (t_s > at) for at, size in self.jumps), np.zeros_like(t_s))
        return (1.0 + self.drift) * t_s + bent + jumped


@dataclass(frozen=True)
class Pair:
    """What `kitchensync align` reads, and the truth."""

    vinyl_ns: npt.NDArray[np.int64]
    soc_ticks: npt.NDArray[np.int64]
    rad_per_s: npt.NDArray[np.float32]
    true_ticks: npt.NDArray[np.int64]
    t_s: Floats
    camera: Floats
    truth: Truth

    @property
    def start_s(self) -> float:
        """World time of media time 0, but for bends."""
        return self.truth.start_s

    @property
    def drift(self) -> float:
        """Relative rate error of the camera."""
        return self.truth.drift

    def truth_ticks(self, t_s: Floats) -> npt.NDArray[np.int64]:
        """Headset ticks at media times, computed away from the epoch."""
        since = self.truth.start_s + self.truth.world_s(t_s)
        return EPOCH_TICKS + np.rint(1e7 * since).astype(np.int64)


@dataclass(frozen=True)
class Setting:
    """How a pair is made; the defaults are the issue's: jitter 0.25 ms, 1 % late, 50 ppm, deg/s."""

    seconds: float = 60.0
    degrees: bool = True
    offset_s: float = 1.0
    drift_ppm: float = 50.0
    lost: float = 0.0
    camera_noise: float = 0.004
    headset_noise: float = 0.004
    jitter_s: float = 0.25e-3
    late_s: float = 5e-3
    camera_rate: float = 1.0  # nominal stamps: true period over the claimed one
    curve_s: float = 0.0
    warm_s: float = 0.0
    jumps: tuple[tuple[float, float], ...] = ()
    slip_deg: float = 0.0


def make_pair(
    headset_motion: Motion,
    camera_motion: Motion,
    rng: np.random.Generator,
    setting: Setting,
    begin_s: float = 0.0,
) -> Pair:
    """Cut both gyroscopes from their motions: one and the same but for pairs that must be refused.

    The headset starts at `begin_s`, the camera up to `offset_s` earlier or later.
    """
    drift = rng.uniform(-1, 1) * setting.drift_ppm * 1e-6 + (setting.camera_rate - 1.0)
    head_s = begin_s + rng.uniform(0, 0.3) + np.arange(0.0, setting.seconds, 1.0 / HEADSET_HZ)
    head_s = head_s[: len(head_s) // BATCH * BATCH]
    rates = headset_motion(head_s) + rng.normal(0, setting.headset_noise, (len(head_s), 3))
    rates = (rates + rng.normal(0, 0.005, 3)) * (DEGREES if setting.degrees else 1.0)
    ticks = EPOCH_TICKS + np.rint(head_s * 1e7).astype(np.int64)
    vinyl = 10**12 + np.rint(head_s * 1e9 * (1.0 + rng.uniform(-0.01, 0.01))).astype(np.int64)
    batches = len(head_s) // BATCH
    delay_s = rng.exponential(setting.jitter_s, batches)
    delay_s += (rng.random(batches) < 0.01) * rng.uniform(1e-3, max(setting.late_s, 1e-3), batches)
    soc = np.repeat(ticks[::BATCH] + np.rint(delay_s * 1e7).astype(np.int64), BATCH)
    kept = np.repeat(rng.random(batches) >= setting.lost, BATCH)
    start_s = begin_s + rng.uniform(-1.0, 1.0) * setting.offset_s
    truth = Truth(start_s, drift, setting.seconds, setting.curve_s, setting.warm_s, setting.jumps)
    media_s = -0.00227 + np.arange(0.0, setting.seconds - 0.5, 1.0 / CAMERA_HZ)
    camera = camera_motion(start_s + truth.world_s(media_s)) @ _random_rotation(rng).T
    if setting.slip_deg:
        slipped = media_s > setting.seconds * rng.uniform(0.35, 0.65)
        camera[slipped] = camera[slipped] @ _rotation(rng, np.deg2rad(setting.slip_deg)).T
    camera += rng.normal(0, setting.camera_noise, camera.shape) + rng.normal(0, 0.005, 3)
    camera = np.clip(np.rint(camera * 939), -32768, 32767) / 939
    return Pair(vinyl[kept], soc[kept], rates[kept].astype(np.float32), ticks[kept], media_s, camera, truth)


def _random_rotation(rng: np.random.Generator) -> Floats:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.sign(np.linalg.det(q))


def _rotation(rng: np.random.Generator, angle: float) -> Floats:
    axis = rng.normal(size=3)
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


Maker = Callable[[np.random.Generator], Pair]


def simulated(setting: Setting, rms_deg: float = 35.0) -> Maker:
    """Pairs of one simulated head."""

    def make(rng: np.random.Generator) -> Pair:
        around = setting.offset_s + MARGIN_S + sum(abs(size) for _, size in setting.jumps)
        motion = simulated_motion(rng, setting.seconds, rms_deg=rms_deg, before_s=around)
        return make_pair(motion, motion, rng, setting)

    return make


def drawn(draw: Callable[[np.random.Generator], Setting], rms_deg: float = 35.0) -> Maker:
    """Pairs of one simulated head whose setting is drawn first."""
    return lambda rng: simulated(draw(rng), rms_deg)(rng)


def joined(data: Path, setting: Setting) -> Maker:
    """Pairs of one real head over ten minutes."""

    def make(rng: np.random.Generator) -> Pair:
        around = setting.offset_s + MARGIN_S
        motion = joined_real_motion(data, rng, setting.seconds + 2 * around)
        return make_pair(motion, motion, rng, setting, around)

    return make


def real_clip(data: Path, names: tuple[str, ...], setting: Setting) -> Maker:
    """Pairs cut out of one real recording."""

    def make(rng: np.random.Generator) -> Pair:
        motion, length_s = real_motion(data, str(rng.choice(names)))
        begin_s = rng.uniform(2.0, length_s - setting.seconds - 4.0)
        return make_pair(motion, motion, rng, setting, begin_s)

    return make


def unrelated(rng: np.random.Generator) -> Pair:
    """Two heads that have nothing to do with each other."""
    return make_pair(simulated_motion(rng, 60.0), simulated_motion(rng, 60.0), rng, Setting())


def unrelated_long(rng: np.random.Generator) -> Pair:
    """The same over ten minutes."""
    setting = Setting(seconds=600.0, offset_s=4.0)
    return make_pair(simulated_motion(rng, 600.0), simulated_motion(rng, 600.0), rng, setting)


def unrelated_real(data: Path, seconds: float = 60.0) -> Maker:
    """Two real recordings of different walks or hands, or two far stretches of one."""
    names = ("ear_normal_right", "ear_slow_left", "ear_fast_right", "fusion_hand")

    def make(rng: np.random.Generator) -> Pair:
        a, b = (real_motion(data, str(name))[0] for name in rng.choice(names, 2, replace=False))
        begin, other = rng.uniform(2.0, 60.0, 2)
        return make_pair(a, lambda t: b(t - begin + other), rng, Setting(seconds=seconds), begin)

    return make


def ten_minutes(rng: np.random.Generator, **changes: object) -> Setting:
    """Setting of ten minutes, in either unit."""
    return replace(Setting(seconds=600.0, offset_s=5.0, degrees=bool(rng.random() < 0.5)), **changes)  # type: ignore[arg-type]


def sign(rng: np.random.Generator) -> float:
    """Plus or minus one."""
    return float(rng.choice([-1.0, 1.0]))


def one_jump(rng: np.random.Generator, low: float, high: float, seconds: float = 600.0) -> Setting:
    """A clock that jumps once by `low` to `high` seconds."""
    size = sign(rng) * np.exp(rng.uniform(np.log(low), np.log(high)))
    return ten_minutes(rng, seconds=seconds, jumps=((float(rng.uniform(0.2, 0.8) * seconds), float(size)),))


def two_jumps(rng: np.random.Generator) -> Setting:
    """A clock that jumps twice."""
    at = np.sort(rng.uniform([120.0, 330.0], [270.0, 480.0]))
    sizes = [sign(rng) * np.exp(rng.uniform(np.log(0.006), np.log(0.4))) for _ in range(2)]
    return ten_minutes(rng, jumps=tuple((float(t), float(s)) for t, s in zip(at, sizes, strict=True)))


def same(motion: Motion, rng: np.random.Generator) -> Pair:
    """A minute of both devices in one motion."""
    return make_pair(motion, motion, rng, Setting())
