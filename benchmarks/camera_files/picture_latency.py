"""Picture latency against films of the virtual kitchen that were taken late or early by a known amount.

    python -P benchmarks/camera_files/picture_latency.py --films 10 --seconds 20

Prints a table; `ratio` is the error over the stated sigma. Films are made in a temporary folder and removed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from kitchensync.sync.recording.camera_latency import measure_file
from kitchensync.virtual_kitchen.gopro.files.chapters import WallTimes
from kitchensync.virtual_kitchen.gopro.files.models import MODELS, FileIds
from kitchensync.virtual_kitchen.gopro.files.recorder import ClipFile
from kitchensync.virtual_kitchen.gopro.files.sensors import Instruments, Timeline
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.motion import simulated_motion

LARGEST_MS = 40.0


def film(folder: Path, seed: int, late_s: float, seconds: float) -> Path:
    """Film a seeded kitchen; its pictures show the world `late_s` after their stamps."""
    kitchen = Kitchen(seed, simulated_motion(seed), Truth(folder, seed))
    ids, wall = FileIds(MODELS["hero12"], seed, 1_750_000_000, 0), WallTimes(1_750_000_000, 1_750_000_000.0)
    path = folder / "GX010001.MP4"
    take = ClipFile(
        path,
        kitchen,
        Timeline(kitchen.camera_clock, 1.25),
        ids,
        wall,
        instruments=Instruments(picture_late_s=late_s),
    )
    for _ in range(round(seconds * 30000 / 1001)):
        take.add_frame()
    take.finish()
    return path


def main() -> None:
    """Film, measure, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--films", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--first-seed", type=int, default=500)
    options = parser.parse_args()
    print(
        "| seed | late ms | measured ms | sigma ms | error ms | ratio | R2 | s |\n|---|---|---|---|---|---|---|---|"
    )
    errors, refused = [], 0
    for seed in range(options.first_seed, options.first_seed + options.films):
        late_ms = float(np.random.default_rng(seed).uniform(-LARGEST_MS, LARGEST_MS))
        with tempfile.TemporaryDirectory() as folder:
            path = film(Path(folder), seed, late_ms / 1e3, options.seconds)
            began = time.monotonic()
            answer = measure_file(path, seconds=60.0)
        took_s = time.monotonic() - began
        if answer["status"] != "measured":
            refused += 1
            print(f"| {seed} | {late_ms:.2f} | refused: {'; '.join(answer['reasons'])} |", flush=True)
            continue
        error = answer["latency_ms"] - late_ms
        errors.append(abs(error))
        print(
            f"| {seed} | {late_ms:.2f} | {answer['latency_ms']:.2f} | {answer['sigma_ms']:.2f} | {error:.3f} |"
            f" {abs(error) / answer['sigma_ms']:.2f} | {answer['evidence']['r2']:.4f} | {took_s:.1f} |",
            flush=True,
        )
    if errors:
        print(f"\n{len(errors)} films, {refused} refused:", end=" ")
        print(f"median {np.median(errors):.3f} ms, largest {max(errors):.3f} ms")


if __name__ == "__main__":
    main()
