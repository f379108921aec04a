"""What following a recording costs who records it: Today and the live pictures asked for, against nobody looking.

    python -P benchmarks/desk_open.py [--rounds 3] [--seconds 20]

Pairs of runs, the order turned each time. `open` asks each second for the state of all recordings, as *Today* does,
and for pictures of every camera as they come, as the live page of a recording does. CPU is that of the recorder's
processes alone, the queue server's among them. `picture_age_s` is the median and the most of the front camera's
pictures when they were given. Prints one line of JSON; exit 1 when a packet more is lost, or the median of the pairs
is more than 10 % above 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "packet_path"))

import numpy as np
from cases import Case, cases
from whole import Figure, run

from kitchensync.capture.station import Station
from kitchensync.recipe_app.live.live_pictures import LivePictures
from kitchensync.sensors.hololens.catalogue import is_front_camera
from kitchensync.sensors.host_clock import host_ns

NAME = "encoded rig at 1x"
MOST, ASK_S = 1.10, 1.0


def main() -> int:
    """Run the pairs and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    case = replace(next(one for one in cases() if one.name == NAME), seconds=options.seconds)
    ratios: list[float] = []
    ages_s: list[float] = []
    lost = {"closed": 0, "open": 0}
    for number in range(options.rounds):
        cpu_s = {}
        for is_open in (True, False) if number % 2 else (False, True):
            figure, pictures = measured(case, is_open=is_open)
            which = "open" if is_open else "closed"
            cpu_s[which] = sum(figure.cpu_s.values())
            lost[which] += figure.lost
            ages_s += pictures
        ratios.append(cpu_s["open"] / cpu_s["closed"])
    ratio = statistics.median(ratios)
    said = {
        "ratio": round(ratio, 3),
        "ratios": [round(one, 3) for one in ratios],
        "lost": lost,
        "picture_age_s": [round(age, 2) for age in np.quantile(ages_s, [0.5, 1.0])] if ages_s else [],
    }
    print(json.dumps(said))
    return int(ratio > MOST or lost["open"] > lost["closed"] or not ages_s)


def measured(case: Case, *, is_open: bool) -> tuple[Figure, list[float]]:
    """Record a case once; return its figure and how old the pictures were."""
    with tempfile.TemporaryDirectory(prefix="ks") as name:
        folder = Path(name)
        with looking(folder) if is_open else nullcontext([]) as pictures:
            return run(case, folder), pictures


@contextmanager
def looking(folder: Path) -> Iterator[list[float]]:
    """Ask for state and pictures as the page does, until it is closed; yield how old each picture is, s."""
    found: list[float] = []
    end, pictures, station = threading.Event(), LivePictures(), Station(folder)

    def look() -> None:
        last_ms = 0
        while not end.wait(0 if last_ms else ASK_S):
            for one in station.room():
                path, until_s = Path(one.get("path", "")), time.monotonic() + ASK_S
                while folder in path.parents and time.monotonic() < until_s:
                    newest = pictures.newest(path, one["streams"], after_ms=last_ms, wait_s=ASK_S)
                    last_ms = max((picture.came_ms for picture in newest.values()), default=last_ms)
                    found.extend(
                        (host_ns() - picture.host_ns) / 1e9
                        for name, picture in newest.items()
                        if is_front_camera(name)
                    )

    thread = threading.Thread(target=look, name="desk")
    thread.start()
    try:
        yield found
    finally:
        end.set()
        thread.join()
        pictures.close()


if __name__ == "__main__":
    sys.exit(main())
