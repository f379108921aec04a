"""How fast many recordings are asked: manifests made, catalogue built, asked, and asked after changes."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kitchensync.storage.catalogue.kept_lines import FILE, catalogue_of
from kitchensync.storage.disk.self_check import checked_json
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.verify import keep_verdict

RECIPES = [f"recipe_{number}" for number in range(24)]
STRATEGIES = ("normal", "impromptu", "disordered", "induced")


def make(root: Path, count: int) -> None:
    """Write manifests, a thousand a folder, in folders of sites and years."""
    rng = random.Random(5)
    for number in range(count):
        folder = root / f"site_{number % 4}" / f"{2024 + number // 4000}" / f"take_{number}"
        folder.mkdir(parents=True)
        start = 1_735_689_600 + number * 3600
        manifest = {
            "schema": "recording/1",
            "recording": folder.name,
            "uuid": f"{number:032x}",
            "state": "complete",
            "files": {},
            "streams": {"hololens/pv": {"payload_bytes": 1}},
            "devices": {},
            "recipe": {"name": rng.choice(RECIPES), "order": list(range(15))},
            "script": {"strategy": rng.choice(STRATEGIES), "display": "steps"},
            "pseudonym": f"person_{number % 40}",
            "place": f"kitchen_{number % 10}",
            "consent": "form",
            "consent_scopes": ["annotate", "release_raw"],
            "started": {"utc_ns": start * 10**9, "host_ns": 1},
            "stopped": {"utc_ns": (start + 900) * 10**9, "host_ns": 1 + 900 * 10**9},
        }
        (folder / "recording.json").write_bytes(checked_json(manifest, indent=1))
        write_plainly(folder / "sync" / "verify.json", {"status": rng.choice(("PASS", "WARN", "FAIL"))})


def write_plainly(path: Path, value: object) -> None:
    """Write a small file without asking the disk to hold it."""
    path.parent.mkdir()
    path.write_text(json.dumps(value))


def ask(root: Path, *where: str) -> int:
    """Ask the catalogue; return how many recordings answer."""
    with catalogue_of(root) as catalogue:
        return len(catalogue.lines(where))


def timed(what: Callable[[], int], times: int) -> tuple[float, int]:
    """Return the median of some runs in ms, and the answer."""
    spans, found = [], 0
    for _ in range(times):
        begin = time.perf_counter()
        found = what()
        spans.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(spans), found


def main() -> None:
    """Print a line for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=9)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        root = Path(folder)
        make(root, asked.recordings)
        time.sleep(2.1)  # folders that changed just now are read again
        span, _ = timed(lambda: ask(root), 1)
        print(f"{asked.recordings} recordings; built from manifests: {span / 1e3:.1f} s")
        print(f"kept: {(root / FILE).stat().st_size / 1e6:.1f} MB")
        selective = ("recipe=recipe_7", "strategy=induced", "verdict!=FAIL", "place=kitchen_3")
        for where in (selective, ("verdict=FAIL",), ()):
            span, found = timed(lambda where=where: ask(root, *where), asked.times)  # type: ignore[misc]
            print(f"{' and '.join(where) or 'all'}: {found} found in {span:.0f} ms")
        for number in range(20):
            with edit_manifest(root / "site_0" / "2024" / f"take_{4 * number}") as manifest:
                manifest["pseudonym"] = "somebody else"
            keep_verdict(root / "site_1" / "2024" / f"take_{4 * number + 1}", {"status": "FAIL"})
        shutil.rmtree(root / "site_2" / "2024" / "take_2")
        span, found = timed(lambda: ask(root, "person=somebody else"), 1)
        print(f"after 41 changes: {found} found in {span:.0f} ms")


if __name__ == "__main__":
    main()
