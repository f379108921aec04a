"""Examples for coherent mistake detection: a step as one instruction, with the range of the video that shows it.

By the rules of the published loader: only errors that a frame can show make a mistake, a step with only other errors
is left out, and the range excludes the beginning and end of a step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

from kitchensync.dataset.tables.step_rows import instruction
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

UNSEEN = frozenset({"Order Error", "Timing Error", "Temperature Error", "Measurement Error"})
SHORT, NOT_SEEN = "shorter than 0.1 s or not done", "only errors that no frame shows"
SHORTEST_S = 0.1  # as in the published loader
STEP_S = 0.1
"""Interval of samples, seconds."""


class JudgedStep(TypedDict):
    """Keys of all examples; frames and their seconds of the video if they were written."""

    example_id: str
    procedure_id: int
    procedure_description: str
    mistake: bool
    mistake_type: str | None
    frames: NotRequired[list[str]]
    frame_times: NotRequired[list[float]]


_Range = TypedDict("_Range", {"from": float, "to": float, "samples": int, "single_frame_range": list[int]})


class StepExample(JudgedStep, _Range):
    """A step with its range of the video, seconds, and the range of samples from which frames are taken."""


def examples(recording: AnnotatedRecording) -> Iterator[tuple[str, StepExample | None]]:
    """Yield for each entry ("", example), or (why it is left out, None)."""
    for place, entry in enumerate(recording.entries):
        visible = [error for error in entry.errors if error.tag not in UNSEEN]
        if not entry.performed or entry.end_s - entry.start_s < SHORTEST_S:
            yield SHORT, None
        elif entry.errors and not visible:
            yield NOT_SEEN, None
        else:
            length = entry.end_s - entry.start_s
            begin, end = entry.start_s + min(0.05 * length, 0.5), entry.end_s - min(0.3 * length, 3.0)
            samples = sample_count(begin, end)
            yield (
                "",
                {
                    "example_id": f"{recording.recording_id}_{place}",
                    "procedure_id": entry.step_id,
                    "procedure_description": instruction(entry),
                    "mistake": bool(visible),
                    "mistake_type": visible[0].tag if visible else None,
                    "from": round(begin, 6),
                    "to": round(end, 6),
                    "samples": samples,
                    "single_frame_range": [math.floor(0.8 * samples), math.ceil(0.9 * samples)],
                },
            )


def sample_count(begin: float, end: float) -> int:
    """Count the samples of a range, its end included, adding up steps with the rounding errors of the loader."""
    count, at = 1, begin
    while at < end:
        count, at = count + 1, at + STEP_S
    return count


def all_examples(recordings: Iterable[AnnotatedRecording]) -> tuple[list[StepExample], Counter[str]]:
    """Return the examples of recordings, and the number of entries left out by reason."""
    rows: list[StepExample] = []
    left_out = Counter({SHORT: 0, NOT_SEEN: 0})
    for recording in recordings:
        for why, example in examples(recording):
            if example is None:
                left_out[why] += 1
            else:
                rows.append(example)
    return rows, left_out


def recording_of(example: JudgedStep) -> str:
    """Return the recording whose step an example is about."""
    return example["example_id"].partition("/")[0].rpartition("_")[0]


class ExampleCounts(TypedDict):
    """Numbers of examples."""

    examples: int
    by_split: dict[str, int]
    "`part:mistake` or `part:success`: its examples."
    types: dict[str, int]
    "Type of mistake: its examples."
    left_out: dict[str, int]
    "Why: entries left out."


def count_examples(
    rows: Sequence[JudgedStep], left_out: Counter[str], part_of: Mapping[str, str]
) -> ExampleCounts:
    """Count the examples by part and by type, and the entries left out."""
    by_split = Counter(
        f"{part_of[recording]}:{'mistake' if row['mistake'] else 'success'}"
        for row in rows
        if (recording := recording_of(row)) in part_of
    )
    types = Counter(kind for row in rows if (kind := row["mistake_type"]) is not None)
    return {
        "examples": len(rows),
        "by_split": dict(sorted(by_split.items())),
        "types": dict(types.most_common()),
        "left_out": dict(left_out),
    }
