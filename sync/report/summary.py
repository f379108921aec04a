"""The order of many recordings, worst first; and what changed between two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from storage.errors import ManifestDamaged, ManifestLost, StorageError
from storage.manifest import read_manifest
from storage.names import recordings_in
from storage.reading.alignments import alignment_files, read_alignment
from storage.timeline.clock_map import ClockMap
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
    bounds = [b for pair in recording["pairs"] for b in ((pair.get("sigma") or {}).get("bound95_ms") or [])]
    return max((b for b in bounds if b is not None), default=None)


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
            "status": [a and a["status"], b and b["status"]],
            "moved_ms": _moved_ms(a, b),
            "bound95_ms": [_bound(a), _bound(b)],
            "reasons": [a["reasons"] if a else [], b["reasons"] if b else []],
        }
        row["changed"] = row["status"][0] != row["status"][1] or (row["moved_ms"] or 0.0) > MOVED_MS
        rows.append(row)
    rows.sort(
        key=lambda row: (not row["changed"], -(row["moved_ms"] or 0.0), row["recording"], row["source"])
    )
    return {"schema": "sync-compare/1", "changed": sum(row["changed"] for row in rows), "pairs": rows}


def _pairs(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    if path.is_file():
        try:
            answer = json.loads(path.read_text(encoding="utf-8"))
            return {(r["recording"], p["source"]): p for r in answer["recordings"] for p in r["pairs"]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CannotCompare(path, "is not what `kitchensync sync --json` prints") from error
    found: dict[tuple[str, str], dict[str, Any]] = {}
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
            found[(name, stored.source)] = stored.body
    if not found:
        raise CannotCompare(path, "holds no alignments; run `kitchensync sync` first")
    return found


def _bound(pair: dict[str, Any] | None) -> float | None:
    bounds = ((pair or {}).get("sigma") or {}).get("bound95_ms") or []
    return max((b for b in bounds if b is not None), default=None)


def _moved_ms(a: dict[str, Any] | None, b: dict[str, Any] | None) -> float | None:
    if not a or not b or "map" not in a or "map" not in b:
        return None
    times = np.array([row[0] for row in a["samples"]], dtype=np.float64)
    one, two = ClockMap.from_object(a).to_ticks(times), ClockMap.from_object(b).to_ticks(times)
    return float(np.abs(one - two).max()) / 1e4
