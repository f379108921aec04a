"""Files of `annotations/` are read with their own types, or refused with the first field that breaks the form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kitchensync.storage.errors import BadAnnotations
from kitchensync.storage.recording_files.annotation_folder import (
    ACCEPTED,
    ACCEPTED_SCHEMA,
    accepted_steps,
    add_judged,
    editing,
    newest_judged,
    write_annotations,
)
from kitchensync.storage.recording_files.annotation_forms import misfit

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


def file_of(moments: Any, **more: Any) -> str:
    """Return a file of one error in a video of 450 frames."""
    error = {"error_id": "e1", "judged": {"verdict": "happened"}, "moments": moments}
    return json.dumps({"fps": "30000/1001", "frames": 450, "errors": [error], **more})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"errors": [{"error_id": "e1", "judged": {}}]}),
        file_of({"at": 1, "end": 450, "point_of_no_return": None, "noticed_at": 1, "corrected_at": 450}),
        file_of({"at": None, "end": 3}),
        file_of({}),
    ],
)
def test_moments_in_the_video_are_read(text: str) -> None:
    assert misfit(text, "judged-errors/1") == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (file_of({"begin": 5}), "Input should be 'at'"),
        (file_of({"at": 0}), "greater than or equal to 1"),
        (file_of({"at": True}), "valid integer"),
        (file_of({"at": 451}), "not in the video"),
        (file_of({"at": 5, "end": 4}), "before the begin"),
        (file_of({"at": None}, frames=None), "fps without frames"),
        (file_of({"at": 5}, fps=None, frames=None), "not in the video"),
        (file_of({"at": None}, fps=None, frames=None), "not in the video"),
        (file_of({}, fps="30/0"), "not a rate"),
        (file_of([]), "should be an object"),
    ],
)
def test_other_moments_are_refused(text: str, reason: str) -> None:
    assert reason in misfit(text, "judged-errors/1")
