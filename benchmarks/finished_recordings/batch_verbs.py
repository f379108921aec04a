"""How long `kitchensync batch` takes for many small recordings with one worker and with two.

    python -P benchmarks/finished_recordings/batch_verbs.py [--count 400] [--seconds 20] [--rounds 3]
        [--verbs verify,sync,report,export]

The rounds go in turns; CPU is that of the command and all below it. What is written and answered must be the same
for one worker, for two, and where one of two is killed in the middle. Recordings are made in a temporary folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from packet_path.watch import children_cpu_s, children_of, descendants, process_cpu_ns
from sync_recordings import write_clip

from kitchensync.storage.manifest import edit_manifest

DIFFERENT = 10
"""So many recordings are made; the others are copies of them under names of their own."""
VERBS = {"verify": [], "sync": [], "report": [], "export": ["--", "tables", "--out", "OUT"]}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
CONSENT = {"consent": "form-1", "consent_scopes": ["release_raw"]}
Written = dict[str, str]


def make(root: Path, count: int, seconds: float) -> None:
    """Make the recordings."""
    for number in range(count):
        folder = root / f"take-{number:03d}"
        if number < DIFFERENT:
            write_clip(folder, 100 + number, seconds)
        else:
            shutil.copytree(root / f"take-{number % DIFFERENT:03d}", folder)
        with edit_manifest(folder) as manifest:
            manifest |= {"recording": folder.name, "uuid": f"uuid-{number}", **CONSENT}


def files(root: Path) -> dict[Path, tuple[int, int]]:
    """Every file below a folder with its size and time."""
    found = (path for path in root.rglob("*") if path.is_file())
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


class Batch:
    """Runs one verb over the recordings of a place, from the same beginning each time."""

    def __init__(self, place: Path, verb: str) -> None:
        self.place, self.verb, self.root = place, verb, place / "data"
        self.before = files(self.root)

    def run(self, jobs: int, *, kill: bool = False) -> tuple[float, float, Written]:
        """Run it; return seconds, CPU seconds, and what was written and answered."""
        began, used = time.perf_counter(), children_cpu_s()
        with self._started(jobs) as child:
            if kill:
                _kill_a_worker(child)
            out, _ = child.communicate()
        took = time.perf_counter() - began, children_cpu_s() - used
        answer = json.loads(out)
        undone = [row for row in answer["recordings"] if row["status"] in ("not_done", "refused")]
        assert not undone, undone[0]
        written = {row["recording"]: json.dumps(row, sort_keys=True) for row in answer["recordings"]}
        return *took, written | self._taken_back()

    def _started(self, jobs: int) -> subprocess.Popen[str]:
        words = [word.replace("OUT", str(self.place / "out")) for word in VERBS[self.verb]]
        command = [str(Path(sys.executable).with_name("kitchensync")), "batch", self.verb, str(self.root)]
        environment = os.environ | ONE_THREAD | {"XDG_STATE_HOME": str(self.place / "state")}
        return subprocess.Popen(
            [*command, "--jobs", str(jobs), "--json", *words],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def _taken_back(self) -> Written:
        """Return the hashes of what was written, and remove it."""
        new = {path for path, state in files(self.root).items() if self.before.get(path) != state}
        new |= set(files(self.place / "out")) if (self.place / "out").exists() else set()
        kept = sorted(path for path in new if path.name != "derived.jsonl")
        found = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}
        for path in new:
            path.unlink()
        shutil.rmtree(self.place / "out", ignore_errors=True)
        return found


def _kill_a_worker(child: subprocess.Popen[str]) -> None:
    """Kill the worker that has worked most, once it has worked for a second; workers are forked by our child."""
    while child.poll() is None:
        time.sleep(0.1)
        used = {pid: process_cpu_ns(pid) for own in children_of(child.pid) for pid in descendants(own)}
        most = max(used, key=used.__getitem__, default=0)
        if most and used[most] > 1e9:
            os.kill(most, signal.SIGKILL)
            return


def main() -> int:
    """Measure and print; 1 where the answers differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--verbs", default=",".join(VERBS))
    options = parser.parse_args()
    is_equal = True
    with tempfile.TemporaryDirectory(prefix="ks") as name:
        place = Path(name)
        make(place / "data", options.count, options.seconds)
        print(f"{options.count} recordings of {options.seconds:.0f} s", flush=True)
        for verb in options.verbs.split(","):
            batch = Batch(place, verb)
            runs = {jobs: [] for jobs in (1, 2)}
            for _ in range(options.rounds):
                for jobs, taken in runs.items():
                    taken.append(batch.run(jobs))
            killed = batch.run(2, kill=True)
            every = [written for taken in runs.values() for *_, written in taken]
            same = all(written == every[0] for written in [*every, killed[2]])
            is_equal &= same
            faster = [one[0] / two[0] for one, two in zip(runs[1], runs[2], strict=True)]
            more = [two[1] / one[1] for one, two in zip(runs[1], runs[2], strict=True)]
            print(
                f"{verb}: {statistics.median(one[0] for one in runs[1]):.1f} s with one worker,"
                f" {statistics.median(two[0] for two in runs[2]):.1f} s with two;"
                f" {statistics.median(faster):.2f} x ({', '.join(f'{one:.2f}' for one in faster)}),"
                f" CPU {statistics.median(more):.2f} of one; {len(every[0])} files and answers"
                f" {'equal' if same else 'DIFFER'}, also with one killed ({killed[0]:.1f} s)",
                flush=True,
            )
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
