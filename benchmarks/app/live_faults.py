"""How soon a fault of the virtual kitchen is said while it records: on page, terminal, tablet and to Prometheus.

Every fault that can be seen is played at its own moment, several in one recording; the first word of each is set
beside the moment from which it could be seen (docs/reference/live-faults.md). Exit 1 when one is said more than 2 s
later, or never.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1] / "packet_path"))

from whole import COMMAND, free_host

from kitchensync.capture.monitor.metrics import metrics_text
from kitchensync.capture.monitor.monitor import RecordingMonitor
from kitchensync.capture.monitor.screen import screen
from kitchensync.capture.station import Station

STREAMS = "gyroscope,accelerometer,magnetometer,spatial_input,microphone"
MOST_S, LOOK_S = 2.0, 0.2
LATER_S = (
    {"stall": 1.0, "lost_tracking": 1.0, "still_sensor": 5.0}
    | dict.fromkeys(("gopro_500", "gopro_vanish", "gopro_battery_dead", "gopro_swap"), 1.0)
    | dict.fromkeys(("gopro_card_full", "gopro_overheat", "gopro_write_error"), 1.0)
)
"""From the fault to when it can be seen: the silent limit, or the camera's next question."""
TAKES: list[tuple[float, dict[str, tuple[str, ...]]]] = [
    (68, {
        "stall:gyroscope@12+4": ("stream_silent",),
        "gopro_vanish@15+4": ("camera_problem",),
        "drop_connection:accelerometer@18": ("stream_reconnecting", "stream_came_back"),
        "half_packet:magnetometer@22": ("stream_reconnecting", "stream_came_back"),
        "garbage_size:spatial_input@26": ("stream_reconnecting", "stream_came_back", "stream_problem"),
        "lost_tracking:@36+4": ("head_lost",),
        "still_sensor:gyroscope@38+8": ("sensor_still",),
        "time_jump:microphone@30+5": ("stamps_untrue",),
        "gopro_500@30+4": ("camera_problem",),
        "duplicate_stamps:accelerometer@50+1": ("stamps_untrue",),
        "kill_port:magnetometer@54": ("stream_reconnecting", "stream_refused"),
        "gopro_overheat@58": ("camera_problem",),
    }),
    (36, {
        "app_restart:@12+3": ("stream_reconnecting", "stream_refused", "stream_came_back"),
        "gopro_card_full@12": ("camera_problem",),
        "die:@26": ("stream_reconnecting", "stream_refused", "stream_silent"),
    }),
    (22, {"gopro_write_error@12": ("camera_problem",)}),
    (22, {"gopro_battery_dead@12": ("camera_problem",)}),
    (22, {"gopro_swap@12+4": ("camera_problem",)}),
]  # fmt: skip
PLACES = ("page", "terminal", "tablet", "metrics")


@contextlib.contextmanager
def recorded(folder: Path, seconds: float, faults: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """The virtual kitchen with its faults, and a recorder of it."""
    host = free_host()
    options = ["--seed", "5", "--seconds", str(seconds + 20), "--hololens-host", host, "--gopro-host", host]
    options += ["--gopro-port", "0", "--out", str(folder / "sim")]
    for fault in faults:
        options += ["--fault", fault]
    kitchen = subprocess.Popen([COMMAND, "simulate", *options], stdout=subprocess.PIPE, text=True)
    assert kitchen.stdout is not None
    port = kitchen.stdout.readline().strip().partition("gopro=")[2]
    command = [COMMAND, "record", "take", "--data", str(folder / "data"), "--hololens", host]
    command += ["--gopro", f"http://{host}:{port}", "--streams", STREAMS, "--seconds", str(seconds)]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=(folder / "told").open("w"))
    try:
        yield recorder
    finally:
        for process in (recorder, kitchen):
            process.send_signal(signal.SIGINT)
        for process in (recorder, kitchen):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()


def said_now(monitor: RecordingMonitor, station: Station) -> set[tuple[str, str, str]]:
    """Return what each place says now: (place, rule, subject)."""
    views = monitor.views("take")
    found = {(one["rule"], one["subject"]): one for view in views for one in view["findings"]}
    console = Console(width=400, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(screen(views))
    terminal, metrics, report = console.export_text(), metrics_text(views), station.report("take")
    now = {("page", *key) for key in found}
    now |= {("terminal", *key) for key, one in found.items() if one["operator"] in terminal}
    now |= {
        ("metrics", *key)
        for key in found
        if f'rule="{key[0]}"' in metrics and f'subject="{key[1]}"' in metrics
    }
    alarms = set(report["cook"])
    now |= {("tablet", *key) for key, one in found.items() if one["cook"] in alarms or not one["cook"]}
    return now


def follow(recorder: subprocess.Popen[bytes], station: Station) -> dict[tuple[str, str, str], list[int]]:
    """Look until the recorder ends; return when each thing began to be said."""
    monitor, before, begun = RecordingMonitor(), set(), {}
    while recorder.poll() is None:
        now = said_now(monitor, station)
        for key in now - before:
            begun.setdefault(key, []).append(time.monotonic_ns())
        before = now
        time.sleep(LOOK_S)
    return begun


def rows_of(
    wanted: dict[str, tuple[str, ...]], truth: dict[str, Any], begun: dict[Any, list[int]]
) -> list[dict[str, Any]]:
    """Set what was said beside the truth: a row a fault, with seconds after it could be seen."""
    rows = []
    for text, rules in wanted.items():
        name, _, arguments = text.replace("@", ":@", 1).partition(":")
        stream = arguments.partition("@")[0].rstrip(":")
        at_s = float(text.partition("@")[2].partition("+")[0])
        seen_ns = truth["world0_host_ns"] + (at_s + LATER_S.get(name, 0.0)) * 1e9
        subject = "gopro" if name.startswith("gopro_") else f"hololens/{stream}" if stream else "hololens/"
        row: dict[str, Any] = {"fault": text, "observable_host_ns": round(seen_ns)}
        for place in PLACES:
            moments = [
                (moment, rule)
                for (where, rule, of), times in begun.items()
                for moment in times
                if where == place and rule in rules and of.startswith(subject) and moment > seen_ns - 2e9
            ]
            first = min(moments, default=(None, ""))
            row[place] = None if first[0] is None else round(max(first[0] - seen_ns, 0.0) / 1e9, 2)
            row["rule"] = first[1] or row.get("rule", "")
        rows.append(row)
    return rows


def main() -> int:
    """Play everything and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="Write the rows here.")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seconds, wanted in TAKES:
        with tempfile.TemporaryDirectory(prefix="ks") as name:
            folder = Path(name)
            with recorded(folder, seconds, list(wanted)) as recorder:
                begun = follow(recorder, Station(folder / "data"))
            truth = json.loads((folder / "sim" / "truth.json").read_text())
        rows += rows_of(wanted, truth, begun)
    print(f"{'fault':40} {'rule':20} " + " ".join(f"{place:>9}" for place in PLACES))
    for row in rows:
        said = " ".join(f"{'never' if row[place] is None else row[place]:>9}" for place in PLACES)
        print(f"{row['fault']:40} {row['rule']:20} {said}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return int(any(row[place] is None or row[place] > MOST_S for row in rows for place in PLACES))


if __name__ == "__main__":
    sys.exit(main())
