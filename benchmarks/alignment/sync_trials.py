"""Trial bench of the alignment: seeded pairs with a known clock map, one table of errors a class.

    python -P benchmarks/alignment/sync_trials.py [--scale 1.0] [--only CLASS] [--workers 2] [--results FILE]

The generator shares nothing with the code under test: both gyroscopes are cut from one motion, and the truth
is a formula. Real motion is taken from the sample data when it is there. `--target-check` exits 1 when a
class misses its target.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

# last of all: `python -P` keeps these files from shadowing packages
sys.path.append(str(Path(__file__).parent))

import sync_fallbacks
from sync_motion import Floats, Motion, real_motion, simulated_motion, still, walking_in_place
from sync_pairs import (
    BATCH,
    DEGREES,
    EPOCH_TICKS,
    MARGIN_S,
    Pair,
    Setting,
    drawn,
    joined,
    make_pair,
    one_jump,
    real_clip,
    same,
    sign,
    simulated,
    ten_minutes,
    two_jumps,
    unrelated,
    unrelated_long,
    unrelated_real,
)
from sync_table import TITLES, Class, Outcome, Row, read_results, write_result

if TYPE_CHECKING:
    from kitchensync.sync.align.pair_alignment import PairAlignment

__all__ = [
    "BATCH",
    "DEGREES",
    "EPOCH_TICKS",
    "Class",
    "Motion",
    "Outcome",
    "Setting",
    "classes",
    "make_pair",
    "real_motion",
    "run",
    "simulated",
    "simulated_motion",
    "still",
    "walking_in_place",
]

REPOSITORY = Path(__file__).resolve().parents[2]


def run(pair: Pair, *, prior: tuple[float, float] | None = None) -> Outcome:
    """Align one pair; `prior` is seconds off the truth and its sigma."""
    from kitchensync.storage.timeline.stamps import repair_stamps
    from kitchensync.sync.align.gyro import align_pair
    from kitchensync.sync.align.headset_gyro import headset_gyro, in_blocks
    from kitchensync.sync.align.prior import Prior
    from kitchensync.sync.fit.resample import make_track

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


def classes(data: Path) -> dict[str, Class]:
    """Every class, with the targets of the issue."""
    normal, slow, still_head = (0.10, 0.25), (0.20, 0.50), (0.40, 1.2)
    curved, clip, both_sides = (0.20, 0.40), (0.20, 0.60), (0.5, 1.0)
    minute = Setting()
    table = {
        "normal, +-5 s": Class(drawn(ten_minutes), 40, target=normal, family="normal"),
        "normal, +-60 s": Class(
            drawn(lambda r: ten_minutes(r, offset_s=60.0)), 30, target=normal, family="normal"
        ),
        "normal, 5 % lost": Class(
            drawn(lambda r: ten_minutes(r, lost=0.05)), 20, target=normal, family="normal"
        ),
        "slow": Class(drawn(ten_minutes, 10.0), 20, target=slow),
        "still head": Class(drawn(ten_minutes, 2.5), 20, target=still_head),
        "curvature 1-5 ms": Class(
            drawn(lambda r: ten_minutes(r, curve_s=sign(r) * r.uniform(1e-3, 5e-3))), 20, target=curved
        ),
        "curvature below 0.5 ms": Class(
            drawn(lambda r: ten_minutes(r, curve_s=sign(r) * r.uniform(0, 0.5e-3))), 20, target=curved
        ),
        "warm-up 1-4 ms": Class(drawn(lambda r: ten_minutes(r, warm_s=sign(r) * r.uniform(1e-3, 4e-3))), 20),
        "jump 5-50 ms": Class(drawn(lambda r: one_jump(r, 0.005, 0.05)), 20, target=both_sides),
        "jump 50-500 ms": Class(drawn(lambda r: one_jump(r, 0.05, 0.5)), 20, target=both_sides),
        "jump 0.5-60 s (chapter)": Class(drawn(lambda r: one_jump(r, 0.5, 60.0)), 20, target=both_sides),
        "two jumps": Class(drawn(two_jumps), 20, target=both_sides),
        "mount slips 10-30 deg": Class(
            drawn(lambda r: ten_minutes(r, slip_deg=float(r.uniform(10, 30)))), 12, target=(0.3, 0.6)
        ),
        "nominal stamps": Class(
            drawn(lambda r: ten_minutes(r, camera_rate=1 + sign(r) * r.uniform(0.002, 0.0125))),
            12,
            target=normal,
        ),
        "60-s clip": Class(simulated(minute), 60, target=clip),
        "60-s clip, rad/s": Class(simulated(replace(minute, degrees=False)), 40, target=clip),
        "60-s clip, 5 % lost": Class(simulated(replace(minute, lost=0.05)), 60, target=clip),
        "60-s clip, slow": Class(simulated(minute, 10.0), 60),
        "60-s clip, still head": Class(simulated(minute, 2.5), 60),
        "12-s clip": Class(simulated(Setting(seconds=12.0, offset_s=0.5)), 60),
        "12 s of little motion": Class(simulated(Setting(seconds=12.0, offset_s=0.5), 2.0), 60),
        "60 s, nominal stamps": Class(simulated(Setting(camera_rate=1.0084)), 60),
        "head pose, 10 min": Class(
            None, 20, judge=by_head_pose(Setting(seconds=600.0, offset_s=5.0)), target=(0.3, 1.8)
        ),
        "head pose, 60 s": Class(None, 60, judge=by_head_pose(minute)),
        "sound, 2 min": Class(None, 40, judge=by_sound()),
        "unrelated 60 s": Class(unrelated, 40, reject=True),
        "unrelated 10 min": Class(unrelated_long, 12, reject=True),
        "periodic only": Class(lambda r: same(walking_in_place(r, 60.0), r), 20, reject=True),
        "on a table": Class(lambda r: same(still(r, 60.0), r), 10, reject=True),
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
        table["real 60-s clip"] = Class(real_clip(data, ears, minute), 60, target=clip)
        table["real 12-s clip"] = Class(real_clip(data, ears, Setting(seconds=12.0, offset_s=0.5)), 60)
        table["unrelated, real"] = Class(unrelated_real(data), 40, reject=True)
    return table


def by_sound(*, seconds: float = 120.0, related: bool = True) -> Callable[[np.random.Generator], Outcome]:
    """Trials of sound against sound."""

    def judge(rng: np.random.Generator) -> Outcome:
        began = time.perf_counter()
        said = sync_fallbacks.sound_trial(rng, seconds=seconds, related=related)
        return Outcome(**said, seconds=time.perf_counter() - began)

    return judge


def by_head_pose(setting: Setting, *, related: bool = True) -> Callable[[np.random.Generator], Outcome]:
    """Trials of the camera's gyroscope against the rates of the head pose."""

    def judge(rng: np.random.Generator) -> Outcome:
        from kitchensync.sync.align.gyro import align_pair
        from kitchensync.sync.align.headset_gyro import head_pose_gyro
        from kitchensync.sync.fit.resample import make_track

        around = setting.offset_s + MARGIN_S
        motion = simulated_motion(rng, setting.seconds, before_s=around)
        other = motion if related else simulated_motion(rng, setting.seconds, before_s=around)
        pair = make_pair(motion, other, rng, setting)
        began = time.perf_counter()
        ends = (pair.true_ticks[[0, -1]] - EPOCH_TICKS) / 1e7
        headset = head_pose_gyro(*sync_fallbacks.poses(motion, rng, ends[0], ends[1], EPOCH_TICKS))
        found = align_pair(headset, make_track("camera", pair.t_s, pair.camera), unit="rad_per_s")
        return _outcome(found, pair, time.perf_counter() - began)

    return judge


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
    parser.add_argument(
        "--results",
        type=Path,
        help="file that keeps every trial, one JSON object a line; a run goes on with it",
    )
    parser.add_argument("--show", action="store_true", help="only print the table of the results file")
    parser.add_argument("--target-check", action="store_true", help="exit 1 when any target is missed")
    default = os.environ.get("KITCHENSYNC_SHARED_DATA", REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default), help="folder of the real sample data")
    options = parser.parse_args()
    wrong, missed, total = 0, 0, 0
    print("| " + " | ".join(TITLES) + " |\n" + "|---" * len(TITLES) + "|")
    for row in _rows(options):
        print("| " + " | ".join(row.cells()) + " |", flush=True)
        if options.why:
            print("\n".join(row.why()))
        wrong += row.kind.reject and bool(row.accepted)
        missed += bool(row.failures())
        total += len(row.outcomes)
    print(f"\n{total} trials, {missed} classes miss a target")
    return 1 if wrong or (options.target_check and missed) else 0


def _rows(options: argparse.Namespace) -> Iterator[Row]:
    """Run the trials class by class; those that the results file knows are not run again."""
    known = read_results(options.results)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for name, kind in classes(options.data).items():
            if not re.search(options.only, name):
                continue
            count = max(1, round(kind.trials * options.scale))
            seeds = range(options.first_seed, options.first_seed + count)
            if options.show:
                done = [known[name, seed] for seed in seeds if (name, seed) in known]
                if done:
                    yield Row(name, kind, done, options.first_seed)
                continue
            jobs = {
                seed: pool.submit(trial, name, seed, options.data, options.prior_sigma)
                for seed in seeds
                if (name, seed) not in known
            }
            for seed, job in jobs.items():
                known[name, seed] = job.result()
                write_result(options.results, name, seed, known[name, seed])
            yield Row(name, kind, [known[name, seed] for seed in seeds], options.first_seed)


if __name__ == "__main__":
    sys.exit(main())
