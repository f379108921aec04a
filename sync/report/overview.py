"""One page over many recordings, worst first: verdicts, bounds, reasons, links to each report."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.errors import ManifestDamaged, ManifestLost, OutsideMap, StorageError
from storage.manifest import read_manifest
from storage.names import recordings_in
from storage.reading.alignments import alignment_files, read_alignment
from storage.shell.outputs import write_output
from storage.timeline.alignment import Alignment
from storage.verify import kept_verdict
from sync.batch.batch import SCHEMA, not_done
from sync.errors import CannotCompare
from sync.report.render import render
from sync.result.state import kept_answer

PAGE = "sync-summary.html"
LEVELS = {
    "not_aligned": "bad",
    "not_done": "warn",
    "check": "warn",
    "aligned": "good",
    "nothing_to_align": "none",
}
WORST = ("bad", "warn", "none", "good")
MEANINGS = {
    "not_aligned": "a device could not be put on the headset's clock: do not match its frames",
    "not_done": "no answer yet, something else than the data stood in the way: look at the reasons",
    "check": "usable, but something is odd: look at the reasons",
    "aligned": "all devices are on one clock, within the bound",
    "nothing_to_align": "one clocked device was recorded",
}
UNCHECKED = "not checked"
DATA_LEVELS = {"FAIL": "bad", "WARN": "warn", UNCHECKED: "none", "PASS": "good"}
DATA_MEANINGS = {
    "FAIL": "large parts are missing, or data are damaged: read what each is good for",
    "WARN": "usable, but something is missing or odd: read what each is good for",
    UNCHECKED: "no verdict on the data was kept: run `kitchensync report`",
    "PASS": "every stream covers the session, nothing is damaged",
}
MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class PairLine:
    """One device or file of a recording in words."""

    source: str
    status: str
    level: str
    texts: list[str]
    within: str
    drift: str
    pictures: str


@dataclass(frozen=True, slots=True)
class RecordingRow:
    """One recording."""

    name: str
    link: str
    status: str
    level: str
    reasons: list[str]
    pairs: list[PairLine]
    data: DataLine

    @property
    def worst(self) -> str:
        """The worse level of clocks and data: what a row is coloured and sorted by."""
        return min(self.level, self.data.level, key=WORST.index)


@dataclass(frozen=True, slots=True)
class DataLine:
    """What was last found out about a recording's own data."""

    status: str
    level: str
    texts: list[str]


def summary_page(answer: dict[str, Any], folder: Path) -> str:
    """HTML of the answer `sync/1`; links go from `folder` to each report that is there."""
    recordings = worst_first(answer["recordings"])
    counts = [
        {
            "count": n,
            "status": "to check" if status == "check" else words(status),
            "level": LEVELS[status],
            "meaning": MEANINGS[status],
        }
        for status in ORDER
        if (n := sum(r["status"] == status for r in recordings))
    ]
    lines = sorted(
        (_line(recording, folder) for recording in recordings), key=lambda line: WORST.index(line.worst)
    )
    bounds = sorted(b for b in map(largest_bound_ms, recordings) if b is not None)
    return render(
        {
            "counts": counts,
            "data_counts": _data_counts(lines),
            "total": len(recordings),
            "lines": lines,
            "usual_bound": f"{bounds[len(bounds) // 2]:.2f} ms" if bounds else "",
            "worst_bound": f"{bounds[-1]:.2f} ms" if bounds else "",
            "folder": folder.absolute().name,
        },
        "summary.html.j2",
    )


def write_summary(answer: dict[str, Any], target: Path, *, force: bool = True) -> None:
    """Write the page whole or not at all. Raises CannotWrite."""
    write_output(target, summary_page(answer, target.parent).encode(), force=force)


def refresh_summary(folder: Path) -> None:
    """Write a folder's page anew, if it is there, from what its recordings keep: so that it links to new reports."""
    if (folder / PAGE).exists():
        entries = [_kept(path) for path in recordings_in(folder)]
        write_summary({"schema": SCHEMA, "recordings": entries}, folder / PAGE)


def words(status: str) -> str:
    """A status as people write it."""
    return status.replace("_", " ")


def _kept(path: Path) -> dict[str, Any]:
    try:
        read_manifest(path)
    except StorageError as error:
        return not_done(path, str(error))
    return kept_answer(path) or not_done(
        path, "not synchronized yet, or not to its end: run `kitchensync sync`"
    )


def _line(recording: dict[str, Any], folder: Path) -> RecordingRow:
    status = str(recording["status"])
    page = Path(recording.get("path", "")) / "sync" / "report.html"
    has_page = bool(recording.get("path")) and page.exists() and page.is_relative_to(folder)
    return RecordingRow(
        name=str(recording["recording"]),
        link=page.relative_to(folder).as_posix() if has_page else "",
        status=words(status),
        level=LEVELS[status],
        reasons=[str(text) for text in [*recording.get("reasons", []), *recording.get("warnings", [])]],
        pairs=[_pair(Alignment.from_object(pair)) for pair in recording["pairs"]],
        data=_data(recording),
    )


def _data(recording: dict[str, Any]) -> DataLine:
    """Return what `record` or `report` found out last: nothing is read anew for a page over hundreds."""
    kept = kept_verdict(Path(recording["path"])) if recording.get("path") else None
    if kept is None:
        return DataLine(UNCHECKED, "none", [])
    status, sentences = str(kept["status"]), [str(text) for text in kept.get("good_for", [])]
    texts = sentences or [str(text) for text in kept.get("reasons", [])[:MOST_REASONS]]
    return DataLine(status, DATA_LEVELS[status], texts)


def _data_counts(lines: list[RecordingRow]) -> list[dict[str, Any]]:
    """Count the verdicts on the data, worst first."""
    counted = Counter(line.data.status for line in lines)
    return [
        {"count": counted[status], "status": status, "level": level, "meaning": DATA_MEANINGS[status]}
        for status, level in DATA_LEVELS.items()
        if counted[status]
    ]


def _pair(pair: Alignment) -> PairLine:
    fit = pair.gyro.fit if pair.gyro is not None else None
    placed = pair.clock_map is not None
    bound, drift, total = pair.bound95_ms, fit.drift_ppm if fit is not None else None, pair.total_ms
    return PairLine(
        source=pair.source,
        status=words(pair.status),
        level=LEVELS[pair.status],
        texts=[*pair.reasons, *pair.warnings],
        within=f"{bound:.2f} ms" if placed and bound is not None else "",
        drift=f"{drift:.1f} ppm" if placed and drift is not None else "",
        pictures=f"± {total:.1f} ms" if placed and total is not None else "",
    )


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
