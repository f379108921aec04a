"""Trials of lens and mount: rendered boards through optics that are known, seed by seed.

    python -P benchmarks/optics/calibration_trials.py --trials 50 --workers 2

Each trial draws optics, a mount, 30 views for the lens (1920 x 1080) and 20 instants for the mount (front camera of
1280 x 720), renders them with blur and noise, and runs what `kitchensync calibrate` runs. Held = two standard
deviations held the truth.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kitchensync.calibration.estimate.board import Board, BoardDetection, Detector
from kitchensync.calibration.estimate.intrinsics import LENSES, Intrinsics, estimate
from kitchensync.calibration.estimate.joint_cameras import BoardPair, from_board
from kitchensync.storage.geometry.camera_models import Pinhole
from kitchensync.virtual_kitchen.world import boards
from kitchensync.virtual_kitchen.world.optics import Optics

BOARD, PRINT = Board(), boards.DrawnBoard(11, 8, 0.024, 0.018)
MIDDLE_M = (0.132, 0.096)
VIEWS, INSTANTS = 30, 20
KINDS = ("fisheye", "pinhole")
MOUNT_NAMES = ("turn x", "turn y", "turn z", "place x", "place y", "place z")
FRONT = Optics("pinhole", 1280, 720, 1010, 1010, 639.5, 359.5, (0, 0, 0, 0, 0))
TARGETS = {"focal_percent": 0.2, "distortion_px": 0.3, "turn_deg": 0.1, "place_mm": 3.0}


def drawn_optics(kind: str, rng: np.random.Generator) -> Optics:
    """Draw a lens near a GoPro's wide or linear one."""
    centre = (960 + rng.normal(0, 8), 540 + rng.normal(0, 8))
    stretch = 1 + rng.normal(0, 0.002)
    if kind == "fisheye":
        focal = 880 * (1 + rng.normal(0, 0.02))
        k = tuple(np.array([0.03, -0.01, 0.004, -0.001]) * (1 + rng.normal(0, 0.2, 4)))
    else:
        focal = 1250 * (1 + rng.normal(0, 0.02))
        k = tuple(np.array([-0.12, 0.08, 5e-4, -4e-4, -0.01]) * (1 + rng.normal(0, 0.2, 5)))
    return Optics(kind, 1920, 1080, focal, focal * stretch, *centre, k)


def drawn_pose(
    optics: Optics, rng: np.random.Generator, near_m: float, far_m: float, rim: float
) -> np.ndarray:
    """Draw a place for the board in a picture."""
    ray = optics.ray(*(rng.uniform(rim, 1 - rim, 2) * [optics.width, optics.height]))
    tilt = (float(rng.uniform(-0.7, 0.7)), float(rng.uniform(-0.7, 0.7)))
    return boards.looking_at(
        PRINT, float(rng.uniform(near_m, far_m)), tilt, float(rng.uniform(-0.4, 0.4)), MIDDLE_M, ray
    )


