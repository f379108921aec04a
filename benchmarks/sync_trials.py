"""Trial bench of the alignment: seeded pairs with a known clock map, one table of errors a class.

Run `python benchmarks/sync_trials.py [--trials N] [--only CLASS] [--data DIR]`. The generator shares nothing
with the code under test: the truth is an exact linear clock, and both gyroscopes are cut from one motion.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import signal
from scipy.interpolate import CubicSpline

Floats = npt.NDArray[np.floating]
Motion = Callable[[Floats], Floats]  # world seconds (n,) to rad/s (n, 3)

BATCH = 315
HEADSET_HZ = 6550.0
CAMERA_HZ = 199.25
EPOCH_TICKS = 133_875_715_436_816_907
DEGREES = 180.0 / np.pi
REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Pair:
    """What `kitchensync align` reads, and the truth: ticks = epoch + 1e7 (start + (1 + drift) t)."""

    vinyl_ns: npt.NDArray[np.int64]
    soc_ticks: npt.NDArray[np.int64]
    rad_per_s: npt.NDArray[np.float32]
    true_ticks: npt.NDArray[np.int64]
    t_s: Floats
    camera: Floats
    start_s: float
    drift: float

    def truth_ticks(self, t_s: Floats) -> npt.NDArray[np.int64]:
        """Headset ticks at media times, computed away from the epoch."""
        return EPOCH_TICKS + np.rint(1e7 * (self.start_s + (1.0 + self.drift) * t_s)).astype(np.int64)


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


def make_pair(
    headset_motion: Motion,
    camera_motion: Motion,
    rng: np.random.Generator,
    setting: Setting,
    begin_s: float = 0.0,
) -> Pair:
    """Cut both gyroscopes from their motions: one and the same but for pairs that must be refused."""
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
    start_s = begin_s + rng.uniform(0.1, 1.0) * setting.offset_s
    media_s = -0.00227 + np.arange(0.0, setting.seconds - 2.0 * setting.offset_s, 1.0 / CAMERA_HZ)
    turn = _random_rotation(rng)
    camera = camera_motion(start_s + (1.0 + drift) * media_s) @ turn.T
    camera += rng.normal(0, setting.camera_noise, camera.shape) + rng.normal(0, 0.005, 3)
    camera = np.clip(np.rint(camera * 939), -32768, 32767) / 939
    return Pair(
        vinyl[kept], soc[kept], rates[kept].astype(np.float32), ticks[kept], media_s, camera, start_s, drift
    )


def simulated_motion(rng: np.random.Generator, seconds: float, *, rms_deg: float = 35.0) -> Motion:
    """A head at work: slow wander, turns in bursts, and a little tremor."""
    hz = 200.0
    t_s = np.arange(-5.0, seconds + 5.0, 1.0 / hz)
    white = rng.normal(size=(3, len(t_s), 3))
    bands = [(0.05, 0.5), (0.3, 3.0), (3.0, 8.0)]
    parts = [
        signal.sosfiltfilt(signal.butter(2, band, "bandpass", fs=hz, output="sos"), noise, axis=0)
        for band, noise in zip(bands, white, strict=True)
    ]
    parts = [part / part.std() for part in parts]
    bursts = np.interp(t_s, np.arange(-5.0, seconds + 8.0, 2.5), rng.gamma(0.7, 1.4, int(seconds / 2.5) + 6))
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
    with np.load(data / "motion" / "real_gyro.npz") as archive:
        t_s, rates = archive[f"{name}_t"], archive[f"{name}_w"]
    return _spline(t_s, rates), float(t_s[-1])


def _spline(t_s: Floats, rates: Floats) -> Motion:
    spline = CubicSpline(t_s, rates.astype(np.float64), axis=0)

    def motion(at_s: Floats) -> Floats:
        return spline(at_s)

    return motion


def _random_rotation(rng: np.random.Generator) -> Floats:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.sign(np.linalg.det(q))


@dataclass(frozen=True)
class Outcome:
    """One trial: status, largest error over the media (ms), claimed 95 % bound (ms), and why."""

    status: str
    error_ms: float
    bound_ms: float
    reasons: tuple[str, ...]
    seconds: float


def run(pair: Pair, *, prior: tuple[float, float] | None = None) -> Outcome:
    """Align one pair; `prior` is seconds off the truth and its sigma."""
    from sync.gyro import Prior, align_pair, headset_gyro, in_blocks
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
    took = time.perf_counter() - began
    if found.clock_map is None:
        return Outcome(found.verdict.status, np.nan, np.nan, found.verdict.reasons, took)
    times = np.linspace(0.0, np.floor(pair.t_s[-1]) + 1.0, 31)
    error = np.abs(found.clock_map.to_ticks(times) - pair.truth_ticks(times)).max() / 1e4
    return Outcome(found.verdict.status, float(error), max(found.bound95_ms), found.verdict.reasons, took)


def _same(motion: Motion, rng: np.random.Generator, setting: Setting, begin_s: float = 0.0) -> Pair:
    return make_pair(motion, motion, rng, setting, begin_s)


def _real(data: Path, name: str, setting: Setting) -> Callable[[np.random.Generator], Pair]:
    motion, length_s = real_motion(data, name)

    def make(rng: np.random.Generator) -> Pair:
        return _same(motion, rng, setting, rng.uniform(2.0, length_s - setting.seconds - 4.0))

    return make


def _unrelated_real(data: Path) -> Callable[[np.random.Generator], Pair]:
    names = ["ear_normal_right", "ear_slow_left", "ear_fast_right", "fusion_hand"]
    motions = [real_motion(data, name)[0] for name in names]

    def make(rng: np.random.Generator) -> Pair:
        a, b = rng.choice(4, 2, replace=False)
        begin, other = rng.uniform(2.0, 60.0, 2)
        return make_pair(motions[a], lambda t: motions[b](t - begin + other), rng, Setting(), begin)

    return make


def classes(data: Path) -> dict[str, tuple[bool, Callable[[np.random.Generator], Pair]]]:
    """Every class: must it be refused, and how a pair of it is made."""

    def simulated(setting: Setting, rms_deg: float = 35.0) -> Callable[[np.random.Generator], Pair]:
        return lambda rng: _same(simulated_motion(rng, setting.seconds, rms_deg=rms_deg), rng, setting)

    def unrelated(rng: np.random.Generator) -> Pair:
        return make_pair(simulated_motion(rng, 60.0), simulated_motion(rng, 60.0), rng, Setting())

    table: dict[str, tuple[bool, Callable[[np.random.Generator], Pair]]] = {
        "simulated 60 s": (False, simulated(Setting())),
        "simulated 60 s, rad/s": (False, simulated(Setting(degrees=False))),
        "simulated 60 s, 5 % lost": (False, simulated(Setting(lost=0.05))),
        "simulated 60 s, slow": (False, simulated(Setting(), 10.0)),
        "simulated 60 s, still head": (False, simulated(Setting(), 2.5)),
        "simulated 10 min": (False, simulated(Setting(seconds=600.0, offset_s=5.0))),
        "10 s of little motion": (False, simulated(Setting(seconds=12.0, offset_s=0.5), 2.0)),
        "10 s of motion": (False, simulated(Setting(seconds=12.0, offset_s=0.5))),
        "nominal stamps, 60 s": (False, simulated(Setting(camera_rate=1.0084))),
        "nominal stamps, 10 min": (
            False,
            simulated(Setting(camera_rate=0.9916, seconds=600.0, offset_s=5.0)),
        ),
        "unrelated, simulated": (True, unrelated),
        "periodic only": (True, lambda rng: _same(walking_in_place(rng, 60.0), rng, Setting())),
        "on a table": (True, lambda rng: _same(still(rng, 60.0), rng, Setting())),
        "one on a table": (
            True,
            lambda rng: make_pair(simulated_motion(rng, 60.0), still(rng, 60.0), rng, Setting()),
        ),
    }
    if (data / "motion" / "real_gyro.npz").exists():
        for name in ("ear_normal_right", "ear_slow_left", "ear_fast_right"):
            table[f"real 60 s, {name}"] = (False, _real(data, name, Setting()))
            table[f"real 12 s, {name}"] = (False, _real(data, name, Setting(seconds=12.0, offset_s=0.5)))
        table["unrelated, real"] = (True, _unrelated_real(data))
    return table


def report(name: str, must_reject: bool, outcomes: list[Outcome]) -> str:
    """One line of the table."""
    usable = [o for o in outcomes if o.status != "not_aligned"]
    counts = "/".join(
        str(sum(o.status == status for o in outcomes)) for status in ("aligned", "check", "not_aligned")
    )
    slow = max(o.seconds for o in outcomes)
    if not usable:
        return f"{name:32s} {counts:>10s}  {'-':>8s} {'-':>8s} {'-':>8s} {'-':>7s} {slow:6.2f}"
    errors = np.array([o.error_ms for o in usable])
    covered = np.mean([o.error_ms <= o.bound_ms for o in usable])
    wrong = "  WRONG" if must_reject or errors.max() > 16.7 else ""
    median, p95, most = np.median(errors), np.percentile(errors, 95), errors.max()
    return f"{name:32s} {counts:>10s}  {median:8.3f} {p95:8.3f} {most:8.3f} {covered:7.0%} {slow:6.2f}{wrong}"


def main() -> int:
    """Run the trials and print the table; exit 1 when a pair that must be refused was accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20, help="seeded trials a class")
    parser.add_argument("--only", default="", help="classes whose name contains this")
    parser.add_argument("--prior-sigma", type=float, default=0.0, help="give clocks of this quality, s")
    parser.add_argument("--why", action="store_true", help="print the reasons of refusals")
    default = os.environ.get("KITCHENSYNC_SHARED_DATA", REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default), help="folder of the real sample data")
    options = parser.parse_args()
    title = f"class (seeds 0..{options.trials - 1})"
    print(f"{title:32s} ok/chk/not    median      p95      max covered  slowest")
    bad = 0
    for name, (must_reject, make) in classes(options.data).items():
        if options.only not in name:
            continue
        outcomes = []
        for seed in range(options.trials):
            rng = np.random.default_rng([seed, sum(name.encode())])
            pair = make(rng)
            sigma = options.prior_sigma
            prior = (float(rng.normal(0, sigma)), sigma) if sigma and not must_reject else None
            outcomes.append(run(pair, prior=prior))
        print(report(name, must_reject, outcomes), flush=True)
        if options.why:
            for seed, outcome in enumerate(outcomes):
                if outcome.reasons:
                    why = "; ".join(outcome.reasons)
                    print(f"    seed {seed}: {outcome.status}, {outcome.error_ms:.3f} ms: {why}")
        bad += must_reject and any(o.status != "not_aligned" for o in outcomes)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
