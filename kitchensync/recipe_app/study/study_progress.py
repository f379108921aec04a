"""Progress of a study: wanted, planned and recorded sessions by kind, and the stages of the recordings."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from html import escape

from kitchensync.recipe_app.study.already_cooked import CookedRecording
from kitchensync.recipe_app.study.plan_file import LATE, PlanEntry
from kitchensync.recipe_app.study.wanted import CookedSession, Study, StudyGoal

DIMENSIONS = ("recipe", "strategy", "kitchen", "person", "display", "part")
CoverageRow = tuple[str, ...]


@dataclass
class CoverageCounts:
    """Numbers of sessions; each stage after `planned` counts recordings."""

    wanted: int = 0
    planned: int = 0
    recorded: int = 0
    verified: int = 0
    aligned: int = 0
    annotated: int = 0
    consented: int = 0
    releasable: int = 0
    missing: int = 0
    "Wanted sessions that are neither recorded nor planned in any row."


COLUMNS = tuple(count.name for count in fields(CoverageCounts))
STAGES = COLUMNS[:-1]


@dataclass(frozen=True)
class StudyCoverage:
    """Counts by row, and the recordings of each row."""

    by: tuple[str, ...]
    rows: dict[CoverageRow, CoverageCounts] = field(default_factory=dict)
    recordings: dict[CoverageRow, list[CookedRecording]] = field(default_factory=dict)

    def missing_most(self, count: int) -> list[tuple[CoverageRow, int]]:
        """Return the rows with the most missing sessions, and their numbers."""
        lack = sorted(((row, counts.missing) for row, counts in self.rows.items()), key=lambda item: -item[1])
        return [(row, missing) for row, missing in lack[:count] if missing]


def to_come(
    plan: Sequence[PlanEntry], cooked: Sequence[CookedRecording], now: datetime
) -> list[CookedSession]:
    """Return the sessions of a plan that are not recorded and not past."""
    return [entry.settled for entry in not_recorded(plan, cooked) if entry.start > now - LATE]


def not_recorded(plan: Sequence[PlanEntry], cooked: Sequence[CookedRecording]) -> list[PlanEntry]:
    """Return the entries of a plan without a recording of the same kind near their time."""
    starts: dict[tuple[str, ...], list[datetime]] = {}
    for recording in cooked:
        starts.setdefault(_kind(recording.session), []).append(recording.session.start)
    return [
        entry
        for entry in plan
        if not any(abs(start - entry.start) < LATE for start in starts.get(_kind(entry.settled), ()))
    ]


def _kind(session: CookedSession) -> tuple[str, ...]:
    return (session.recipe, session.strategy, session.display, session.person, session.kitchen)


def coverage(
    study: Study, cooked: Sequence[CookedRecording], planned: Sequence[CookedSession], by: Sequence[str]
) -> StudyCoverage:
    """Count recordings and planned sessions by some dimensions, each in the row of its own kitchen and person.

    A goal without a kitchen, person or part counts in the row with an empty name. The part of a session is that of
    the goal it serves, or would serve if more were wanted.
    """
    counted = StudyCoverage(tuple(by))
    sessions = [*(recording.session for recording in cooked), *planned]  # `rows` below is parallel to this
    goals = study.served(sessions)
    served = Counter(goals)
    for goal in study.goals:
        counts = counted.rows.setdefault(_row(goal, by), CoverageCounts())
        counts.wanted += goal.count
        counts.missing += goal.count - served[goal]
    rows = []
    for session, serves in zip(sessions, goals, strict=True):
        similar = serves or next((goal for goal in study.goals if study.counts_for(goal, session)), None)
        rows.append(_row(replace(session, part=similar.part) if similar is not None else session, by))
    for row, recording in zip(rows, cooked, strict=False):
        counts = counted.rows.setdefault(row, CoverageCounts())
        counted.recordings.setdefault(row, []).append(recording)
        for stage in recording.stages:
            setattr(counts, stage, getattr(counts, stage) + 1)
    for row in rows[len(cooked) :]:
        counted.rows.setdefault(row, CoverageCounts()).planned += 1
    ordered = dict(sorted(counted.rows.items()))
    return StudyCoverage(counted.by, ordered, counted.recordings)


def _row(of: StudyGoal | CookedSession, by: Sequence[str]) -> CoverageRow:
    return tuple(str(getattr(of, name)) for name in by)


def as_csv(rows: Mapping[CoverageRow, CoverageCounts], by: Sequence[str]) -> str:
    """Return the counts as a table with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*by, *COLUMNS])
    for row, counts in rows.items():
        writer.writerow([*row, *(getattr(counts, stage) for stage in COLUMNS)])
    return out.getvalue()


def as_picture(rows: Mapping[CoverageRow, CoverageCounts]) -> str:
    """Return the counts as an SVG: a bar of wanted sessions per row, filled by the stages of its recordings."""
    most = max((max(counts.wanted, counts.recorded) for counts in rows.values()), default=1) or 1
    unit, high = 420 / most, 30
    lines = []
    for place, (row, counts) in enumerate(rows.items()):
        y = 50 + place * high
        name = escape(" · ".join(word for word in row if word))
        bars = [
            (counts.wanted, "#ddd", 0, 20),
            (counts.recorded + counts.planned, "#b9cfdc", 0, 20),
            (counts.recorded, "#7aa6c2", 0, 20),
            (counts.aligned, "#4f89ab", 2, 5),
            (counts.annotated, "#2f6f99", 8, 5),
            (counts.releasable, "#134a70", 14, 5),
        ]
        drawn = "".join(
            f'<rect x="330" y="{y + down}" width="{value * unit:g}" height="{tall}" fill="{colour}"/>'
            for value, colour, down, tall in bars
        )
        label = f"{counts.recorded} of {counts.wanted}"
        lines.append(
            f'<text x="320" y="{y + 15}" text-anchor="end">{name}</text>{drawn}'
            f'<text x="760" y="{y + 15}">{label}</text>'
        )
    head = "from light to dark: wanted, planned, recorded; within it, downwards: aligned, annotated, may be released"
    size = f'width="860" height="{70 + len(rows) * high}" viewBox="0 0 860 {70 + len(rows) * high}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="14">'
        f'<rect width="100%" height="100%" fill="#fff"/><text x="20" y="28">{head}</text>{"".join(lines)}</svg>\n'
    )
