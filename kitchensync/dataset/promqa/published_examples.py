"""Compare published examples with ours: which differ, in which keys, and the cause if known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict, cast

from kitchensync.dataset.promqa.questions import PromqaExample
from kitchensync.task_graphs.formats.strict_json import Reader, load

_EDITED = {
    1: (36, 37, 42), 2: (3, 26, 42), 3: (46,), 4: (43, 44), 5: (2, 27), 8: (31,), 10: (42,), 12: (6, 38), 13: (44,),
    15: (29, 33, 41), 17: (49,), 18: (3, 11, 19, 27, 33, 101), 22: (2, 31, 40, 41), 23: (32,), 25: (4, 22, 41),
    27: (45,), 28: (25,), 29: (5, 28),
}  # fmt: skip
EDITED_BY_HAND = frozenset(f"{recipe}_{number}" for recipe, numbers in _EDITED.items() for number in numbers)
"""Recordings whose annotations the authors of ProMQA edited before making examples; source: their program."""
BY_HAND, UNKNOWN = "recording edited by hand", "not known"
_KEYS = (
    *("recording_id", "example_id", "question_id", "activity_name", "type", "end_time", "previous_steps"),
    *("current_step", "next_steps", "missing_steps", "error_description", "is_noisy"),
)


class DifferentExample(TypedDict):
    """A published example that is not reproduced: the keys that differ, and the cause."""

    question_id: str
    differs: list[str]
    cause: str


class Comparison(TypedDict):
    """The number of reproduced published examples, and those that are not reproduced."""

    equal: int
    differences: list[DifferentExample]


def parse_examples(text: str, name: str) -> list[PromqaExample]:
    """Return the examples of a published file. Raises BadGraph."""
    read = Reader(name)
    rows = [read.object(row, f"[{number}]") for number, row in enumerate(read.array(load(text, name), ""))]
    for number, row in enumerate(rows):
        for key in ("question_id", "recording_id", "type"):
            read.text(row.get(key), f"[{number}]: {key}")
    return cast(list[PromqaExample], rows)


def compare(published: Iterable[PromqaExample], examples: Iterable[PromqaExample]) -> Comparison:
    """Compare published examples with ours of the same question id."""
    by_id = {example["question_id"]: example for example in examples}
    equal, differences = 0, list[DifferentExample]()
    for theirs in published:
        ours = by_id.get(theirs["question_id"])
        keys = ["absent"] if ours is None else [key for key in _KEYS if theirs.get(key) != ours.get(key)]
        equal += not keys
        if keys:
            cause = BY_HAND if theirs["recording_id"] in EDITED_BY_HAND else UNKNOWN
            differences.append({"question_id": theirs["question_id"], "differs": keys, "cause": cause})
    return {"equal": equal, "differences": differences}
