"""Give every parser of the project wrong inputs, tens of thousands each; print a table.

    python -P benchmarks/fuzz [PARSER ...] [--count 50000] [--apart N] [--seed 1] [--keep DIR] [--together]

Each parser runs in a process of its own. An input is right, or refused with the parser's own error; whatever else is
raised, a process that ends, one input that takes over 30 s, or 300 MiB more is wrong: exit code 1, and the input is
written to `--keep`. Inputs that did harm once lie in `benchmarks/fuzz/kept` and are read first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
for _folder in (ROOT, *(ROOT / "tests" / "support").iterdir(), Path(__file__).parent):
    sys.path.insert(0, str(_folder))

import apart  # noqa: E402 (the folders are known only now)
import documents  # noqa: E402
import media  # noqa: E402
import packets  # noqa: E402
import requests_in  # noqa: E402
import texts  # noqa: E402
from registry import OPENED, PARSERS, Parser  # noqa: E402

FILES = (packets, media, documents, texts, apart, requests_in)
LIMIT_S = 30.0
MOST_MORE = 300 << 20
MOST_DEATHS = 20
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ROW = "{:<24} {:>8} {:>8} {:>8} {:>7} {:>6} {:>9} {:>9} {:>7}  {}"
HEAD = ("parser", "inputs", "read", "refused", "crashes", "hangs", "memory +", "slowest", "time", "")


class Hangs(BaseException):
    """One input takes longer than the limit."""


def inputs(one: Parser, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield what was kept, then as many as are asked for, the same ones for the same seed."""
    yield from one.kept()
    for number in range(count):
        yield str(number), one.make(random.Random(f"{seed} {one.name} {number}"))


def work(one: Parser, given: argparse.Namespace, tell: Callable[[dict[str, Any]], None]) -> None:
    """Read the inputs in this process from the one after `--after` on; tell trouble and the sum."""
    signal.signal(signal.SIGALRM, _on_alarm)
    count = given.apart if one.apart else given.count
    place, keep, told = os.open(given.place, os.O_RDWR | os.O_CREAT), Path(given.keep), dict[str, int]()
    sums: dict[str, Any] = {"inputs": 0, "read": 0, "refused": 0, "slowest_s": 0.0}
    _take(one, one.make(random.Random(0)), sums)  # what is loaded only now is no growth
    before = _most_bytes()
    for number, (name, content) in enumerate(inputs(one, count, given.seed)):
        if number <= given.after:
            continue
        os.pwrite(place, number.to_bytes(8, "little"), 0)
        kind, why = _take(one, content, sums)
        if kind and told.setdefault(why, 0) < 3:
            told[why] += 1
            (keep / one.name).mkdir(parents=True, exist_ok=True)
            (keep / one.name / f"{given.seed}-{name}").write_bytes(content)
        if kind:
            tell({"kind": kind, "input": name, "why": why})
        sums["inputs"] += 1
    tell({"kind": "sum", **sums, "more": _most_bytes() - before})
    os.close(place)


def _take(one: Parser, content: bytes, sums: dict[str, Any]) -> tuple[str, str]:
    """Read one input; return what was wrong and where, or nothing."""
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    began = time.process_time()
    try:
        one.read(content)
        sums["read"] += 1
    except one.refusals:
        sums["refused"] += 1
    except Hangs:
        return "hang", _place()
    except Exception:  # noqa: BLE001 (that is what is looked for)
        return "crash", _place()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sums["slowest_s"] = max(sums["slowest_s"], time.process_time() - began)
    return "", ""


def _place() -> str:
    kind, error, where = sys.exc_info()
    frames = [frame for frame in traceback.extract_tb(where) if "/fuzz/" not in frame.filename]
    last = next((frame for frame in reversed(frames) if frame.filename.startswith(str(ROOT))), None)
    at = f"{Path(last.filename).relative_to(ROOT)}:{last.lineno}" if last else "?"
    return f"{getattr(kind, '__name__', '')} at {at}: {error!s:.120}".replace("\n", " ")


def _on_alarm(*_: object) -> None:
    raise Hangs


def _most_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(one: Parser, given: argparse.Namespace) -> dict[str, Any]:
    """Fuzz one parser; print its row; return its figures. A process that ends is started again behind its input."""
    began = time.monotonic()
    seen: dict[str, Any] = {"inputs": 0, "read": 0, "refused": 0, "slowest_s": 0.0, "more": 0}
    seen |= {"crashes": 0, "hangs": 0, "whys": {}}
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=IN_MEMORY) as folder:
        given.place = str(Path(folder) / "place")
        if given.together:
            tempfile.tempdir = folder
            work(one, given, lambda said: _add(said, seen))
        else:
            _work_apart(one, given, seen, folder)
    seen["time_s"] = time.monotonic() - began
    seen["held"] = seen["read"] > 0 and not (seen["crashes"] or seen["hangs"] or seen["more"] > MOST_MORE)
    _print(one, seen)
    return seen


