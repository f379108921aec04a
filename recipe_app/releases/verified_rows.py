"""The examples whose questions people verified, with what they said: of own recordings, from their folders."""

from __future__ import annotations

from typing import Any

from recipe_app.releases.given_data import GivenData
from storage.annotation_folder import verified_questions

KEPT = ("question", "answers", "answer_tags", "judges")


def verified_rows(found: GivenData, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the examples that are valid with their verified answers, and the recordings where nobody verified any.

    Raises BadAnnotations, OSError.
    """
    said: dict[str, dict[str, Any]] = {}
    without = []
    for recording, ready in found.own.items():
        questions = verified_questions(ready.path)
        if questions is None:
            without.append(recording)
        for one in questions or ():
            if one["valid"]:
                said[recording + _behind(one)] = {key: one[key] for key in KEPT}
    valid = [row | said[row["question_id"]] for row in rows if row["question_id"] in said]
    return valid, without


def _behind(row: dict[str, Any]) -> str:
    """Return what stands in the id of a question behind that of its recording, which each release gives anew."""
    return str(row["question_id"]).removeprefix(str(row["recording_id"]))
