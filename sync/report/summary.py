"""The order of many recordings, worst first; and what changed between two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from storage.errors import ManifestDamaged, ManifestLost, OutsideMap, StorageError
from storage.manifest import read_manifest
from storage.names import recordings_in
from storage.reading.alignments import alignment_files, read_alignment
from storage.timeline.alignment import Alignment
from sync.errors import CannotCompare

ORDER = ("not_aligned", "not_done", "check", "aligned", "nothing_to_align")
MOVED_MS = 0.01


def worst_first(recordings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order: refused, to be looked at, aligned; inside that the largest bound first, then by name."""
    return sorted(
        recordings, key=lambda r: (ORDER.index(r["status"]), -(largest_bound_ms(r) or 0.0), r["recording"])
    )


def largest_bound_ms(recording: dict[str, Any]) -> float | None:
    """Largest 95 % bound of a recording's pairs, ms."""
    bounds = [Alignment.from_object(pair).bound95_ms for pair in recording["pairs"]]
    return max((bound for bound in bounds if bound is not None), default=None)


def compare(first: Path, second: Path) -> dict[str, Any]:
    """What differs between two runs: recordings, folders of them, or files that `sync --json` printed.

    `moved_ms` is the largest distance of both maps over the earlier one's samples. Raises CannotCompare.
    """
    old, new = _pairs(first), _pairs(second)
    rows = []
    for key in sorted(old.keys() | new.keys()):
        a, b = old.get(key), new.get(key)
        row: dict[str, Any] = {
            "recording": key[0],
            "source": key[1],
            "status": [a and a.status, b and b.status],
            "moved_ms": _moved_ms(a, b),
            "bound95_ms": [a and a.bound95_ms, b and b.bound95_ms],
            "reasons": [list(a.reasons) if a else [], list(b.reasons) if b else []],
        }
        row["changed"] = row["status"][0] != row["status"][1] or (row["moved_ms"] or 0.0) > MOVED_MS
        rows.append(row)
    rows.sort(
        key=lambda row: (not row["changed"], -(row["moved_ms"] or 0.0), row["recording"], row["source"])
    )
    return {"schema": "sync-compare/1", "changed": sum(row["changed"] for row in rows), "pairs": rows}


def _pairs(path: Path) -> dict[tuple[str, str], Alignment]:
    if path.is_file():
        try:
            answer = json.loads(path.read_text(encoding="utf-8"))
            told = [
                (r["recording"], Alignment.from_object(p)) for r in answer["recordings"] for p in r["pairs"]
            ]
            return {(name, one.source): one for name, one in told}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OutsideMap) as error:
            raise CannotCompare(path, "is not what `kitchensync sync --json` prints") from error
    found: dict[tuple[str, str], Alignment] = {}
    for recording in recordings_in(path):
        try:
            name = str(read_manifest(recording)["recording"])
        except (ManifestLost, ManifestDamaged):
            name = recording.name  # what was aligned is still there
        except StorageError as error:
            raise CannotCompare(recording, "is no recording, and no folder of recordings") from error
        for file in alignment_files(recording):
            stored = read_alignment(file)
            if stored.problem:
                raise CannotCompare(file, "cannot be read; run `kitchensync sync` again")
            found[(name, stored.source)] = stored
    if not found:
        raise CannotCompare(path, "holds no alignments; run `kitchensync sync` first")
    return found


def _moved_ms(a: Alignment | None, b: Alignment | None) -> float | None:
    if a is None or b is None or a.clock_map is None or b.clock_map is None:
        return None
    times = np.array([t_s for t_s, _ in a.samples], dtype=np.float64)
    return float(np.abs(a.clock_map.to_ticks(times) - b.clock_map.to_ticks(times)).max()) / 1e4
