"""Plant faults one at a time in a copy of the repository and see which tests find them; print a table.

    python -P benchmarks/planted_faults [--stages 1,2,3] [--only NAME ...] [--copy FOLDER] [--results FILE]
    python -P benchmarks/planted_faults --list | --check

The faults stand in `faults.toml`. Stage 1 runs those tests of `make test` that are of the fault's folder, or
every test of a file that the fault names; stage 2 all tests of `make test`, stage 3 every test. A fault goes no
further than the stage that finds it. Before a stage the same tests run on the sound copy: what fails there is
left out. A test finds a fault only if it fails twice. Every run is noted in FILE, and what is noted there of
the copy's commit is not run again: with --copy an interrupted run goes on at its commit. Exit code 1 where a
fault was found by none of the stages.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from clone_apart import REPOSITORY, Clone, NoCopy, clone_in
from fault_list import Fault, NotPlantable, fault_of_parsing, planted, read_faults
from suite_runs import FAILED, INTERRUPTED, end_left, run_tests

TEST = ["-m", "not slow or promise"]
ALL: list[str] = []
"""What pytest is given by `make test` and by `make test-all`."""

SELECTIONS = {1: TEST, 2: TEST, 3: ALL}
LIMITS_S = {1: 1800.0, 2: 3 * 3600.0, 3: 4 * 3600.0}
"""A run that takes longer hangs: whoever runs the tests sees that, so the fault counts as found."""
MOST_UNSURE = 3
"""So many tests that fail only once are left out before a stage is given up for a fault."""
RESULTS = REPOSITORY / "build" / "planted_faults.jsonl"
BASELINE = "no fault"
TOO_LONG = "the time limit"
Line = dict[str, Any]


class NoBaseline(Exception):
    """Tests that come to no end even without a fault."""


class Results:
    """Everything that was run, a line each; only appended."""

    def __init__(self, path: Path, commit: str) -> None:
        """Read what was run of a commit."""
        self._path, self._commit = path, commit
        self._known: dict[tuple[str, ...], Line] = {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines():
            try:
                said = json.loads(line)
            except ValueError:
                continue  # cut off in the middle of a line
            if said["commit"] == commit:
                self._known[said["fault"], said["change"], str(said["stage"])] = said

    def get(self, name: str, change: str, stage: int) -> Line | None:
        """Return what came of a fault in a stage, None where it was not run."""
        return self._known.get((name, change, str(stage)))

    def add(self, name: str, change: str, stage: int, **facts: Any) -> Line:
        """Note a run."""
        said = {"fault": name, "change": change, "stage": stage, "commit": self._commit, **facts}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")
        self._known[name, change, str(stage)] = said
        return said


@dataclass(frozen=True)
class Bench:
    """A copy and what was seen in it."""

    clone: Clone
    results: Results

    def try_fault(self, fault: Fault, stage: int) -> Line:
        """Run one stage with a fault, unless that was done; return what came of it."""
        known = self.results.get(fault.name, fault.change, stage)
        if known is not None:
            return known
        paths = _paths(fault, stage)
        words = _selection(paths, stage)
        skipped = self.failing_without(paths, stage)
        begun_s, unsure = time.monotonic(), list[str]()
        with planted(fault, self.clone.folder):
            by, why = self._finder(words, LIMITS_S[stage], skipped, unsure)
        seconds = round(time.monotonic() - begun_s, 1)
        facts = {"found": bool(by), "by": by, "seconds": seconds, "unsure": unsure, "why": why}
        return self.results.add(fault.name, fault.change, stage, **facts)

    def failing_without(self, paths: Sequence[str], stage: int) -> list[str]:
        """Return the tests that fail without any fault. Raises NoBaseline."""
        name = " ".join(paths)
        known = self.results.get(BASELINE, name, stage)
        if known is None:
            _say(f"stage {stage}: {name or 'all tests'} without a fault")
            seen = run_tests(self.clone, _selection(paths, stage), LIMITS_S[stage])
            if not seen.is_clear:
                raise NoBaseline(f"the tests of stage {stage} fail without a fault:\n{seen.tail}")
            known = self.results.add(BASELINE, name, stage, failed=seen.failed, seconds=seen.seconds)
            for test in seen.failed:
                _say(f"  left out, since it fails without a fault: {test}")
        return list(known["failed"])

    def _finder(
        self, words: list[str], limit_s: float, skipped: list[str], unsure: list[str]
    ) -> tuple[str, str]:
        """Return the test that finds what is planted, and what else is to be said; add those that failed once."""
        while len(unsure) <= MOST_UNSURE:
            seen = run_tests(self.clone, ["-x", *words], limit_s, skipped=[*skipped, *unsure])
            if seen.code is None:
                return TOO_LONG, seen.tail
            if not seen.failed:
                return "", "" if seen.is_clear else seen.tail
            again = run_tests(self.clone, seen.failed, limit_s, alone=True)
            if again.failed or again.code not in (0, FAILED, INTERRUPTED):
                return (again.failed or seen.failed)[0], "" if again.failed else "was not repeated"
            unsure += seen.failed
        return "", f"{len(unsure)} tests failed once"


def _paths(fault: Fault, stage: int) -> list[str]:
    return list(fault.tests) if stage == 1 else []


def _selection(paths: Sequence[str], stage: int) -> list[str]:
    is_of_files = bool(paths) and all(path.endswith(".py") for path in paths)
    return [*(ALL if is_of_files else SELECTIONS[stage]), *paths]


def run(bench: Bench, faults: Sequence[Fault], stages: Sequence[int]) -> None:
    """Try all faults in the first stage, then those that it did not find in the next."""
    left = list(faults)
    for stage in stages:
        for number, fault in enumerate(list(left), 1):
            said = bench.try_fault(fault, stage)
            found = f"found by {said['by']}" if said["found"] else "not found"
            _say(f"stage {stage} {number:>2}/{len(left):<2} {fault.name}: {found} ({said['seconds']:.0f} s)")
        left = [fault for fault in left if not bench.try_fault(fault, stage)["found"]]


def check(clone: Clone, faults: Sequence[Fault]) -> int:
    """Plant each fault and parse its file; return how many do not fit."""
    wrong = 0
    for fault in faults:
        try:
            with planted(fault, clone.folder) as path:
                why = fault_of_parsing(path)
        except (NotPlantable, OSError) as error:
            why = str(error)
        lacking = [test for test in fault.tests if not (clone.folder / test).exists()]
        why = why or (f"there is no {', '.join(lacking)}" if lacking else "")
        if why:
            wrong += 1
            print(f"{fault.name}: {why}")
    print(f"{len(faults) - wrong} of {len(faults)} apply and parse")
    return wrong


def table(results: Results, faults: Sequence[Fault], stages: Sequence[int]) -> int:
    """Print what found each fault, and the totals; return how many were found by none of the stages."""
    found = Counter[int]()
    missed = not_run = 0
    print(f"\n{'fault':32} {'stage':>5} {'seconds':>8}  found by")
    for fault in faults:
        said = [one for stage in stages if (one := results.get(fault.name, fault.change, stage))]
        seconds = sum(one["seconds"] for one in said)
        last = said[-1] if said else None
        if last is not None and last["found"]:
            found[last["stage"]] += 1
            print(f"{fault.name:32} {last['stage']:>5} {seconds:>8.0f}  {last['by']}")
            continue
        is_over = len(said) == len(stages)
        missed, not_run = missed + is_over, not_run + (not is_over)
        why = f": {last['why'].splitlines()[-1]}" if last is not None and last["why"] else ""
        print(f"{fault.name:32} {'-':>5} {seconds:>8.0f}  {'nothing' if is_over else 'not run'}{why}")
    by_stage = ", ".join(f"{found[stage]} in stage {stage}" for stage in stages)
    total = sum(found.values())
    print(f"{total} of {len(faults)} found ({by_stage}), {missed} not found, {not_run} not run to the end")
    return missed


def _say(words: str) -> None:
    print(words, flush=True)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="planted-faults-") as folder:
        yield Path(folder)


def _stages(text: str) -> list[int]:
    stages = sorted({int(word) for word in text.split(",")})
    if not set(stages) <= SELECTIONS.keys():
        raise ValueError(text)
    return stages


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stages", type=_stages, default=[1, 2, 3], help="which stages, such as 1,2")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="this fault; several times for several"
    )
    parser.add_argument("--copy", type=Path, help="folder of the copy, made where it is not there and kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON lines of what was run")
    parser.add_argument("--list", action="store_true", help="print the faults and what they mean")
    parser.add_argument("--check", action="store_true", help="plant each fault and parse it, without tests")
    return parser.parse_args()


def _chosen(faults: list[Fault], names: list[str] | None) -> list[Fault]:
    unknown = set(names or ()) - {fault.name for fault in faults}
    if unknown:
        raise NotPlantable(f"there is no fault {', '.join(sorted(unknown))}; --list names them")
    return [fault for fault in faults if names is None or fault.name in names]


def main() -> int:
    """Do what the options say."""
    given = _options()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.default_int_handler)  # the tests end before this does
    try:
        faults = _chosen(read_faults(), given.only)
        if given.list:
            for fault in faults:
                print(f"{fault.name:32} {fault.file}\n    {fault.means}")
            return 0
        with _folder(given.copy) as folder, clone_in(folder) as clone:
            end_left(clone)
            if given.check:
                return int(check(clone, faults) > 0)
            return _measure(clone, faults, given)
    except (NoCopy, NotPlantable, NoBaseline) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on where it stopped", file=sys.stderr)
        return 130


def _measure(clone: Clone, faults: list[Fault], given: argparse.Namespace) -> int:
    results = Results(given.results, clone.commit)
    _say(f"commit {clone.commit[:12]}, results in {given.results}")
    if check(clone, faults):
        return 1
    try:
        run(Bench(clone, results), faults, given.stages)
    finally:
        missed = table(results, faults, given.stages)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
