"""Questions about a recording's video stopped after each step, with answers from its graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from kitchensync.dataset.promqa.questions import PromqaExample, Targets, examples, seconds_of
from kitchensync.dataset.source.data_set import graph_of, numbered
from kitchensync.dataset.source.numbering import Numbering
from kitchensync.dataset.source.own_members import read_cooked
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.operations.errors import BadOperation
from kitchensync.operations.operation_kinds import Line, Strict
from kitchensync.recipe_app.review.question_rounds import MOST_OFFERED, Item, shuffled
from kitchensync.task_graphs.categories import CATEGORIES, TAGS
from kitchensync.task_graphs.formats.captaincook4d import parse_captaincook4d
from kitchensync.task_graphs.order.drawing import draw

TEXTS = {"next": "What can I do next?"} | {
    category.column: category.question for category in CATEGORIES if category.column
}
NOTHING = "No: nothing."
Stripped = Annotated[Line, StringConstraints(strip_whitespace=True, min_length=1)]
_ACTION = re.compile(r"^(\w+)-(?=\1)", re.IGNORECASE)


class Written(Strict):
    """A question that a person or a model wrote about an example, with answers and notes on its generation."""

    recording_id: Annotated[str, Field(max_length=200)]
    question_id: Annotated[str, Field(max_length=120)]
    question: Stripped
    answers: Annotated[list[Stripped], Field(min_length=1, max_length=MOST_OFFERED)]
    source: Annotated[str, Field(min_length=1, max_length=200)] = "machine"
    generation: dict[str, Any] = Field(default_factory=dict)


def questions_of(own: OwnRecording, written: Sequence[Written] = ()) -> dict[str, Any]:
    """Return `items`, the questions about a recording in video order, and `graph`, its steps as drawn.

    An example with written questions has those, each once with all its answers; questions about other recordings are
    ignored. Raises BadOperation for an example that this recording does not have, for too many answers, and if all
    questions are about other recordings.
    """
    numbering = Numbering()
    member = numbered(read_cooked(own, numbering), numbering)
    graph = parse_captaincook4d(graph_of(member.cooked), name=member.annotated.graph_stem)
    targets = Targets.of(graph)
    rows = {row["question_id"]: row for row in examples(member.annotated, targets).rows}
    folder = own.recording.path.name
    ours = [question for question in written if question.recording_id == folder]
    by_example: dict[str, dict[str, list[Written]]] = {}
    for question in ours:
        example = question.question_id.partition("#")[0].removeprefix(folder)
        by_text = by_example.setdefault(member.published_id + example, {})
        by_text.setdefault(question.question, []).append(question)
    if (written and not ours) or not by_example.keys() <= rows.keys():
        raise BadOperation("a question is about another example than this recording has")
    items = []
    for name, row in rows.items():
        by_text = by_example.get(name, {TEXTS[row["type"]]: []})
        for number, text in enumerate(shuffled(name, by_text), 1):
            items.append(_item(row, f"{name}#{number}" if number > 1 else name, text, by_text[text], targets))
    return {
        "items": items,
        "graph": {"steps": [[step.node, step.text] for step in graph.steps], **draw(graph).as_json()},
    }


def _item(row: PromqaExample, name: str, question: str, written: Sequence[Written], targets: Targets) -> Item:
    answers = [step["description"] for step in row.get("next_steps") or row.get("missing_steps") or []]
    if "error_description" in row:
        answers = [row["error_description"]]
    sources: dict[str, list[str]] = {}
    for version in written:
        for text in version.answers:
            sources.setdefault(text, []).append(version.source)
    if len(sources) > MOST_OFFERED:
        raise BadOperation("a question has more answers than people can judge")
    generations = [version.generation for version in written if version.generation]
    steps = (*row["previous_steps"], row["current_step"])
    done = {node for step in steps if (node := step["step_id"]) is not None}
    before = frozenset(done if targets.graph.start is None else {*done, targets.graph.start})
    known = {tag: category for category, tag in enumerate(TAGS)}
    errors: dict[str, set[int]] = {}
    for step in row["previous_steps"]:
        for error in step.get("errors", ()):
            errors.setdefault(str(step["step_id"]), set()).add(known[error["tag"]])
    return {
        "item": name,
        "type": row["type"],
        "question": question,
        "end_s": seconds_of(row["end_time"]),
        "answers": shuffled(name, sources) or list(dict.fromkeys(map(_plain, answers))) or [NOTHING],
        "sources": {text: [*dict.fromkeys(who)] for text, who in sources.items()},
        "previous": [_plain(step["description"]) for step in row["previous_steps"]],
        "current": _plain(row["current_step"]["description"]),
        "nodes": {
            "done": sorted(node for node in done if node in targets.graph.by_node),
            "next": targets.next(before),
            "missing": targets.missing(before),
        },
        "errors": {node: sorted(categories) for node, categories in errors.items()},
        "example": row
        | {"question_id": name}
        | ({"generation": generations if generations[1:] else generations[0]} if generations else {}),
    }


def _plain(text: str) -> str:
    """Return a step's text without the leading action, which the published form repeats."""
    return _ACTION.sub("", text)
