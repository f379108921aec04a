"""Run `make test` again and again, on the computer as it is or beside busy loops, and count runs without a failure.

    python -P benchmarks/gate_runs.py [--target test] [--runs 10] [--busy 2] [--results build/gate_runs.jsonl]

Every run is noted in the results, so that an interrupted count goes on; a failed run starts the count of its target
and load anew, and ends the command with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
BUSY = "while True: pass"


def main() -> int:
    """Run until so many runs in a row were green, or one was not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default="test", choices=["test", "test-quick", "test-all"])
    parser.add_argument("--runs", type=int, default=10, help="green runs in a row that are wanted")
    parser.add_argument("--busy", type=int, default=0, help="busy loops of the same priority beside it")
    parser.add_argument("--results", type=Path, default=REPOSITORY / "build" / "gate_runs.jsonl")
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    while (green := green_in_a_row(options.results, options.target, options.busy)) < options.runs:
        line = one_run(options.target, options.busy)
        with options.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{line['minutes']:6.1f} min  {line['said'] or 'no summary'}", flush=True)
        if line["code"]:
            print(*line["failed"], sep="\n")
            return 1
    print(f"{green} of {options.runs} runs of make {options.target} in a row without a failure")
    return 0


def green_in_a_row(results: Path, target: str, busy: int) -> int:
    """Count the newest runs of a target beside so many loops that did not fail."""
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    green = 0
    for line in lines:
        if (line["target"], line["busy"]) == (target, busy):
            green = 0 if line["code"] else green + 1
    return green


def one_run(target: str, busy: int) -> dict[str, Any]:
    """Run a target once; return its minutes, exit code, last line and failed tests."""
    commit = subprocess.run(
        ["git", "-C", REPOSITORY, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    begin_s = time.monotonic()
    with busy_loops(busy):
        done = subprocess.run(
            ["make", "-C", REPOSITORY, target],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    minutes = (time.monotonic() - begin_s) / 60
    said = re.findall(r"^=* ?(\d+ (?:passed|failed).*?) ?=*$", done.stdout, re.M)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    about = {
        "commit": commit,
        "target": target,
        "busy": busy,
        "minutes": round(minutes, 2),
        "code": done.returncode,
    }
    return {**about, "said": said[-1] if said else "", "failed": failed}


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep the processor busy for as long as the block lasts."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    raise SystemExit(main())
