"""What steps do to what: a verb and a noun for each text, read from it, or by a table that a lab edits."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from kitchensync.dataset.tables.csv_text import csv_text
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording
from kitchensync.task_graphs.formats.graph_files import read_text
from kitchensync.task_graphs.model import Step
from kitchensync.task_graphs.text.actions import action_of
from kitchensync.task_graphs.text.spans import pieces, plural

Deed = tuple[str, str | None]
"""Verb and noun; None where the text names neither ingredient nor tool."""
COLUMNS = ("text", "verb", "noun")


def actions_of(recordings: Iterable[AnnotatedRecording]) -> dict[str, Deed]:
    """Return what each text of a step says: its verb, and the first ingredient, else tool, in the plural."""
    found: dict[str, Deed] = {}
    for text in sorted({e.description for one in recordings for e in one.entries}):
        step = Step(0, text)
        nouns = pieces(step.instruction, "ingredient") or pieces(step.instruction, "tool")
        found[text] = action_of(step.action or step.instruction), plural(nouns[0].lower()) if nouns else None
    return found


def actions_table(actions: Mapping[str, Deed]) -> str:
    """Return the table, CSV; words that mean the same are to get one name in it."""
    return csv_text(COLUMNS, ((text, verb, noun or "") for text, (verb, noun) in actions.items()))


def read_actions(path: Path) -> dict[str, Deed]:
    """Read a table as `actions_table` writes it, by text. Raises BadGraph, which names the row."""
    text = read_text(path).removeprefix("\ufeff")  # what spreadsheets put in front
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except csv.Error as error:
        raise BadGraph(path.name, "", f"no table ({error})") from error
    found: dict[str, Deed] = {}
    if rows[:1] != [list(COLUMNS)]:
        raise BadGraph(path.name, "row 1", f"the columns are {', '.join(COLUMNS)}")
    for number, row in enumerate(rows[1:], 2):
        place = f"row {number}"
        if len(row) != len(COLUMNS) or not row[1].strip():
            raise BadGraph(path.name, place, "a text, its verb and its noun, which may be empty")
        if row[0] in found:
            raise BadGraph(path.name, place, "this text stands twice; remove one line")
        found[row[0]] = row[1].strip(), row[2].strip() or None
    return found
