"""Trial bench of the alignment: seeded pairs with a known clock map, one table of errors a class.

Run `python benchmarks/sync_trials.py [--scale 1.0] [--only CLASS] [--workers 2] [--data DIR]`. The generator
shares nothing with the code under test: both gyroscopes are cut from one motion, and the truth is a formula.
Real motion is taken from the sample data when it is there. `--target-check` exits 1 when a class misses its target.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import signal
from scipy.interpolate import CubicSpline

if TYPE_CHECKING:
    from sync.pair_alignment import PairAlignment

Floats = npt.NDArray[np.floating]
Motion = Callable[[Floats], Floats]  # world seconds (n,) to rad/s (n, 3)

BATCH = 315
HEADSET_HZ = 6550.0
CAMERA_HZ = 199.25
EPOCH_TICKS = 133_875_715_436_816_907
DEGREES = 180.0 / np.pi
REPOSITORY = Path(__file__).resolve().parent.parent
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


def _random_rotation(rng: np.random.Generator) -> Floats:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.sign(np.linalg.det(q))


def _rotation(rng: np.random.Generator, angle: float) -> Floats:
    axis = rng.normal(size=3)
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


@dataclass(frozen=True)
class Outcome:
    """One trial: status, largest error over the media (ms), claimed 95 % bound (ms), and why."""

    status: str
    error_ms: float
    bound_ms: float
    reasons: tuple[str, ...]
    seconds: float
    placed_s: float = 0.0  # how far from the truth the worst jump was placed


def run(pair: Pair, *, prior: tuple[float, float] | None = None) -> Outcome:
    """Align one pair; `prior` is seconds off the truth and its sigma."""
    from sync.gyro import align_pair
    from sync.headset_gyro import headset_gyro, in_blocks
    from sync.pair_alignment import Prior
    from sync.resample import make_track
    from sync.stamps import repair_stamps

    began = time.perf_counter()
    repair = repair_stamps(pair.vinyl_ns, pair.soc_ticks)
    headset = headset_gyro(in_blocks(pair.vinyl_ns, pair.rad_per_s), repair)
    clocks = None
    if prior is not None:
        true_s = (int(pair.truth_ticks(np.zeros(1))[0]) - headset.epoch_ticks) / 1e7
        clocks = Prior(true_s + prior[0], prior[1], max(6.0, 3 * prior[1]), "trial")
    found = align_pair(headset, make_track("camera", pair.t_s, pair.camera), prior=clocks)
    return _outcome(found, pair, time.perf_counter() - began)


def _outcome(found: PairAlignment, pair: Pair, took: float) -> Outcome:
    """Compare an alignment with the truth."""
    if found.clock_map is None:
        return Outcome(found.verdict.status, np.nan, np.nan, found.verdict.reasons, took)
    times, breaks = _judged_times(pair), np.array([at for at, _ in pair.truth.jumps])
    error = np.abs(found.clock_map.to_ticks(times) - pair.truth_ticks(times)).max() / 1e4
    placed = 0.0
    if len(breaks):
        apart = np.abs(found.clock_map.breaks_s[:, None] - breaks[None, :])
        placed = float(apart.min(axis=0).max()) if apart.size else np.inf
    bound = max(found.bound95_ms)
    return Outcome(found.verdict.status, float(error), bound, found.verdict.reasons, took, placed)


def _judged_times(pair: Pair) -> Floats:
    """31 media times from 0 to the next whole second, and both sides of each jump at half a second and more."""
    times = np.linspace(0.0, np.floor(pair.t_s[-1]) + 1.0, 31)
    breaks = np.array([at for at, _ in pair.truth.jumps])
    if not len(breaks):
        return times
    times = np.concatenate([times, breaks - 0.5, breaks + 0.5])
    return times[np.abs(times[:, None] - breaks[None, :]).min(axis=1) > 0.49]


REAL_LONG = tuple(f"ear_{pace}_{side}" for pace in ("normal", "slow", "fast") for side in ("left", "right"))
Maker = Callable[[np.random.Generator], Pair]


@dataclass(frozen=True)
class Class:
    """A class of trials: how many, must they be refused, and what is asked of the error (ms).

    `make` makes the pair of a trial; without it `judge` runs the whole trial, for what is not gyroscope to gyroscope.
    """

    make: Maker | None
    trials: int
    reject: bool = False
    target: tuple[float, float] | None = None
    family: str = ""
    judge: Callable[[np.random.Generator], Outcome] | None = None


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


def _long(rng: np.random.Generator, **changes: object) -> Setting:
    return replace(Setting(seconds=600.0, offset_s=5.0, degrees=bool(rng.random() < 0.5)), **changes)  # type: ignore[arg-type]


def _sign(rng: np.random.Generator) -> float:
    return float(rng.choice([-1.0, 1.0]))


def _one_jump(rng: np.random.Generator, low: float, high: float, seconds: float = 600.0) -> Setting:
    size = _sign(rng) * np.exp(rng.uniform(np.log(low), np.log(high)))
    return _long(rng, seconds=seconds, jumps=((float(rng.uniform(0.2, 0.8) * seconds), float(size)),))


def _two_jumps(rng: np.random.Generator) -> Setting:
    at = np.sort(rng.uniform([120.0, 330.0], [270.0, 480.0]))
    sizes = [_sign(rng) * np.exp(rng.uniform(np.log(0.006), np.log(0.4))) for _ in range(2)]
    return _long(rng, jumps=tuple((float(t), float(s)) for t, s in zip(at, sizes, strict=True)))


def classes(data: Path) -> dict[str, Class]:
    """Every class, with the targets of the issue."""
    normal, slow, still_head = (0.10, 0.25), (0.20, 0.50), (0.40, 1.2)
    curved, clip, both_sides = (0.20, 0.40), (0.20, 0.60), (0.5, 1.0)
    minute = Setting()
    table = {
        "normal, +-5 s": Class(drawn(_long), 40, target=normal, family="normal"),
        "normal, +-60 s": Class(drawn(lambda r: _long(r, offset_s=60.0)), 30, target=normal, family="normal"),
        "normal, 5 % lost": Class(drawn(lambda r: _long(r, lost=0.05)), 12, target=normal, family="normal"),
        "slow": Class(drawn(_long, 10.0), 24, target=slow),
        "still head": Class(drawn(_long, 2.5), 24, target=still_head),
        "curvature 1-5 ms": Class(
            drawn(lambda r: _long(r, curve_s=_sign(r) * r.uniform(1e-3, 5e-3))), 24, target=curved
        ),
        "curvature below 0.5 ms": Class(
            drawn(lambda r: _long(r, curve_s=_sign(r) * r.uniform(0, 0.5e-3))), 24, target=curved
        ),
        "warm-up 1-4 ms": Class(drawn(lambda r: _long(r, warm_s=_sign(r) * r.uniform(1e-3, 4e-3))), 24),
        "jump 5-50 ms": Class(drawn(lambda r: _one_jump(r, 0.005, 0.05)), 24, target=both_sides),
        "jump 50-500 ms": Class(drawn(lambda r: _one_jump(r, 0.05, 0.5)), 24, target=both_sides),
        "jump 0.5-60 s (chapter)": Class(drawn(lambda r: _one_jump(r, 0.5, 60.0)), 24, target=both_sides),
        "two jumps": Class(drawn(_two_jumps), 24, target=both_sides),
        "mount slips 10-30 deg": Class(
            drawn(lambda r: _long(r, slip_deg=float(r.uniform(10, 30)))), 12, target=(0.3, 0.6)
        ),
        "nominal stamps": Class(
            drawn(lambda r: _long(r, camera_rate=1 + _sign(r) * r.uniform(0.002, 0.0125))), 12, target=normal
        ),
        "60-s clip": Class(simulated(minute), 40, target=clip),
        "60-s clip, rad/s": Class(simulated(replace(minute, degrees=False)), 20, target=clip),
        "60-s clip, 5 % lost": Class(simulated(replace(minute, lost=0.05)), 20, target=clip),
        "60-s clip, slow": Class(simulated(minute, 10.0), 20),
        "60-s clip, still head": Class(simulated(minute, 2.5), 20),
        "12-s clip": Class(simulated(Setting(seconds=12.0, offset_s=0.5)), 40),
        "12 s of little motion": Class(simulated(Setting(seconds=12.0, offset_s=0.5), 2.0), 40),
        "60 s, nominal stamps": Class(simulated(Setting(camera_rate=1.0084)), 24),
        "head pose, 10 min": Class(
            None, 20, judge=by_head_pose(Setting(seconds=600.0, offset_s=5.0)), target=(0.3, 1.8)
        ),
        "head pose, 60 s": Class(None, 20, judge=by_head_pose(minute)),
        "sound, 2 min": Class(None, 40, judge=by_sound()),
        "unrelated 60 s": Class(unrelated, 40, reject=True),
        "unrelated 10 min": Class(unrelated_long, 12, reject=True),
        "periodic only": Class(lambda r: _same(walking_in_place(r, 60.0), r), 20, reject=True),
        "on a table": Class(lambda r: _same(still(r, 60.0), r), 10, reject=True),
        "unrelated sounds": Class(None, 24, reject=True, judge=by_sound(related=False)),
        "unrelated head pose": Class(None, 12, reject=True, judge=by_head_pose(minute, related=False)),
        "one on a table": Class(
            lambda r: make_pair(simulated_motion(r, 60.0), still(r, 60.0), r, Setting()), 10, reject=True
        ),
    }
    if (data / "motion" / "real_gyro.npz").exists():
        ears = ("ear_normal_right", "ear_slow_left", "ear_fast_right")
        ten = Setting(seconds=600.0, offset_s=5.0)
        table["real motion"] = Class(joined(data, ten), 30, target=normal, family="normal")
        far = replace(ten, offset_s=60.0, degrees=False)
        table["real motion, +-60 s"] = Class(joined(data, far), 12, target=normal, family="normal")
        table["real 60-s clip"] = Class(real_clip(data, ears, minute), 40, target=clip)
        table["real 12-s clip"] = Class(real_clip(data, ears, Setting(seconds=12.0, offset_s=0.5)), 40)
        table["unrelated, real"] = Class(unrelated_real(data), 40, reject=True)
    return table


def by_sound(*, seconds: float = 120.0, related: bool = True) -> Callable[[np.random.Generator], Outcome]:
    """Trials of sound against sound."""

    def judge(rng: np.random.Generator) -> Outcome:
        began = time.perf_counter()
        said = _fallbacks().sound_trial(rng, seconds=seconds, related=related)
        return Outcome(**said, seconds=time.perf_counter() - began)

    return judge


def by_head_pose(setting: Setting, *, related: bool = True) -> Callable[[np.random.Generator], Outcome]:
    """Trials of the camera's gyroscope against the rates of the head pose."""

    def judge(rng: np.random.Generator) -> Outcome:
        from sync.gyro import align_pair
        from sync.head_pose import head_pose_gyro
        from sync.resample import make_track

        around = setting.offset_s + MARGIN_S
        motion = simulated_motion(rng, setting.seconds, before_s=around)
        other = motion if related else simulated_motion(rng, setting.seconds, before_s=around)
        pair = make_pair(motion, other, rng, setting)
        began = time.perf_counter()
        ends = (pair.true_ticks[[0, -1]] - EPOCH_TICKS) / 1e7
        headset = head_pose_gyro(*_fallbacks().poses(motion, rng, ends[0], ends[1], EPOCH_TICKS))
        found = align_pair(headset, make_track("camera", pair.t_s, pair.camera), unit="rad_per_s")
        return _outcome(found, pair, time.perf_counter() - began)

    return judge


