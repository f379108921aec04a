"""Verified questions about a lab's own recordings in the form of ProMQA-Assembly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

BESIDE = ("clip", "clip_frames", "last_frame_s", "frames")
"""What a row has where films were written beside the list."""


def assembly_records(rows: Iterable[Mapping[str, Any]], start_s: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the examples that were judged in that form; `start_s` is when the first step of a recording began.

    A recipe takes the place of a toy. An example is multimodal where most of those say so who hold it valid, and of a
    person where no answer of it was offered to the judges.
    """
    return [_record(row, start_s[row["recording_id"]]) for row in rows if _is_in_form(row)]


def _is_in_form(row: Mapping[str, Any]) -> bool:
    return all("multimodal" in one for one in row["verification"]["judges"])


def _record(row: Mapping[str, Any], start_s: float) -> dict[str, Any]:
    people = [*row["verification"]["judges"], row.get("adjudication")]
    multimodal = [one["multimodal"] for one in people if one and one["question"]]
    hours, minutes, seconds = map(int, row["end_time"].split(":"))
    return {
        "toy_id": row["activity_name"],
        "sequence_id": row["recording_id"],
        "video": {"start": start_s, "end": (hours * 60 + minutes) * 60 + seconds},
        "question": row["question"],
        "answers": row["answers"],
        "question_type": row["type"],
        "multimodal": 2 * sum(multimodal) > len(multimodal),
        "source": "machine" if "machine" in row["answer_tags"] else "human",
        **{key: row[key] for key in BESIDE if key in row},
    }
