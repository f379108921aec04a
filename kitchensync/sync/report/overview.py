"""One page about many recordings, worst first: verdicts, bounds, reasons, links to each report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.shell.untrusted_json import load_json
from kitchensync.storage.errors import ManifestDamaged, ManifestLost, OutsideMap, StorageError
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.outputs import write_output
from kitchensync.storage.reading.alignments import alignment_files, read_alignment
from kitchensync.storage.timeline.alignment import Alignment
from kitchensync.storage.verify import kept_verdict
from kitchensync.sync.answers import RecordingAnswer, SyncAnswer
from kitchensync.sync.batch.batch import SCHEMA, not_done
from kitchensync.sync.errors import CannotCompare
from kitchensync.sync.report.render import render
from kitchensync.sync.result.state import kept_answer

PAGE = "sync-summary.html"
WORST = ("bad", "warn", "none", "good")
CLOCKS = {
    "not_aligned": ("bad", "a device could not be put on the clock of the others: do not match its frames"),
    "not_done": ("warn", "no answer yet, something else than the data stood in the way: look at the reasons"),
    "check": ("warn", "usable, but something is odd: look at the reasons"),
    "aligned": ("good", "all devices are on one clock, within the bound"),
    "nothing_to_align": ("none", "one clocked device was recorded"),
}
"""Level and meaning of each status, the worst first."""
ORDER = tuple(CLOCKS)
UNCHECKED = "not checked"
DATA = {
    "FAIL": ("bad", "large parts are missing, or data are damaged: read what each is good for"),
    "WARN": ("warn", "usable, but something is missing or odd: read what each is good for"),
    UNCHECKED: ("none", "no verdict on the data was kept: run `kitchensync report`"),
    "PASS": ("good", "every stream covers the session, nothing is damaged"),
}
MOST_REASONS = 3
MOVED_MS = 0.01


@dataclass(frozen=True)
class SummaryLine:
    """One recording on the page; `link` is its own page, if it exists."""

    name: str
    link: str
    status: str
    level: str
    reasons: list[str]
    pairs: list[Alignment]
    data_status: str
    "The last stored verdict: reading hundreds of recordings again would take too long."
    data_level: str
    data_texts: list[str]
    worst: str


def summary_page(answer: SyncAnswer, folder: Path) -> str:
    """Return the HTML of the answer `sync/1`, with links from `folder` to existing reports."""
    recordings = worst_first(answer["recordings"])
    lines = [_line(recording, folder) for recording in recordings]
    bounds = sorted(b for b in map(largest_bound_ms, recordings) if b is not None)
    return render(
        "summary.html.j2",
        counts=_counts([recording["status"] for recording in recordings], CLOCKS),
        data_counts=_counts([line.data_status for line in lines], DATA),
        total=len(recordings),
        lines=sorted(lines, key=lambda line: WORST.index(line.worst)),
        levels={status: level for status, (level, _) in CLOCKS.items()},
        usual_bound=f"{bounds[len(bounds) // 2]:.2f} ms" if bounds else "",
        worst_bound=f"{bounds[-1]:.2f} ms" if bounds else "",
        folder=folder.absolute().name,
    )


def _counts(statuses: list[str], meanings: dict[str, tuple[str, str]]) -> list[dict[str, object]]:
    """Count the verdicts, worst first."""
    counted = Counter(statuses)
    return [
        {"count": counted[status], "status": status, "level": level, "meaning": meaning}
        for status, (level, meaning) in meanings.items()
        if counted[status]
    ]


def _line(recording: RecordingAnswer, folder: Path) -> SummaryLine:
    path = Path(recording["path"]) if recording.get("path") else None
    page = path / "sync" / "report.html" if path else None
    has_page = page is not None and page.exists() and page.is_relative_to(folder)
    kept = (kept_verdict(path) if path else None) or {"status": UNCHECKED}
    texts = [*kept.get("reasons", [])[:MOST_REASONS], *kept.get("good_for", [])]
    level, data_level = CLOCKS[recording["status"]][0], DATA[kept["status"]][0]
    return SummaryLine(
        name=str(recording["recording"]),
        link=page.relative_to(folder).as_posix() if page is not None and has_page else "",
        status=recording["status"],
        level=level,
        reasons=[*recording.get("reasons", []), *recording.get("warnings", [])],
        pairs=[Alignment.from_object(pair) for pair in recording["pairs"]],
        data_status=kept["status"],
        data_level=data_level,
        data_texts=texts,
        worst=min(level, data_level, key=WORST.index),
    )


def write_summary(answer: SyncAnswer, target: Path, *, force: bool = True) -> None:
    """Write the page atomically. Raises OutputRefused."""
    write_output(target, summary_page(answer, target.parent).encode(), force=force)


def refresh_summary(folder: Path) -> None:
    """Update a folder's existing page from the stored answers of its recordings, with links to new reports."""
    if not (folder / PAGE).exists():
        return
    entries = []
    for path in recordings_in(folder):
        try:
            read_manifest(path)
            kept = kept_answer(path)
            why = "not synchronized yet, or not to its end: run `kitchensync sync`"
        except StorageError as error:
            kept, why = None, str(error)
        entries.append(kept or not_done(path, why))
    write_summary({"schema": SCHEMA, "recordings": entries}, folder / PAGE)


