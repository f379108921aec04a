"""Questions about a recording's film stopped after each step, with the answers that its graph gives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from kitchensync.dataset.errors import BadOperation
from kitchensync.dataset.examples.prefix_clips import seconds_of
from kitchensync.dataset.operations.operation_kinds import Line, Strict
from kitchensync.dataset.promqa.generation import MOST_ANSWERS
from kitchensync.dataset.promqa.questions import Example, Targets, examples
from kitchensync.dataset.source.data_set import graph_of, numbered
from kitchensync.dataset.source.entries import TAGS
from kitchensync.dataset.source.numbering import Numbering
from kitchensync.dataset.source.own_members import cooked_of
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.recipe_app.review.question_rounds import Item
from kitchensync.task_graphs.formats.captaincook4d import parse_captaincook4d
from kitchensync.task_graphs.order.drawing import draw

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


class Written(Strict):
    """A question that a model wrote about an example, with its answers, and everything that was said about it."""

    recording_id: Annotated[str, Field(max_length=200)]
    question_id: Annotated[str, Field(max_length=120)]
    question: Line
    answers: Annotated[list[Line], Field(min_length=1, max_length=MOST_ANSWERS)]
    generation: dict[str, Any] = Field(default_factory=dict)


def questions_of(own: OwnRecording, written: Sequence[Written] = ()) -> dict[str, Any]:
    """Return `items`, the questions about a recording in the order of its film, and `graph`, its steps as drawn.

    An example about which a model wrote has the model's question; those about other recordings are left. Raises
    BadOperation for a question about an example that this recording has not, and where all are about others.
    """
    numbering = Numbering()
    member = numbered(cooked_of(own, numbering), numbering)
    graph = parse_captaincook4d(graph_of(member.cooked), name=member.annotated.graph_stem)
    targets = Targets.of(graph)
    rows = {row["question_id"]: row for row in examples(member.annotated, targets).rows}
    folder = own.recording.path.name
    ours = [one for one in written if one.recording_id == folder]
    by_model = {member.published_id + one.question_id.removeprefix(folder): one for one in ours}
    if (written and not ours) or not by_model.keys() <= rows.keys():
        raise BadOperation("a question is about another example than this recording has")
    return {
        "items": [_item(row, by_model.get(name), targets) for name, row in rows.items()],
        "graph": {"steps": [[step.node, step.text] for step in graph.steps], **draw(graph).told()},
    }


def _item(row: Example, written: Written | None, targets: Targets) -> Item:
    answers = [step["description"] for step in row.get(f"{row['type']}_steps", [])]
    if "error_description" in row:
        answers = [row["error_description"]]
    found = written.answers if written else list(dict.fromkeys(map(_plain, answers))) or [NOTHING]
    done = {step["step_id"] for step in (*row["previous_steps"], row["current_step"])}
    before = frozenset(done if targets.graph.start is None else {*done, targets.graph.start})
    return {
        "item": row["question_id"],
        "type": row["type"],
        "question": written.question if written else TEXTS[row["type"]],
        "end_s": seconds_of(row["end_time"]),
        "answers": found,
        "previous": [_plain(step["description"]) for step in row["previous_steps"]],
        "current": _plain(row["current_step"]["description"]),
        "nodes": {
            "done": sorted(node for node in done if node in targets.graph.by_node),
            "next": targets.next(before),
            "missing": targets.missing(before),
        },
        "errors": _errors(row),
        "example": row | ({"generation": written.generation} if written else {}),
    }


def _errors(row: Example) -> dict[str, list[int]]:
    """Return the categories of errors that were made before the current step, by the node of their step."""
    known = {tag: category for category, tag in enumerate(TAGS)}
    found: dict[str, set[int]] = {}
    for step in row["previous_steps"]:
        for error in step.get("errors", ()):
            found.setdefault(str(step["step_id"]), set()).add(known[error["tag"]])
    return {node: sorted(categories) for node, categories in found.items()}


def _plain(text: str) -> str:
    """Return a step's text without its action in front, which the published form says twice."""
    return _ACTION.sub("", text)
