"""Examples for coherent mistake detection: a step as one instruction, with the part of the film that shows it done.

By the rules of the published loader: only errors that a picture can show make a mistake, a step with none but others
is left out; the range leaves out how a step begins and ends.
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
SHORTEST_S = 0.1
STEP_S = 0.1
"""From one sample to the next."""


class JudgedStep(TypedDict):
    """What all examples have; pictures and their seconds of the film where they were written."""

    example_id: str
    procedure_id: int
    procedure_description: str
    mistake: bool
    mistake_type: str | None
    frames: NotRequired[list[str]]
    frame_times: NotRequired[list[float]]


_Range = TypedDict("_Range", {"from": float, "to": float, "samples": int, "single_frame_range": list[int]})


class StepExample(JudgedStep, _Range):
    """A step with the range of the film, seconds, that shows it done, and the samples of which pictures are taken."""


def examples(one: AnnotatedRecording) -> Iterator[tuple[str, StepExample | None]]:
    """Yield for each entry why it is left out, and None; or nothing, and its example."""
    for place, entry in enumerate(one.entries):
        seen = [error for error in entry.errors if error.tag not in UNSEEN]
        if not entry.performed or entry.end_s - entry.start_s < SHORTEST_S:
            yield SHORT, None
        elif entry.errors and not seen:
            yield NOT_SEEN, None
        else:
            length = entry.end_s - entry.start_s
            begin, end = entry.start_s + min(0.05 * length, 0.5), entry.end_s - min(0.3 * length, 3.0)
            samples = sample_count(begin, end)
            yield (
                "",
                {
                    "example_id": f"{one.recording_id}_{place}",
                    "procedure_id": entry.step_id,
                    "procedure_description": instruction(entry),
                    "mistake": bool(seen),
                    "mistake_type": seen[0].tag if seen else None,
                    "from": round(begin, 6),
                    "to": round(end, 6),
                    "samples": samples,
                    "single_frame_range": [math.floor(0.8 * samples), math.ceil(0.9 * samples)],
                },
            )


def sample_count(begin: float, end: float) -> int:
    """Count the samples of a range, its end among them: steps are added up as the loader does, rounding with it."""
    count, at = 1, begin
    while at < end:
        count, at = count + 1, at + STEP_S
    return count


def all_examples(recordings: Iterable[AnnotatedRecording]) -> tuple[list[StepExample], Counter[str]]:
    """Return the examples of recordings, and how many entries are left out for which cause."""
    rows: list[StepExample] = []
    left_out = Counter({SHORT: 0, NOT_SEEN: 0})
    for one in recordings:
        for why, example in examples(one):
            if example is None:
                left_out[why] += 1
            else:
                rows.append(example)
    return rows, left_out


def recording_of(example: JudgedStep) -> str:
    """Return the recording whose step an example is about."""
    return example["example_id"].partition("/")[0].rpartition("_")[0]


def counted(
    rows: Sequence[JudgedStep], left_out: Counter[str], part_of: Mapping[str, str]
) -> dict[str, object]:
    """Return how many examples there are: by part where recordings have one, and by type; what was left out."""
    by_split = Counter(
        f"{part_of[recording]}:{'mistake' if row['mistake'] else 'success'}"
        for row in rows
        if (recording := recording_of(row)) in part_of
    )
    return {
        "examples": len(rows),
        "by_split": dict(sorted(by_split.items())),
        "types": dict(Counter(row["mistake_type"] for row in rows if row["mistake"]).most_common()),
        "left_out": dict(left_out),
    }
