"""A whole take while its network store is away: is it disturbed, does memory grow, is the copy whole afterwards?

    python -P benchmarks/recorder/absent_store.py [--rig encoded|raw-depth] [--seconds 600] [--folder DIR]

The virtual headset sends a rig at its real rates, `record --nas` is given a store that is not mounted. Every two
seconds the unique memory of each process is read. When the take has ended the store comes back, `move` copies, and
the copy is verified by itself against what the headset says it sent.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scipy.stats import theilslopes

STREAMS = (
    "pv,vlc_leftfront,vlc_leftleft,vlc_rightfront,vlc_rightright,depth_ahat,gyroscope,accelerometer,"
    "magnetometer,spatial_input,microphone,eye_tracking"
)
LINKS = {"encoded": "wifi", "raw-depth": "wired"}
KINDS = {
    "kitchensync producer": "producer",
    "kitchensync drainer": "drainer",
    "kitchensync fork server": "fork server",
    "valkey": "queue server",
    "kitchensync.storage.move.mover": "mover",
}
COMMAND = str(Path(sys.executable).parent / "kitchensync")
LOOK_S = 2.0
WARM_UP = 0.2
"""Share of the take that is left out of the slope: buffers and caches fill up first."""
MOST_MB_PER_H = 4.0
MOST_MB = 5.0
"""Flat is: no steeper, or so little over the whole take. Raw pictures come in pieces of 1 MB; the most that waited
at once is reached in such steps, which are a steep slope in three minutes and nothing in thirty (`soak.py`)."""

Series = dict[str, list[tuple[float, float]]]
"""Process -> (seconds since the start, MB that only it holds)."""


def unique_mb(pid: int) -> float:
    """Return the memory that only this process holds, in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1000


def processes(parent: int) -> dict[int, str]:
    """Return the recorder and its children, by what they are; drainers are told apart by their number."""
    found = {parent: "recorder"}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) != parent:
                continue
            line = (folder / "cmdline").read_bytes().decode()
        except (OSError, IndexError):
            continue
        kind = next((kind for part, kind in KINDS.items() if part in line), "other")
        found[int(folder.name)] = f"drainer {line.split()[2]}" if kind == "drainer" else kind
    return found


def follow(recorder: subprocess.Popen[str]) -> Series:
    """Read the memory of the recorder's processes until it has ended."""
    series: Series = {}
    begin_s = time.monotonic()
    while recorder.poll() is None:
        for pid, kind in processes(recorder.pid).items():
            try:
                series.setdefault(kind, []).append((time.monotonic() - begin_s, unique_mb(pid)))
            except (OSError, ValueError):
                continue
        time.sleep(LOOK_S)
    return series


def show_memory(series: Series, seconds: float) -> bool:
    """Print what each process held; return whether it stayed flat while the take ran."""
    flat = True
    for kind, seen in sorted(series.items()):
        steady = [(at, mb) for at, mb in seen if WARM_UP * seconds < at < seconds]
        if len(steady) < 10:
            continue
        slope = theilslopes([mb for _, mb in steady], [at / 3600 for at, _ in steady])[0]
        lowest, highest = min(mb for _, mb in steady), max(mb for _, mb in steady)
        grown = slope * (steady[-1][0] - steady[0][0]) / 3600
        print(
            f"  {kind:13} {lowest:7.1f} to {highest:7.1f} MB, {grown:+5.1f} MB by a slope of {slope:+7.2f} MB/h"
        )
        flat &= slope < MOST_MB_PER_H or grown < MOST_MB
    return flat


def run(*arguments: str | Path) -> dict[str, Any]:
    """Run a command of ours to its end; return its object."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments), "--json"], capture_output=True, text=True, check=False
    )
    if not done.stdout:
        sys.exit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def differing(streams: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    """Return the streams that are not what the headset sent."""
    return [
        name
        for name, sent in truth.items()
        if (streams[name]["stored"], streams[name]["sha256"], streams[name]["duplicates"])
        != (sent["packets"], sent["sha256"], 0)
    ]


def measure(rig: str, seconds: float, root: Path) -> bool:
    """Record with the store away, then copy; print every figure."""
    host = f"127.{random.randint(2, 254)}.{random.randint(1, 254)}.7"
    store = root / "store"
    place = ["--hololens-host", host, "--gopro-host", host, "--gopro-port", "0", "--out", str(root / "sim")]
    kitchen = [COMMAND, "simulate", "--seed", "4", "--seconds", str(seconds), "--rings", *place]
    take = [COMMAND, "record", "take", "--data", str(root / "data"), "--hololens", host]
    take += ["--link", LINKS[rig], "--streams", STREAMS, "--nas", str(store), "--json"]
    with subprocess.Popen(kitchen, stdout=subprocess.PIPE, text=True) as simulated:
        assert simulated.stdout is not None
        simulated.stdout.readline()
        recorder = subprocess.Popen(take, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        series = follow(recorder)
        answer = json.loads(recorder.communicate()[0])
    truth = json.loads((root / "sim" / "truth.json").read_text())["streams"]
    megabytes = sum(stream["bytes"] for stream in truth.values()) / 1e6
    dropped = sum(stream["dropped_by_backpressure"] for stream in truth.values())
    wrong = differing(answer["streams"], truth)
    print(
        f"{rig} rig, {seconds:g} s, {megabytes:.0f} MB ({megabytes / seconds:.1f} MB/s), store away: "
        f"{answer['status']}, differing streams {wrong or 'none'}, dropped at the source {dropped}, "
        f"problems {answer['reasons'] or 'none'}"
    )
    flat = show_memory(series, seconds)
    store.mkdir()
    begin_s = time.monotonic()
    (copied,) = run("move", root / "data" / "take", "--to", store, "--keep")["recordings"]
    copy_s = time.monotonic() - begin_s
    checked = run("verify", store / "take")
    wrong_there = differing(checked["streams"], truth)
    print(
        f"  store back: {copied['files_done']} of {copied['files']} files, {copied['bytes_done'] / 1e6:.0f} MB "
        f"copied and read back in {copy_s:.1f} s; the copy by itself: {checked['status']}, "
        f"{checked['reasons'] or 'nothing to say'}, differing streams {wrong_there or 'none'}"
    )
    return flat and copied["finished"] and not (wrong or wrong_there or dropped)


def main() -> int:
    """Measure one rig."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rig", choices=list(LINKS), default="encoded")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--folder", type=Path, help="Where there is room for the take and its copy.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ks", dir=options.folder) as folder:
        return 0 if measure(options.rig, options.seconds, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