def _work_apart(one: Parser, given: argparse.Namespace, seen: dict[str, Any], folder: str) -> None:
    after = -1
    for _ in range(MOST_DEATHS):
        command = [sys.executable, "-P", str(Path(__file__).parent), one.name, "--work"]
        for name in ("place", "keep", "seed", "count", "apart"):
            command += [f"--{name}", str(getattr(given, name))]
        done = subprocess.run(
            [*command, "--after", str(after)],
            capture_output=True,
            text=True,
            check=False,
            timeout=7200,
            env={**os.environ, "TMPDIR": folder},
        )
        for line in done.stdout.splitlines():
            _add(json.loads(line), seen)
        if done.returncode > 0:
            sys.exit(f"{one.name}: the fuzzing itself failed\n{done.stderr[-3000:]}")
        if done.returncode == 0:
            return
        after = int.from_bytes(Path(given.place).read_bytes(), "little")
        _add({"kind": "crash", "why": f"the process ended with {done.returncode} at {after}"}, seen)


def _add(said: dict[str, Any], seen: dict[str, Any]) -> None:
    if said["kind"] != "sum":
        seen["crashes" if said["kind"] == "crash" else "hangs"] += 1
        seen["whys"][said["why"]] = seen["whys"].get(said["why"], 0) + 1
        return
    for name in ("inputs", "read", "refused"):
        seen[name] += said[name]
    for name in ("slowest_s", "more"):
        seen[name] = max(seen[name], said[name])


def _print(one: Parser, seen: dict[str, Any]) -> None:
    cells = (one.name, seen["inputs"], seen["read"], seen["refused"], seen["crashes"], seen["hangs"])
    figures = (
        f"{seen['more'] / 2**20:.0f} MiB",
        f"{seen['slowest_s'] * 1e3:.0f} ms",
        f"{seen['time_s']:.0f} s",
    )
    print(ROW.format(*cells, *figures, "" if seen["held"] else "WRONG"), flush=True)
    for why, count in sorted(seen["whys"].items(), key=lambda pair: -pair[1])[:10]:
        print(f"    {count} x {why}", flush=True)


def main() -> int:
    """Fuzz the parsers that were asked for, or all."""
    asked = argparse.ArgumentParser(prog="benchmarks/fuzz", description=__doc__.splitlines()[0])
    asked.add_argument("parsers", nargs="*", metavar="PARSER", help="which parsers; all without any")
    asked.add_argument("--count", type=int, default=50_000, help="inputs of each parser in this process")
    asked.add_argument("--apart", type=int, help="of each that runs in a child or over a socket; a tenth")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument(
        "--keep", type=Path, default=ROOT / "build" / "fuzz", help="where wrong inputs are written"
    )
    asked.add_argument("--together", action="store_true", help="all in this process, for a quick look")
    asked.add_argument("--list", action="store_true", help="say which parsers there are")
    for name in ("--place", "--after"):
        asked.add_argument(name, default=-1, type=int if name == "--after" else str, help=argparse.SUPPRESS)
    asked.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = asked.parse_args()
    given.apart = given.count // 10 if given.apart is None else given.apart
    if unknown := sorted(set(given.parsers) - PARSERS.keys()):
        asked.error(f"no parser {', '.join(unknown)}; there are {', '.join(PARSERS)}")
    if given.list:
        print("\n".join(f"{one.name:<24} {one.what}" for one in PARSERS.values()))
        return 0
    if given.work:
        with OPENED:
            work(PARSERS[given.parsers[0]], given, lambda said: print(json.dumps(said), flush=True))
        return 0
    print(ROW.format(*HEAD), flush=True)
    with OPENED:
        seen = [run(PARSERS[name], given) for name in given.parsers or PARSERS]
    total = {name: sum(one[name] for one in seen) for name in ("inputs", "crashes", "hangs", "time_s")}
    print(
        f"{total['inputs']:,} inputs, {total['crashes']} crashes, {total['hangs']} hangs, {total['time_s']:.0f} s"
    )
    return 0 if all(one["held"] for one in seen) else 1


if __name__ == "__main__":
    sys.exit(main())