def trial(kind: str, seed: int) -> dict[str, Any]:
    """Run one trial and return its errors and how many sigmas they are."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    optics, detector = drawn_optics(kind, rng), Detector(BOARD)
    camera, front = boards.BoardCamera(optics, PRINT), boards.BoardCamera(FRONT, PRINT)
    views: list[BoardDetection] = []
    for index in range(VIEWS):
        seen = detector.find(camera.see(drawn_pose(optics, rng, 0.2, 0.45, 0.1), rng=rng), f"view {index}")
        views += [seen] if seen is not None else []
    lens = estimate(views, BOARD, kind)
    truth = np.array([optics.fx, optics.fy, optics.cx, optics.cy, *optics.k])
    mount = np.eye(4)
    mount[:3, :3] = Rotation.from_rotvec(rng.normal(0, 0.1, 3)).as_matrix()
    mount[:3, 3] = rng.normal(0, 0.05, 3)
    pairs = []
    for index in range(INSTANTS):
        pose = drawn_pose(FRONT, rng, 0.35, 0.7, 0.35)
        a = detector.find(front.see(pose, rng=rng), f"instant {index}")
        b = detector.find(camera.see(mount @ pose, rng=rng), f"instant {index}")
        if a is not None and b is not None:
            pairs.append(BoardPair(a, b, Pinhole(1280, 720, 1010, 1010, 639.5, 359.5)))
    found = from_board(pairs, BOARD, lens)
    turn = Rotation.from_matrix(found.b_from_a[:3, :3] @ mount[:3, :3].T).as_rotvec()
    place = found.b_from_a[:3, 3] - mount[:3, 3]
    z_lens = (lens.lens.parameters - truth) / lens.sigma
    z_mount = np.concatenate((turn, place)) / found.sigma
    return {
        "lens": kind,
        "seed": seed,
        "focal_percent": float(100 * np.abs(lens.lens.parameters[:2] / truth[:2] - 1).max()),
        "distortion_px": distortion_px(lens, optics),
        "turn_deg": float(np.degrees(np.linalg.norm(turn))),
        "place_mm": float(1e3 * np.linalg.norm(place)),
        "lens_held": (np.abs(z_lens) < 2).tolist(),
        "mount_held": (np.abs(z_mount) < 2).tolist(),
        "lens_sigmas": z_lens.tolist(),
        "mount_sigmas": z_mount.tolist(),
        "lens_freedom": lens.freedom.tolist(),
        "lens_widened": (lens.sigma / np.sqrt(np.diag(lens.covariance))).tolist(),
        "mount_widened": (found.sigma / np.sqrt(np.diag(found.covariance))).tolist(),
        "lens_systematic": (np.sqrt(np.diag(lens.systematic)) / lens.sigma).tolist(),
        "mount_systematic": (np.sqrt(np.diag(found.systematic)) / found.sigma).tolist(),
    }


def distortion_px(found: Intrinsics, optics: Optics) -> float:
    """RMS over the picture of where truth and estimate put the same rays, the best turn taken out."""
    rays = optics.ray_table()[::30, ::30].reshape(-1, 3)
    here = found.lens.project(rays)
    turns = np.column_stack(
        [(found.lens.project(rays + 1e-5 * np.cross(axis, rays)) - here).ravel() / 1e-5 for axis in np.eye(3)]
    )
    off = (optics.pixels(rays) - here).ravel()
    off -= turns @ np.linalg.lstsq(turns, off, rcond=None)[0]
    return float(np.sqrt(np.mean(np.sum(off.reshape(-1, 2) ** 2, axis=1))))


def all_trials(seeds: range, workers: int, keep: Path | None) -> dict[str, list[dict[str, Any]]]:
    """Run the trials of both lens models; those that are in `keep` (JSON lines) are taken from there."""
    lines = keep.read_text(encoding="utf-8").splitlines() if keep is not None and keep.exists() else []
    known = {(row["lens"], row["seed"]): row for row in map(json.loads, lines)}
    todo = [(kind, seed) for seed in seeds for kind in KINDS if (kind, seed) not in known]
    with ProcessPoolExecutor(workers) as pool:
        for row in pool.map(trial, *zip(*todo, strict=True)) if todo else ():
            known[row["lens"], row["seed"]] = row
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    return {kind: [known[kind, seed] for seed in seeds] for kind in KINDS}


def main() -> None:
    """Run the trials of both lens models and print a table, worst errors and how often the doubt held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="file of finished trials: a run that was stopped goes on")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    seeds = range(wanted.first_seed, wanted.first_seed + wanted.trials)
    results = all_trials(seeds, wanted.workers, wanted.keep)
    if wanted.json:
        print(json.dumps({"schema": "calibration-trials/1", "trials": results}))
        return
    print(f"seeds {seeds.start} to {seeds.stop - 1}; median / worst (target)")
    for kind, rows in results.items():
        for name, target in TARGETS.items():
            values = [row[name] for row in rows]
            verdict = "ok" if max(values) <= target else "MISSED"
            print(f"{kind:8} {name:14} {np.median(values):8.4f} / {max(values):8.4f}  ({target}) {verdict}")
    print("\n".join(doubt_lines(results)))


def doubt_lines(results: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Say as a table how often two stated deviations held the truth, and how large errors were, in deviations.

    The mean and the scatter (RMS) of normal errors that are stated rightly are 0 and 1; `width` is the median stated
    deviation over the median error, times 0.6745: 1 is just right, 1.2 is a fifth too wide.
    """
    lines = ["| lens | parameter | held | mean | scatter | width |", "|---|---|---|---|---|---|"]
    everything = []
    for kind, rows in results.items():
        every = np.array([row["lens_sigmas"] + row["mount_sigmas"] for row in rows])
        everything.append(every.ravel())
        for name, z in zip((*LENSES[kind].names, *MOUNT_NAMES), every.T, strict=True):
            lines.append(f"| {kind} | {name} {doubt_words(z)}")
        lines.append(f"| {kind} | all {doubt_words(every.ravel())}")
    return [*lines, f"| both | all {doubt_words(np.concatenate(everything))}"]


def doubt_words(sigmas: np.ndarray) -> str:
    """Return the cells of the table for errors (n,) in stated standard deviations."""
    held, size = np.abs(sigmas) < 2, np.sqrt(np.mean(sigmas**2))
    width = norm.ppf(0.75) / np.median(np.abs(sigmas))
    count = f"{held.sum()} of {len(held)} ({held.mean():.1%})"
    return f"| {count} | {sigmas.mean():+.2f} | {size:.2f} | {width:.2f} |"


if __name__ == "__main__":
    main()
