"""Files of `annotations/` are read with their own types, or refused with the first field that breaks the form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kitchensync.storage.annotation_folder import (
    ACCEPTED,
    ACCEPTED_SCHEMA,
    accepted_steps,
    add_judged,
    editing,
    newest_judged,
    write_annotations,
)
from kitchensync.storage.errors import BadAnnotations

STEP = {"node": 1, "start_frame": 1, "end_frame": 9}
STEPS = {"schema": ACCEPTED_SCHEMA, "version": 1, "author": "a", "fps": "25", "frames": 9, "steps": [STEP]}


def question(*judges: tuple[bool, list[bool]]) -> dict[str, Any]:
    judged = [{"question": valid, "answers": answers} for valid, answers in judges]
    row = {"question_id": "q", "recording_id": "r", "type": "next", "valid": True}
    return {"questions": [row | {"verification": {"judges": judged}}]}


def test_a_judge_of_an_invalid_question_judges_no_answers(tmp_path: Path) -> None:
    content = question((True, [True, False]), (False, []))
    add_judged(tmp_path, "questions", content)
    kept = newest_judged(tmp_path, "questions")
    assert kept is not None
    assert kept["questions"] == content["questions"]


def test_judges_of_different_numbers_of_answers_are_refused(tmp_path: Path) -> None:
    add_judged(tmp_path, "questions", question((True, [True, False]), (True, [True])))
    with pytest.raises(BadAnnotations, match="different numbers of answers"):
        newest_judged(tmp_path, "questions")


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (STEPS | {"frames": "9"}, "frames"),
        (STEPS | {"steps": [STEP | {"start_frame": "1"}]}, "steps.0.start_frame"),
        (STEPS | {"steps": [STEP | {"node": 1.5}]}, "steps.0.node"),
        (STEPS | {"fps": "1/0"}, "fps"),
        (STEPS | {"fps": "-25"}, "fps"),
        (STEPS | {"fps": "fast"}, "fps"),
    ],
)
def test_accepted_steps_of_another_form_are_refused(
    tmp_path: Path, content: dict[str, Any], field: str
) -> None:
    with editing(tmp_path):
        write_annotations(tmp_path, ACCEPTED, content)
    with pytest.raises(BadAnnotations, match=field):
        accepted_steps(tmp_path)


def test_accepted_steps_are_read(tmp_path: Path) -> None:
    with editing(tmp_path):
        write_annotations(tmp_path, ACCEPTED, STEPS)
    steps = accepted_steps(tmp_path)
    assert steps is not None
    assert steps.spans_s(1) == [(0.0, 9 / 25)]
