"""Tables of numbers: length, kitchen and person of each film, mean length of segments."""

from __future__ import annotations

import csv
import io

from kitchensync.dataset.checks.check_entries import videos_table
from kitchensync.dataset.checks.release_faults import DataSetUnderCheck
from kitchensync.task_graphs.formats.annotations import AVERAGES, VIDEOS

SAME = 1e-6


def check_lengths(checked: DataSetUnderCheck) -> None:
    """Check that the tables hold every recording once and agree with the annotations."""
    rows = videos_table(checked)
    for one in checked.annotations.recordings:
        ours = rows.pop(one.recording_id, [])
        if len(ours) != 1:
            checked.found.differs(VIDEOS, one.recording_id, "one row", f"{len(ours)} rows")
        for row in ours:
            _row(checked, one.environment, one.person_id, row)
    for other in rows:
        checked.found.differs(VIDEOS, other, "no row", "a row of no recording")
    _averages(checked)


def _row(checked: DataSetUnderCheck, environment: int, person: int, row: tuple[str, ...]) -> None:
    try:
        stated = (int(row[1]), int(row[2]))
        minutes, seconds = float(row[3]), float(row[4])
    except (ValueError, IndexError):
        checked.found.differs(VIDEOS, row[0], "kitchen, person, minutes, seconds", ",".join(row[1:])[:80])
        return
    if stated != (environment, person):
        want, got = f"kitchen {environment}, person {person}", f"kitchen {stated[0]}, person {stated[1]}"
        checked.flaw(VIDEOS, row[0], want, got)
    if abs(minutes - seconds / 60) > 0.0051 or seconds <= 0:
        checked.flaw(VIDEOS, row[0], f"{seconds / 60:.2f} minutes", row[3])


def _averages(checked: DataSetUnderCheck) -> None:
    """Compare the published averages with those of the entries."""
    if checked.annotations.averages is None:
        return
    sums: dict[str, list[float]] = {}
    for one in checked.annotations.recordings:
        lengths = sums.setdefault(str(one.activity_id), [])
        lengths += [entry.end_s - entry.start_s for entry in one.entries if entry.performed]
    for row in list(csv.reader(io.StringIO(checked.annotations.averages)))[1:]:
        ours = sums.get(row[0]) if row else None
        if not ours:
            continue  # a ruler, the line of the whole set, or a recipe that is not in this part
        mean = sum(ours) / len(ours)
        if len(row) != 3 or not _is_number(row[2]) or abs(float(row[2]) - mean) > SAME:
            checked.flaw(AVERAGES, f"recipe {row[0]}", f"{mean:.6f} s", row[-1])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
