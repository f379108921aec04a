"""Record a rig at its real rates for a long time: does any process grow, is anything lost?

    python -P benchmarks/recorder/soak.py [--minutes 30] [--link wifi|wired] [--json FILE]

The unique memory of each process (what would come free if it ended) is read every five seconds. Its slope over all
but the first sixth of the time (the last 25 of 30 minutes) is that of Theil and Sen, the median of the slopes between
all pairs of readings, which no single jump moves (P. K. Sen 1968, https://doi.org/10.1080/01621459.1968.10480934).
It must stay below 4 MB/h, every stream must have the hash of what was sent, and the verdict must be PASS.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy.stats import theilslopes

sys.path.insert(0, str(Path(__file__).parents[1] / "packet_path"))

from cases import FULL_HD, RIG, Case
from watch import SUPERVISOR, descendants, kind_of, unique_bytes
from whole import COMMAND, free_host, simulator, write_rig

READ_EVERY_S = 5.0
MOST_MB_PER_HOUR = 4.0
WARM_UP = 1 / 6

Readings = dict[str, list[tuple[float, int]]]


def follow(recorder: subprocess.Popen[str]) -> Readings:
    """Read the unique memory of every process until the recorder ends: name -> (s, bytes)."""
    readings: Readings = {}
    while recorder.poll() is None:
        kinds = {recorder.pid: SUPERVISOR} | {pid: kind_of(pid) for pid in descendants(recorder.pid)}
        for pid, kind in kinds.items():
            try:
                if kind:
                    readings.setdefault(f"{kind} {pid}", []).append((time.monotonic(), unique_bytes(pid)))
            except OSError:
                continue  # it ended meanwhile
        time.sleep(READ_EVERY_S)
    return readings


def slopes(readings: Readings, seconds: float) -> dict[str, dict[str, float]]:
    """Return for each process its size and its slope, MB/h, over the last part of the take."""
    begin_s = min(times[0][0] for times in readings.values())
    found = {}
    for name, series in readings.items():
        late = [(at, size) for at, size in series if seconds * WARM_UP < at - begin_s < seconds]
        if len(late) < 10:
            continue
        slope, _, low, high = theilslopes([size / 1e6 for _, size in late], [at / 3600 for at, _ in late])
        found[name] = {
            "mb": late[-1][1] / 1e6,
            "mb_per_hour": float(slope),
            "low": float(low),
            "high": float(high),
        }
    return found


def show(found: dict[str, dict[str, float]]) -> None:
    """Print what each process did."""
    for process, one in found.items():
        verdict = "ok" if one["mb_per_hour"] < MOST_MB_PER_HOUR else "GROWS"
        print(f"{process:20} {one['mb']:7.1f} MB {one['mb_per_hour']:+7.2f} MB/h {verdict}")


def soak(case: Case, folder: Path) -> tuple[Readings, dict[str, Any], dict[str, Any]]:
    """Record the whole schedule; return memory, the recorder's answer, and the truth."""
    host = free_host()
    write_rig(folder / "rig.toml", case, host)
    kitchen = simulator(case, host, folder / "sim")
    command = [COMMAND, "record", "soak", "--data", str(folder / "data"), "--rig", str(folder / "rig.toml")]
    try:
        with (
            (folder / "answer.json").open("w") as answer,
            (folder / "told.log").open("w") as told,
            subprocess.Popen(
                [*command, "--json", "--start-timeout", "120"],
                stdout=answer,
                stderr=told,
                text=True,
            ) as recorder,
        ):
            readings = follow(recorder)
        try:
            kitchen.wait(60)
        except subprocess.TimeoutExpired:
            show(slopes(readings, case.seconds))
            said = (folder / "told.log").read_text()[-1000:] + (folder / "answer.json").read_text()[-2000:]
            raise SystemExit(
                f"the recorder ended before its time (exit {recorder.returncode}): {said}"
            ) from None
    finally:
        kitchen.kill()
        kitchen.wait()
    truth = json.loads((folder / "sim" / "truth.json").read_text())
    return readings, json.loads((folder / "answer.json").read_text()), truth


def main() -> int:
    """Soak and print; exit 1 when something grew or was lost, or the verdict is not PASS."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--link", choices=["wifi", "wired"], default="wifi")
    parser.add_argument("--json", type=Path, help="Write everything here.")
    options = parser.parse_args()
    seconds = options.minutes * 60
    case = replace(Case("soak", RIG, seconds, speed=1, profile=FULL_HD), link=options.link)
    with tempfile.TemporaryDirectory(prefix="ks") as name:
        readings, answer, truth = soak(case, Path(name))
    found = slopes(readings, seconds)
    sent = {name: truth["streams"][name] for name in answer["streams"]}
    lost = [name for name, one in answer["streams"].items() if one["sha256"] != sent[name]["sha256"]]
    dropped = sum(one["dropped_by_backpressure"] for one in sent.values())
    show(found)
    packets = sum(one["stored"] for one in answer["streams"].values())
    print(
        f"{options.minutes:g} minutes, {packets} packets, {answer['status']}; streams that differ: {lost or 'none'};"
    )
    print(f"dropped at the source {dropped}; restarts {len(answer['restarts'])}")
    covered = min(one.get("coverage") or 0.0 for one in answer["streams"].values())
    print(f"least coverage {covered:.4f}", *answer["reasons"], sep="\n  ")
    if options.json:
        facts = {"minutes": options.minutes, "link": options.link, "processes": found, "lost": lost}
        facts |= {"status": answer["status"], "reasons": answer["reasons"], "least_coverage": covered}
        options.json.write_text(json.dumps(facts | {"dropped": dropped, "packets": packets}, indent=1))
    grows = any(one["mb_per_hour"] >= MOST_MB_PER_HOUR for one in found.values())
    return 1 if grows or lost or dropped or not found or answer["status"] != "PASS" else 0


if __name__ == "__main__":
    sys.exit(main())
