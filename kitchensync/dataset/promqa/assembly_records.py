"""Verified questions about a lab's own recordings in the form of ProMQA-Assembly."""

from __future__ import annotations

from kitchensync.dataset.promqa.questions import BEFORE_ALL, PromqaExample, seconds_of

BESIDE = ("clip", "clip_frames", "last_frame_s", "frames")
"""Fields of a row whose clip or frames were written beside the list."""


def is_of_assembly(row: PromqaExample) -> bool:
    """Return whether an example was judged by the three criteria, has an answer, and follows a step."""
    judged = all("multimodal" in judge for judge in row["verification"]["judges"])
    return judged and bool(row["answers"]) and row["current_step"]["step_id"] != BEFORE_ALL


def assembly_record(row: PromqaExample, start_s: float) -> dict[str, object]:
    """Return such an example with the published keys; `start_s` is the start of the recording's first step.

    A recipe takes the place of a toy. `multimodal` is the majority of the people who judged the question valid;
    `source` is human if none of the answers was proposed to the judges.
    """
    judgements = [*row["verification"]["judges"], row.get("adjudication")]
    multimodal = [judgement["multimodal"] for judgement in judgements if judgement and judgement["question"]]
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
