"""Play one recording against the virtual kitchen, and set what was said of it beside the kitchen's truth."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kitchensync.capture import served_kitchen
from kitchensync.capture.served_kitchen import KITCHENSYNC, ServedKitchen, simulator

ADAPTIVE = {"depth_ahat": 0.5}
NOMINAL_HZ = {
    "pv": 30.0, "depth_ahat": 45.0, "gyroscope": 21.0, "accelerometer": 11.8,
    "magnetometer": 4.5, "spatial_input": 30.0, "microphone": 46.9,
}  # fmt: skip
CARD = re.compile(r'class="verdict (\w+)"')
LIMIT_S = 400


@dataclass(frozen=True)
class Run:
    """One recording: what goes wrong, for how long it is made, which streams are asked for (none: the default)."""

    name: str
    faults: Sequence[str] = ()
    seconds: float = 15.0
    streams: str = ""
    burners: int = 0
    link: str = "wifi"


def play(run: Run, folder: Path, seed: int) -> dict[str, Any]:
    """Record, report, and return verdict and card beside the truth; the recording itself is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    rings = folder.parent / "rings"  # else the kitchen itself needs a processor
    for place in (folder, rings):
        place.mkdir(parents=True, exist_ok=True)
    options = ["--ring-store", str(rings), *(f"--fault={fault}" for fault in run.faults)]
    with simulator(folder, seed, run.seconds + 40, options) as kitchen, _burning(run.burners):
        said = _record(run, folder, kitchen)
    truth = _truth(folder / "sim", run.seconds)
    card = _card(folder / "data" / "take") if said.get("streams") else ""
    shutil.rmtree(folder, ignore_errors=True)
    return {"name": run.name, "faults": list(run.faults), "card": card, **said, "truth": truth}


@contextmanager
def _burning(count: int) -> Iterator[None]:
    """Keep so many processors busy beside it."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def _record(run: Run, folder: Path, kitchen: ServedKitchen) -> dict[str, Any]:
    command = [KITCHENSYNC, "record", "take", "--data", str(folder / "data"), "--hololens", kitchen.host]
    command += ["--gopro", kitchen.gopro, "--seconds", str(run.seconds), "--start-timeout", "12", "--json"]
    command += ["--link", run.link]
    command += ["--streams", run.streams] if run.streams else []
    done = served_kitchen.run(command, folder, "record", environment=kitchen.environment, limit_s=LIMIT_S)
    answer = (
        json.loads(done.stdout) if done.stdout.strip() else {"status": "none", "reason": done.stderr[-300:]}
    )
    if answer["status"] == "refused" or "streams" not in answer:
        return {"status": answer["status"], "reasons": [answer.get("reason", "")]}
    streams = {
        name: {
            key: facts.get(key)
            for key in ("coverage", "stored", "rate_hz", "longest_silence_s", "latest_arrival_s")
        }
        for name, facts in answer["streams"].items()
    }
    kept = {key: answer[key] for key in ("status", "reasons", "notes", "good_for", "cameras", "session_s")}
    return {**kept, "streams": streams}


def _card(recording: Path) -> str:
    """The colour of the first card of the report: what is said of the data."""
    subprocess.run([KITCHENSYNC, "report", str(recording)], capture_output=True, timeout=LIMIT_S, check=False)
    page = recording / "sync" / "report.html"
    found = CARD.search(page.read_text(encoding="utf-8")) if page.exists() else None
    return found[1] if found else "none"


def _truth(out: Path, seconds: float) -> dict[str, Any]:
    """What the kitchen really sent of every stream: packets, losses at the source, coverage counted from stamps."""
    truth = json.loads((out / "truth.json").read_text(encoding="utf-8"))
    ahead = [frame.get("clock_ahead_ticks", 0) for frame in truth.get("world_frames", [])]
    ticks = {name: _ticks(out / "truth" / f"{name}.jsonl", sum(ahead)) for name in truth["streams"]}
    firsts = [values[0] for values in ticks.values() if values]
    if not firsts:
        return {}
    start = max(firsts)
    found = {}
    for name, facts in truth["streams"].items():
        if ticks[name]:
            keys = ("scheduled", "packets", "dropped_by_backpressure", "most_behind_ms")
            share = _covered(ticks[name], name, start, start + round(seconds * 1e7))
            found[name] = {key: facts.get(key) for key in keys} | {"coverage": round(share, 4)}
    return found


def _ticks(path: Path, ahead: int) -> list[int]:
    """Read the stamps; `ahead` is how far the clock of a headset that came later is ahead of the first one's."""
    if not path.exists():
        return []
    ticks = [json.loads(line)["ticks"] for line in path.read_text(encoding="utf-8").splitlines()]
    return [tick - ahead if abs(tick - ahead - ticks[0]) < abs(tick - ticks[0]) else tick for tick in ticks]


def _covered(ticks: list[int], name: str, start: int, end: int) -> float:
    short = name.rpartition("/")[2]
    limit = 1e7 * max(3 / NOMINAL_HZ.get(short, 30.0), ADAPTIVE.get(short, 0.0))
    points = [tick for tick in sorted(set(ticks)) if tick <= end]
    lacking = 0
    for before, after in zip([start, *points], [*points, end], strict=True):
        if after - before > limit:
            lacking += max(min(after, end) - max(before, start), 0)
    return 1 - lacking / (end - start)
