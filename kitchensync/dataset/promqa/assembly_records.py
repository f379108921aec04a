"""Verified questions about a lab's own recordings in the form of ProMQA-Assembly."""

from __future__ import annotations

from kitchensync.dataset.promqa.questions import BEFORE_ALL, PromqaExample, seconds_of

BESIDE = ("clip", "clip_frames", "last_frame_s", "frames")
"""What a row has where films were written beside the list."""


def is_of_assembly(row: PromqaExample) -> bool:
    """Return whether an example was judged by the three criteria, has an answer, and follows some step."""
    judged = all("multimodal" in one for one in row["verification"]["judges"])
    return judged and bool(row["answers"]) and row["current_step"]["step_id"] != BEFORE_ALL


def assembly_record(row: PromqaExample, start_s: float) -> dict[str, object]:
    """Return an example of that kind with the published keys; `start_s` is when the recording's first step began.

    A recipe takes the place of a toy. `multimodal` is true if most people who found the question valid say so;
    `source` is human if none of the answers was offered to the judges.
    """
    people = [*row["verification"]["judges"], row.get("adjudication")]
    multimodal = [one["multimodal"] for one in people if one and one["question"]]
    return {
        "toy_id": row["activity_name"],
        "sequence_id": row["recording_id"],
        "video": {"start": start_s, "end": seconds_of(row["end_time"])},
        "question": row["question"],
        "answers": row["answers"],
        "question_type": row["type"],
        "multimodal": 2 * sum(multimodal) > len(multimodal),
        "source": "machine" if "machine" in row["answer_tags"] else "human",
        **{key: value for key, value in row.items() if key in BESIDE},
    }
