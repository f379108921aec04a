"""Questions about a recording's film stopped after each step, with the answers that its graph gives."""

from __future__ import annotations

import re
from typing import Any

from recipe_app.graphs.formats.captaincook4d import parse_captaincook4d
from recipe_app.releases.data_set import graph_of, numbered
from recipe_app.releases.numbering import Numbering
from recipe_app.releases.own import OwnRecording
from recipe_app.releases.own_set import cooked_of
from recipe_app.releases.prefix_clips import seconds_of
from recipe_app.releases.promqa.questions import Targets, examples
from recipe_app.review.question_rounds import Item

TEXTS = {
    "next": "What can I do next?",
    "missing": "Did I leave out a step so far? Which one?",
    "order": "Did I do this step in the right order?",
    "preparation": "Did I prepare everything for this step as I should?",
    "measurement": "Did I measure as I should in this step?",
    "timing": "Did this step take as long as it should?",
    "technique": "Did I do this step as I should?",
    "temperature": "Was it as hot as it should be in this step?",
}
NOTHING = "No: nothing."
_ACTION = re.compile(r"^(\w+)-(?=\1)", re.IGNORECASE)


def questions_of(own: OwnRecording) -> list[Item]:
    """Return the questions about a recording, in the order of its film."""
    numbering = Numbering()
    member = numbered(cooked_of(own, numbering), numbering)
    targets = Targets.of(parse_captaincook4d(graph_of(member.cooked), name=member.annotated.graph_stem))
    rows, _ = examples(member.annotated, targets)
    return [_item(row) for row in rows]


def _item(row: dict[str, Any]) -> Item:
    answers = [step["description"] for step in row.get(f"{row['type']}_steps", [])]
    if "error_description" in row:
        answers = [row["error_description"]]
    return {
        "item": row["question_id"],
        "type": row["type"],
        "question": TEXTS[row["type"]],
        "end_s": seconds_of(row["end_time"]),
        "answers": list(dict.fromkeys(map(_plain, answers))) or [NOTHING],
        "previous": [_plain(step["description"]) for step in row["previous_steps"]],
        "current": _plain(row["current_step"]["description"]),
        "example": row,
    }


def _plain(text: str) -> str:
    """Return a step's text without its action in front, which the published form says twice."""
    return _ACTION.sub("", text)
