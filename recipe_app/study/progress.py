"""How far a study is: for each kind of recording what is wanted, recorded, and how far those recordings are."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path

from recipe_app.study.already_cooked import CookedRecording, cooked_below
from recipe_app.study.wanted import CookedSession, Study, StudyGoal
from storage.annotation_folder import ACCEPTED, FOLDER
from storage.life import usable_manifest
from storage.permission import Purpose, why_not
from storage.reading.alignments import alignment_files, read_alignment
from storage.verify import PASS, WARN, kept_verdict

DIMENSIONS = ("recipe", "strategy", "kitchen", "person", "display", "part")
ALIGNED = "aligned"
Row = tuple[str, ...]


@dataclass
class CoverageCounts:
    """Numbers of recordings; each stage counts those that are recorded."""

    wanted: int = 0
    recorded: int = 0
    verified: int = 0
    aligned: int = 0
    annotated: int = 0
    consented: int = 0
    releasable: int = 0


STAGES = tuple(field.name for field in fields(CoverageCounts))


def coverage(study: Study, root: Path, by: Sequence[str]) -> tuple[dict[Row, CoverageCounts], dict[str, str]]:
    """Count the recordings below a folder by some dimensions; return the counts, and what does not count and why.

    A goal that names no kitchen, person or part is wanted in the row of an empty name.
    """
    rows: dict[Row, CoverageCounts] = {}
    for goal in study.goals:
        rows.setdefault(tuple(getattr(goal, name) for name in by), CoverageCounts()).wanted += goal.count
    cooked, left_out = cooked_below(root)
    for one in cooked:
        counts = rows.setdefault(_row(study, one, by), CoverageCounts())
        for stage in ("recorded", *_stages(one.path)):
            setattr(counts, stage, getattr(counts, stage) + 1)
    return dict(sorted(rows.items())), left_out


def _row(study: Study, one: CookedRecording, by: Sequence[str]) -> Row:
    goal = next((goal for goal in study.goals if study.counts_for(goal, one.session)), None)
    return tuple(_value(name, one.session, goal) for name in by)


def _value(name: str, session: CookedSession, goal: StudyGoal | None) -> str:
    """A recording stands where the goal that it serves is wanted; one that serves none stands by itself."""
    return str(getattr(goal if goal is not None else session, name))


def _stages(path: Path) -> list[str]:
    manifest = usable_manifest(path)
    verified = (kept_verdict(path) or {}).get("status") in (PASS, WARN)
    states = {read_alignment(file).status for file in alignment_files(path)}
    released = not why_not(manifest, Purpose.RELEASE_RAW)
    reached = {
        "verified": verified,
        "aligned": states == {ALIGNED},
        "annotated": (path / FOLDER / ACCEPTED).is_file(),
        "consented": not why_not(manifest, Purpose.ANNOTATE),
        "releasable": released and verified,
    }
    return [stage for stage, is_so in reached.items() if is_so]


def as_csv(rows: Mapping[Row, CoverageCounts], by: Sequence[str]) -> str:
    """Return the counts as a table with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*by, *STAGES])
    for row, counts in rows.items():
        writer.writerow([*row, *(getattr(counts, stage) for stage in STAGES)])
    return out.getvalue()


def as_picture(rows: Mapping[Row, CoverageCounts]) -> str:
    """Return the counts as an SVG: a bar for what is wanted of a row, filled by what is recorded and releasable."""
    most = max((max(one.wanted, one.recorded) for one in rows.values()), default=1) or 1
    unit, high = 420 / most, 30
    lines = []
    for place, (row, counts) in enumerate(rows.items()):
        y = 50 + place * high
        name = escape(" · ".join(word for word in row if word))
        bars = [
            (counts.wanted, "#ddd", 20),
            (counts.recorded, "#7aa6c2", 20),
            (counts.releasable, "#1f5f8b", 8),
        ]
        drawn = "".join(
            f'<rect x="330" y="{y + (20 - tall) / 2:g}" width="{value * unit:g}" height="{tall}" fill="{colour}"/>'
            for value, colour, tall in bars
        )
        said = f"{counts.recorded} of {counts.wanted}"
        lines.append(
            f'<text x="320" y="{y + 15}" text-anchor="end">{name}</text>{drawn}'
            f'<text x="760" y="{y + 15}">{said}</text>'
        )
    head = "light: wanted, middle: recorded, dark: may be released"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{70 + len(rows) * high}" '
        f'font-family="sans-serif" font-size="14"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="20" y="28">{head}</text>{"".join(lines)}</svg>\n'
    )
