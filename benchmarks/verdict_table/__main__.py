"""Play every fault of the virtual kitchen at two intensities through `record`; set what is said beside the truth.

`faults` writes the page `docs/reference/faults-and-verdicts.md` and fails where a card is green below 0.95 coverage;
`clean` makes recordings without a fault, idle and under load, and counts verdicts below PASS. Both go on where an
interrupted run ended: one file a recording is kept in the folder given.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from fault_runs import Run, play
from verdict_page import page

from kitchensync.storage.verify.thresholds import COVERAGE_WARN, LATE_WARN_S

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "faults-and-verdicts.md"
SEED = 100
RAW: dict[str, Any] = {"streams": "depth_ahat,gyroscope,spatial_input", "link": "wired"}
"""Near depth as raw pictures: what is slow here is the camera, not a decoder."""
TRUTH_SLACK = 0.03
"""The truth knows nothing of what was on its way at the stop."""

BOTH = {
    "wrong_version": (["wrong_version:1.0.36"], ["wrong_version:0.9.0"]),
    "never_answer": (["never_answer:magnetometer"], ["never_answer:pv"]),
    "refuse_port": (["refuse_port:magnetometer"], ["refuse_port:pv"]),
    "drop_connection": (["drop_connection:pv@5"], [f"drop_connection:pv@{t}" for t in (4, 7, 10)]),
    "kill_port": (["kill_port:pv@14"], ["kill_port:pv@5"]),
    "half_packet": (["half_packet:pv@5"], [f"half_packet:pv@{t}" for t in (4, 7, 10)]),
    "garbage_size": (["garbage_size:pv@5"], ["garbage_size:pv@5", "garbage_size:gyroscope@8"]),
    "garbage_payload": (["garbage_payload:pv@5+0.2"], ["garbage_payload:pv@5+8"]),
    "time_jump": (["time_jump:pv@6+0.5"], ["time_jump:pv@6+5"]),
    "duplicate_stamps": (["duplicate_stamps:pv@5+0.3"], ["duplicate_stamps:pv@5+8"]),
    "stall": (["stall:pv@5+0.4"], ["stall:pv@5+60"]),
    "burst": (["burst:pv@5+2"], ["burst:pv@3+12"]),
    "slow_drip": (["slow_drip:pv@5+2"], ["slow_drip:pv@3+12"]),
    "depth_rate_drop": (["depth_rate_drop:depth_ahat@1+11"], ["depth_rate_drop:depth_ahat@0+60"]),
    "lost_tracking": (["lost_tracking:@5+1.5"], ["lost_tracking:@3+8"]),
    "black_pictures": (["black_pictures:pv@5+1.5"], ["black_pictures:pv@3+8"]),
    "frozen_gaze": (["frozen_gaze:@5+1.5"], ["frozen_gaze:@3+8"]),
    "still_sensor": (["still_sensor:gyroscope@5+1.5"], ["still_sensor:accelerometer@3+8"]),
    "app_restart": (["app_restart:@6+0.5"], ["app_restart:@5+6"]),
    "headset_swap": (["headset_swap:@6+1"], ["headset_swap:@5+6"]),
    "die": (["die:@12"], ["die:@5"]),
    "gopro_ignore_range": (["gopro_ignore_range"], ["gopro_ignore_range", "gopro_cut:100000x2"]),
    "gopro_slow": (["gopro_slow:800000"], ["gopro_slow:100000"]),
    "gopro_cut": (["gopro_cut:100000x1"], ["gopro_cut:100000x6"]),
    "gopro_truncate": (["gopro_truncate:100000x1"], ["gopro_truncate:100000x6"]),
    "gopro_stall": (["gopro_stall:100000+1"], ["gopro_stall:100000+12"]),
    "gopro_500": (["gopro_500@6+1"], ["gopro_500@5+8"]),
    "gopro_vanish": (["gopro_vanish@6+2"], ["gopro_vanish@5+600"]),
    "gopro_card_full": (["gopro_card_full@13"], ["gopro_card_full@5"]),
    "gopro_overheat": (["gopro_overheat@13"], ["gopro_overheat@5"]),
    "gopro_write_error": (["gopro_write_error@13"], ["gopro_write_error@5"]),
    "gopro_battery_dead": (["gopro_battery_dead@13"], ["gopro_battery_dead@5"]),
    "gopro_swap": (["gopro_swap@8+2"], ["gopro_swap@4+7"]),
    "gopro_new_card": (["gopro_new_card@4+2"], ["gopro_new_card@7+5"]),
}


def fault_runs() -> list[Run]:
    """Every fault, weak and strong; one that is there or not hits what needs it, and what does not."""
    runs = [Run("no_fault_1"), Run("no_fault_2")]
    for name, both in BOTH.items():
        more = RAW if name == "depth_rate_drop" else {}
        runs += [Run(f"{name}_{n}", faults, **more) for n, faults in enumerate(both, start=1)]
    runs.append(Run("research_mode_off_1", ["research_mode_off"], streams="pv,microphone"))
    runs.append(Run("research_mode_off_2", ["research_mode_off"]))
    return runs


def clean_runs(count: int, seconds: float) -> list[Run]:
    """Recordings without a loss on purpose: every second one under load, near depth slowing down in most of them."""
    rng = random.Random(16)
    runs = []
    for number in range(count):
        slow = [f"depth_rate_drop:depth_ahat@{rng.uniform(1, 6):.1f}+{rng.uniform(1, 8):.1f}"] * (
            number % 4 != 0
        )
        burners = (os.cpu_count() or 2) * (number % 2)
        runs.append(Run(f"clean_{number:03d}", slow, seconds, burners=burners))
    return runs


def worst_share(row: dict[str, Any]) -> tuple[float, float]:
    """Lowest coverage as it was said, cameras included, and as the truth has it."""
    stored = row.get("streams", {})
    said = [facts["coverage"] for facts in [*stored.values(), *row.get("cameras", {}).values()]]
    true = [facts["coverage"] for name, facts in row["truth"].items() if name in stored]
    return min([1.0, *(s for s in said if s is not None)]), min([1.0, *true])


def too_green(row: dict[str, Any]) -> bool:
    """Return whether a card is green over less than may be green."""
    said, true = worst_share(row)
    green = row["card"] == "good" or row["status"] == "PASS"
    return green and (said < COVERAGE_WARN or true < COVERAGE_WARN - TRUTH_SLACK)


def shows_loss(row: dict[str, Any]) -> bool:
    """Return whether the truth has a loss, or the virtual device itself too late."""
    facts = row["truth"].values()
    lost = any(f["dropped_by_backpressure"] or f["coverage"] < COVERAGE_WARN for f in facts)
    return lost or any((f["most_behind_ms"] or 0) > 1e3 * LATE_WARN_S for f in facts)


def run_all(runs: list[Run], keep: Path, part: tuple[int, int], most: int) -> list[dict[str, Any]]:
    """Play what no earlier run played, at most so many; `part` (i, n) takes every n-th of them."""
    keep.mkdir(parents=True, exist_ok=True)
    for number, run in enumerate(runs):
        file = keep / f"{run.name}.json"
        if most > 0 and number % part[1] == part[0] and not file.exists():
            most -= 1
            row = play(run, keep / f"{run.name}.run", SEED)
            file.with_suffix(".part").write_text(json.dumps(row, indent=1), encoding="utf-8")
            file.with_suffix(".part").replace(file)
            print(
                f"{run.name:24} {row['status']:8} {row['card']:6} {'; '.join(row['reasons'])[:150]}",
                flush=True,
            )
    files = [keep / f"{run.name}.json" for run in runs]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def clean_words(rows: list[dict[str, Any]]) -> str:
    """Report how many clean recordings are below PASS, and whether the truth shows why."""
    below = [row for row in rows if row["status"] != "PASS"]
    shown = [row for row in below if shows_loss(row)]
    lines = [
        f"{len(rows)} clean recordings, {len(below)} below PASS, {len(shown)} of them with a loss in the truth"
    ]
    lines += [
        f"  {row['name']} {row['status']}: {'; '.join(row['reasons'])} | {shows_loss(row)}" for row in below
    ]
    return "\n".join(lines)


def main() -> int:
    """Play, print, and return 1 where something is greener, or not as green, as it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["faults", "clean"])
    parser.add_argument(
        "--keep", type=Path, required=True, help="folder for what was found; run again to go on"
    )
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--part", default="0/1", help="I/N: every N-th run from the I-th on; several at once")
    parser.add_argument("--most", type=int, default=1000, help="play so many now, the others next time")
    parser.add_argument("--write", action="store_true", help="write the page of the manual")
    given = parser.parse_args()
    part = tuple(map(int, given.part.split("/")))
    runs = fault_runs() if given.what == "faults" else clean_runs(given.runs, given.seconds)
    rows = run_all(runs, given.keep, (part[0], part[1]), given.most)
    if given.what == "clean":
        print(clean_words(rows))
        return int(any(row["status"] != "PASS" and not shows_loss(row) for row in rows))
    if given.write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows, worst_share), encoding="utf-8")
    green = [row["name"] for row in rows if too_green(row)]
    print(
        f"{len(rows)} of {len(runs)} played; green below {COVERAGE_WARN} coverage: {', '.join(green) or 'none'}"
    )
    return int(bool(green))


if __name__ == "__main__":
    sys.exit(main())
