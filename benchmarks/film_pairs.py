"""Two virtual cameras without a headset, through `adopt --sync`: how far off the map is, against its stated bound.

    python -P benchmarks/film_pairs.py [--pairs 20] [--seed 1]

Both ride on one head, each with its own mount, crystal, inertial sensor and start. Truth is the kitchen's clocks.
Prints a line a pair and the sums; exit 1 where a pair is not `aligned`, or off by more than its bound or 1 ms.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from camera_films import FilmPlan, synthesize

from kitchensync.virtual_kitchen.world.clocks import camera_clock
from kitchensync.virtual_kitchen.world.motion import simulated_motion

COMMAND = str(Path(sys.executable).parent / "kitchensync")
MOST_MS, RATE = 1.0, 30000 / 1001
SMALL = (320, 180, b"avc1")


def pair(seed: int) -> dict[str, Any]:
    """Film a pair, adopt it, and hold its certificate against the clocks of both cameras."""
    draw = random.Random(seed)
    seeds, later_s = (10 * seed + 1, 10 * seed + 2), draw.uniform(0.5, 20.0)
    seconds = draw.uniform(25.0, 120.0)
    plans = (
        FilmPlan(round((seconds + 25.0) * RATE), *SMALL, seed=seeds[0]),
        FilmPlan(round(seconds * RATE), *SMALL, seed=seeds[1], start_world_s=later_s),
    )
    with tempfile.TemporaryDirectory(prefix="film-pairs-") as folder:
        films = []
        for name, plan in zip("ab", plans, strict=True):
            place = Path(folder) / name
            place.mkdir()
            synthesize(place, plan, simulated_motion(seed))
            films += [str(path) for path in place.glob("*.MP4")]
        command = [COMMAND, "adopt", "pair", *films, "--data", folder, "--sync", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        [said] = json.loads(done.stdout)["sync"]["pairs"]
    row = {"seed": seed, "seconds": round(seconds, 1), "later_s": round(later_s, 2), "status": said["status"]}
    if not said["samples"]:
        return row | {"reasons": said["reasons"]}
    film_s, reference_s = np.array(said["samples"]).T
    world_s = camera_clock(seeds[1]).world_s_at(film_s, later_s)
    true_s = world_s / (1 + camera_clock(seeds[0]).drift_ppm * 1e-6)
    off_ms = float(np.abs(reference_s - true_s).max()) * 1e3
    return row | {"off_ms": round(off_ms, 4), "bound95_ms": max(said["sigma"]["bound95_ms"])}


def main() -> int:
    """Print a line a pair, and the sums."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for number in range(options.pairs):
        rows.append(pair(100 * options.seed + number))
        print(json.dumps(rows[-1]), flush=True)
    aligned = [row for row in rows if row["status"] == "aligned"]
    beyond = [row for row in aligned if row["off_ms"] > row["bound95_ms"] or row["off_ms"] > MOST_MS]
    worst_ms = max((row["off_ms"] for row in aligned), default=0.0)
    print(
        f"{len(aligned)} of {len(rows)} aligned, at most {worst_ms:.4f} ms off, {len(beyond)} beyond bound or 1 ms"
    )
    return int(bool(beyond) or len(aligned) < len(rows))


if __name__ == "__main__":
    sys.exit(main())
