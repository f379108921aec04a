"""Measure how long a camera file's telemetry takes, and how much of the file is read, beside py-gpmf-parser.

python benchmarks/camera_files/gopro_telemetry.py [--minutes 15] [FILE...]

Without files: a 4K film of that length, made from a ring of encoded pictures and deleted afterwards, and a sparse one
above 4 GiB. Both readers get the gyroscope of every file, five times, one after the other in turn; medians are shown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

READ_OURS = """
import json, sys, time
begin = time.perf_counter()
from kitchensync.sensors.gopro.files.media import open_media
opened = time.perf_counter()
media = open_media(sys.argv[1])
names = media.stream_names
streams = {name: media.samples(name).values.shape[0] for name in names}
track = media.gyroscope()
took = time.perf_counter() - begin
read = next(int(line.split()[1]) for line in open("/proc/self/io") if line.startswith("rchar"))
print(json.dumps({"seconds": took, "import_s": opened - begin, "samples": len(track.t_s), "rchar": read,
                  "streams": len(streams)}))
"""
READ_THEIRS = """
import json, sys, time
begin = time.perf_counter()
from py_gpmf_parser.gopro_telemetry_extractor import GoProTelemetryExtractor
opened = time.perf_counter()
extractor = GoProTelemetryExtractor(sys.argv[1])
extractor.open_source()
values, times = extractor.extract_data("GYRO")
extractor.close_source()
took = time.perf_counter() - begin
read = next(int(line.split()[1]) for line in open("/proc/self/io") if line.startswith("rchar"))
print(json.dumps({"seconds": took, "import_s": opened - begin, "samples": len(values), "rchar": read}))
"""
NOTHING = 'print(next(int(line.split()[1]) for line in open("/proc/self/io") if line.startswith("rchar")))'
IMPORTS = "import av, numpy, kitchensync.sensors.gopro.files.media\n" + NOTHING


def child(code: str, *arguments: str) -> Any:
    """Run a reader in a process of its own, so that imports and bytes read are its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(done.stdout)


def films(folder: Path, minutes: float) -> list[Path]:
    """Make the long film and the sparse one."""
    from kitchensync.virtual_kitchen.gopro.files.chapters import ChapterRule
    from kitchensync.virtual_kitchen.gopro.files.sensors import Instruments

    sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support" / "media"))
    from camera_films import FilmPlan, synthesize

    both = []
    options = {"codec": b"avc1", "model": "hero11", "instruments": Instruments(gps=True, gps_days=9000.0)}
    for name, frames, hole in (("long", round(minutes * 60 * 30000 / 1001), 0), ("sparse", 1800, 5 << 30)):
        (folder / name).mkdir()
        begin = time.perf_counter()
        made = synthesize(folder / name, FilmPlan(frames, rule=ChapterRule(hole_bytes=hole), **options))
        print(
            f"made {name}: {made.chapters[0].size / 1e9:.2f} GB in {time.perf_counter() - begin:.1f} s",
            flush=True,
        )
        both.append(made.chapters[0].path)
    return both


def compare(path: Path, rounds: int) -> None:
    """Show one file's figures."""
    own_bytes = int(child(IMPORTS))
    results: dict[str, list[dict[str, Any]]] = {"ours": [], "py-gpmf-parser": []}
    for _ in range(rounds):
        results["ours"].append(child(READ_OURS, str(path)))
        results["py-gpmf-parser"].append(child(READ_THEIRS, str(path)))
    size = path.stat().st_size
    print(f"{path.name}: {size / 1e6:.1f} MB")
    for name, runs in results.items():
        good = [run for run in runs if "error" not in run]
        if not good:
            print(f"  {name:15} {runs[0]['error']}")
            continue
        seconds = statistics.median(run["seconds"] for run in good)
        imports = statistics.median(run["import_s"] for run in good)
        read = max(0, good[0]["rchar"] - own_bytes) if name == "ours" else good[0]["rchar"]
        what = f"all {good[0]['streams']} streams" if "streams" in good[0] else "GYRO only"
        share = f", read {read / 1e6:.1f} MB = {100 * read / size:.2f} %" if name == "ours" else ""
        took = f"{seconds:.2f} s ({imports:.2f} s of it imports)"
        print(f"  {name:15} {took}, {good[0]['samples']} samples, {what}{share}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, default=None, help="Where the films are made (4 GB).")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        for path in options.files or films(Path(folder), options.minutes):
            compare(path, options.rounds)


if __name__ == "__main__":
    main()