def _fallbacks() -> ModuleType:
    """The trials beside this file; `python -P` keeps its folder out of the search path."""
    name = "kitchensync_sync_fallbacks"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("sync_fallbacks.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _same(motion: Motion, rng: np.random.Generator) -> Pair:
    return make_pair(motion, motion, rng, Setting())


@dataclass(frozen=True)
class Row:
    """What the trials of a class say together."""

    name: str
    kind: Class
    outcomes: list[Outcome] = field(default_factory=list)
    first_seed: int = 0

    @property
    def accepted(self) -> list[Outcome]:
        """Trials that got a clock map."""
        return [o for o in self.outcomes if o.status != "not_aligned"]

    def failures(self) -> list[str]:
        """What misses its target."""
        found = []
        errors = np.array([o.error_ms for o in self.accepted])
        if self.kind.reject:
            return [f"{len(errors)} accepted"] if len(errors) else []
        if len(errors) and errors.max() > 16.7:
            found.append("wrong by half a frame")
        if self.kind.family == "normal" and len(errors) < len(self.outcomes):
            found.append("refused")
        if self.kind.target and len(errors):
            for value, most in zip(
                (np.median(errors), np.percentile(errors, 95)), self.kind.target, strict=True
            ):
                if value > most:
                    found.append(f"{value:.2f} above {most:g} ms")
        if len(errors):
            found += ["bound too small"] if self.covered < 0.95 else []
            found += ["bound too large"] if self.ratio > 4.0 else []
        return found

    @property
    def covered(self) -> float:
        """Share of accepted trials inside their bound."""
        return float(np.mean([o.error_ms <= o.bound_ms for o in self.accepted]))

    @property
    def ratio(self) -> float:
        """Median of bound over error."""
        return float(np.median([o.bound_ms / max(o.error_ms, 1e-9) for o in self.accepted]))

    def cells(self) -> list[str]:
        """The row of the table."""
        counts = [sum(o.status == s for o in self.outcomes) for s in ("aligned", "check", "not_aligned")]
        slow = f"{max(o.seconds for o in self.outcomes):.1f}"
        head = [
            self.name,
            f"{self.first_seed}..{self.first_seed + len(self.outcomes) - 1}",
            "/".join(map(str, counts)),
        ]
        target = (
            "{:g}/{:g}".format(*self.kind.target)
            if self.kind.target
            else "refuse"
            if self.kind.reject
            else ""
        )
        verdict = "; ".join(self.failures()) or "ok"
        if not self.accepted:
            return [*head, "", "", "", target, "", "", "", slow, verdict]
        errors = np.array([o.error_ms for o in self.accepted])
        numbers = [f"{x:.3f}" for x in (np.median(errors), np.percentile(errors, 95), errors.max())]
        placed = max(o.placed_s for o in self.accepted)
        where = f"{placed:.2f}" if placed else ""
        return [*head, *numbers, target, f"{self.covered:.0%}", f"{self.ratio:.1f}", where, slow, verdict]


TITLES = ("class", "seeds", "ok/check/not", "median", "p95", "max", "target", "covered", "ratio", "placed s")
TITLES += ("slowest s", "verdict")


def trial(name: str, seed: int, data: Path, prior_sigma: float) -> Outcome:
    """Make and run one seeded trial."""
    kind = classes(data)[name]
    rng = np.random.default_rng([seed, sum(name.encode())])
    if kind.make is None:
        assert kind.judge is not None
        return kind.judge(rng)
    pair = kind.make(rng)
    prior = (float(rng.normal(0, prior_sigma)), prior_sigma) if prior_sigma and not kind.reject else None
    return run(pair, prior=prior)


def _why(row: Row) -> None:
    for seed, o in enumerate(row.outcomes):
        if o.reasons or o.error_ms > o.bound_ms:
            why = "; ".join(o.reasons)
            print(
                f"    seed {seed}: {o.status}, {o.error_ms:.3f} of {o.bound_ms:.3f} ms, {o.placed_s:.2f} s: {why}"
            )


def main() -> int:
    """Run the trials and print the table; exit 1 when a pair that must be refused was accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of trials")
    parser.add_argument(
        "--first-seed", type=int, default=0, help="to judge by seeds that nothing was tuned on"
    )
    parser.add_argument("--only", default="", help="classes whose name holds this regular expression")
    parser.add_argument("--prior-sigma", type=float, default=0.0, help="give clocks of this quality, s")
    parser.add_argument(
        "--why", action="store_true", help="print the reasons of refusals and bounds that miss"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--target-check", action="store_true", help="exit 1 when any target is missed")
    default = os.environ.get("KITCHENSYNC_SHARED_DATA", REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default), help="folder of the real sample data")
    options = parser.parse_args()
    print("| " + " | ".join(TITLES) + " |\n" + "|---" * len(TITLES) + "|")
    wrong, missed, total = 0, 0, 0
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for name, kind in classes(options.data).items():
            if not re.search(options.only, name):
                continue
            count = max(1, round(kind.trials * options.scale))
            seeds = range(options.first_seed, options.first_seed + count)
            jobs = [pool.submit(trial, name, seed, options.data, options.prior_sigma) for seed in seeds]
            row = Row(name, kind, [job.result() for job in jobs], options.first_seed)
            print("| " + " | ".join(row.cells()) + " |", flush=True)
            if options.why:
                _why(row)
            wrong += kind.reject and bool(row.accepted)
            missed += bool(row.failures())
            total += count
    print(f"\n{total} trials, {missed} classes miss a target")
    return 1 if wrong or (options.target_check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
