"""Sessions in which the headset loses itself, through `record` and `verify --deep`: is each span named, and no other?

    python -P benchmarks/lost_sessions.py [--lost 20] [--clean 60] [--seed 1] [--at-once 3] [--results FILE]

As in published kitchen recordings tracking is lost for one to twelve seconds, mostly with black pictures, sometimes
with a gaze that stands still. Truth is the virtual kitchen's `truth.json`. All at real time, since the verdict counts
by the capture clock. A run goes on where it stopped. Exit 1 where a span over 1 s is not named to 0.2 s, or one is
named that is none.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "packet_path"))

from whole import COMMAND, free_host

from kitchensync.storage.recording import Recording, open_recording

STREAMS = "spatial_input,eye_tracking,gyroscope,pv"
SECONDS, MOST_OFF_S = 50.0, 0.2
TICKS_PER_S = 10_000_000
Spans = dict[str, list[tuple[float, float]]]
NAMES = {
    "lost_tracking": "hololens/head position",
    "frozen_gaze": "hololens/gaze",
    "black_pictures": "hololens/pv black",
}
"""What the verdict calls what a fault takes away."""


def planned_faults(draw: random.Random) -> list[str]:
    """Draw one to three spans, apart from each other, as `simulate --fault` has them."""
    faults, at_s = [], draw.uniform(4, 12)
    for _ in range(draw.randint(1, 3)):
        lasts_s = draw.uniform(1.3, 12)
        if at_s + lasts_s > SECONDS - 6:
            break
        span = f"@{at_s:.2f}+{lasts_s:.2f}"
        faults.append(f"lost_tracking:{span}")
        faults += [f"black_pictures:pv{span}"] if draw.random() < 0.7 else []
        at_s += lasts_s + draw.uniform(3, 10)
    if draw.random() < 0.3 and at_s < SECONDS - 12:
        faults.append(f"frozen_gaze:@{at_s:.2f}+{draw.uniform(1.5, 4):.2f}")
    return faults


def planned(number: int, options: argparse.Namespace) -> dict[str, Any]:
    """Record the session of a number: the first ones with faults, the others without."""
    seed = 1000 * options.seed + number
    return session(number, seed, planned_faults(random.Random(seed)) if number < options.lost else [])


def session(number: int, seed: int, faults: list[str]) -> dict[str, Any]:
    """Record one session and hold its verdict against the truth."""
    host = free_host()
    with tempfile.TemporaryDirectory(prefix="lost-sessions-") as folder:
        root = Path(folder)
        place = ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0"]
        command = [COMMAND, "simulate", "--seed", str(seed), "--seconds", str(SECONDS)]
        command += [
            *place,
            *(word for fault in faults for word in ("--fault", fault)),
            "--out",
            str(root / "sim"),
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as kitchen:
            assert kitchen.stdout is not None
            kitchen.stdout.readline()
            answer(["record", "take", "--data", str(root), "--hololens", host, "--streams", STREAMS])
            kitchen.wait(timeout=600)
        said = answer(["verify", "--deep", str(root / "take")])
        truth = json.loads((root / "sim" / "truth.json").read_text())
        with open_recording(root / "take") as recording:
            return {"session": number, "faults": faults} | judged(said, truth["faults"], recording)


def answer(arguments: list[str]) -> dict[str, Any]:
    """Return what a command says as JSON."""
    done = subprocess.run([COMMAND, *arguments, "--json"], capture_output=True, text=True, check=False)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def judged(said: dict[str, Any], faults: list[dict[str, Any]], recording: Recording) -> dict[str, Any]:
    """Compare spans that were named with those that were played: how far off each is, what is missing or too much."""
    stamps = (recording[name].index["device_ticks"] for name in recording.streams)
    zero = min(int(ticks[0]) for ticks in stamps if len(ticks))
    true: Spans = defaultdict(list)
    for fault in faults:
        span = ((fault[end] - zero) / TICKS_PER_S for end in ("start_ticks", "end_ticks"))
        true[NAMES[fault["name"]]].append(tuple(span))  # type: ignore[arg-type]
    named = {what: [tuple(span) for span in spans] for what, spans in said["lost"].items()}
    if black := said["streams"]["hololens/pv"].get("black"):
        named["hololens/pv black"] = [tuple(span) for span in black]
    off_s, missing, more = [], [], []
    for what in sorted({*true, *named}):
        left = list(named.get(what, []))
        for first, last in true.get(what, []):
            near = min(left, key=lambda one: abs(one[0] - first), default=None)
            if near is None or max(abs(near[0] - first), abs(near[1] - last)) > 1.0:
                missing.append([what, round(first, 2), round(last, 2)])
                continue
            left.remove(near)
            off_s.append(round(max(abs(near[0] - first), abs(near[1] - last)), 3))
        more += [[what, *span] for span in left]
    return {
        "status": said["status"],
        "reasons": said["reasons"],
        "off_s": off_s,
        "missing": missing,
        "more": more,
    }


def main() -> int:
    """Run the sessions that were not run; print a line each and the sums."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lost", type=int, default=20)
    parser.add_argument("--clean", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    kept = options.results.read_text().splitlines() if options.results and options.results.exists() else []
    rows = [json.loads(line) for line in kept]
    done = {row["session"] for row in rows}
    left = [number for number in range(options.lost + options.clean) if number not in done]
    with ThreadPoolExecutor(options.at_once) as pool:
        for row in pool.map(lambda number: planned(number, options), left):
            rows.append(row)
            print(json.dumps(row), flush=True)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    off_s = [off for row in rows for off in row["off_s"]]
    missing, more = (sum(len(row[key]) for row in rows) for key in ("missing", "more"))
    clean = [row for row in rows if not row["faults"]]
    passed = sum(row["status"] == "PASS" for row in clean)
    print(
        f"{len(off_s)} spans named, at most {max(off_s, default=0.0):.3f} s off; {missing} not named, {more} that are"
        f" none; {len(clean)} clean sessions, {passed} of them PASS"
    )
    return int(bool(missing or more) or max(off_s, default=0.0) > MOST_OFF_S)


if __name__ == "__main__":
    sys.exit(main())