def worst_first(recordings: list[RecordingAnswer]) -> list[RecordingAnswer]:
    """Sort by status (refused, to check, aligned), then the largest bound first, then by name."""
    return sorted(
        recordings, key=lambda r: (ORDER.index(r["status"]), -(largest_bound_ms(r) or 0.0), r["recording"])
    )


def largest_bound_ms(recording: RecordingAnswer) -> float | None:
    """Return the largest 95 % bound of a recording's pairs, ms."""
    bounds = [Alignment.from_object(pair).bound95_ms for pair in recording["pairs"]]
    return max((bound for bound in bounds if bound is not None), default=None)


def compare(first: Path, second: Path) -> dict[str, Any]:
    """Compare two runs: recordings, folders of them, or outputs of `sync --json`.

    `moved_ms` is the largest distance of both maps over the earlier one's samples. Raises CannotCompare.
    """
    old, new = _pairs(first), _pairs(second)
    rows = []
    for key in sorted(old.keys() | new.keys()):
        a, b = old.get(key), new.get(key)
        moved_ms, statuses = None, [a and a.status, b and b.status]
        if a is not None and b is not None and a.clock_map is not None and b.clock_map is not None:
            times = np.array([t_s for t_s, _ in a.samples], dtype=np.float64)
            moved = np.abs(a.clock_map.to_ticks(times) - b.clock_map.to_ticks(times))
            moved_ms = float(moved.max()) / 1e4
        row: dict[str, Any] = {
            "recording": key[0],
            "source": key[1],
            "status": statuses,
            "moved_ms": moved_ms,
            "bound95_ms": [a and a.bound95_ms, b and b.bound95_ms],
            "reasons": [list(a.reasons) if a else [], list(b.reasons) if b else []],
            "changed": statuses[0] != statuses[1] or (moved_ms or 0.0) > MOVED_MS,
        }
        rows.append(row)
    rows.sort(
        key=lambda row: (not row["changed"], -(row["moved_ms"] or 0.0), row["recording"], row["source"])
    )
    return {"schema": "sync-compare/1", "changed": sum(row["changed"] for row in rows), "pairs": rows}


def _pairs(path: Path) -> dict[tuple[str, str], Alignment]:
    if path.is_file():
        try:
            answer = load_json(path)
            return {
                (recording["recording"], alignment.source): alignment
                for recording in answer["recordings"]
                for alignment in map(Alignment.from_object, recording["pairs"])
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OutsideMap) as error:
            raise CannotCompare(path, "is not what `kitchensync sync --json` prints") from error
    alignments: dict[tuple[str, str], Alignment] = {}
    for recording in recordings_in(path):
        try:
            name = str(read_manifest(recording)["recording"])
        except (ManifestLost, ManifestDamaged):
            name = recording.name  # its alignments still exist
        except StorageError as error:
            raise CannotCompare(recording, "is no recording, and no folder of recordings") from error
        for file in alignment_files(recording):
            stored = read_alignment(file)
            if stored.problem:
                raise CannotCompare(file, "cannot be read; run `kitchensync sync` again")
            alignments[(name, stored.source)] = stored
    if not alignments:
        raise CannotCompare(path, "holds no alignments; run `kitchensync sync` first")
    return alignments
