"""Agreement of people who narrated the same video independently, by words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, TypedDict

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from kitchensync.dataset.source.data_set import FINE_GRAINED
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.graph_files import MAX_ANNOTATION_BYTES, read_text

LEAST_S = 1.0
"""Minimum duration of a narration, seconds."""
_WORD = re.compile(r"\w+")
_Second = Annotated[float, Field(allow_inf_nan=False)]


class ReleasedNarration(BaseModel):
    """A narration in a release; speakers and participants share one numbering."""

    start: _Second
    end: _Second
    text: str
    verb: str
    noun: str
    speaker: int


def released_narrations_of(folder: Path) -> dict[str, list[ReleasedNarration]]:
    """Read the narrations of a lab's own release by recording; empty if it has none. Raises BadGraph."""
    if not (folder / FINE_GRAINED).exists():
        return {}
    try:
        return _NARRATED.validate_json(read_text(folder / FINE_GRAINED, most_bytes=MAX_ANNOTATION_BYTES))
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise BadGraph(FINE_GRAINED, place, "not as `release` writes narrations") from error


_NARRATED = TypeAdapter(dict[str, list[ReleasedNarration]])
_Pair = tuple[ReleasedNarration, ReleasedNarration]


class NarratorAgreement(TypedDict):
    """Narrations, and the agreement of people who narrated the same video; None without such pairs."""

    recordings: int
    recordings_by_several: int
    "Recordings narrated by several people."
    narrations: int
    speakers: int
    pairs: int
    "Narrations of one moment by two people."
    without_a_pair: int
    word_error_rate: float | None
    "Word edits divided by the words of the longer text, over all pairs."
    same_verb: float | None
    "Share of the pairs in which at least one text has a verb."
    same_noun: float | None


def agreement_of_narrators(narrated: Mapping[str, Sequence[ReleasedNarration]]) -> NarratorAgreement:
    """Count narrations by recording, and compare every two people who narrated the same video."""
    people: dict[str, dict[int, list[ReleasedNarration]]] = {name: {} for name in narrated}
    for name, narrations in narrated.items():
        for narration in narrations:
            people[name].setdefault(narration.speaker, []).append(narration)
    pairs, alone = list[_Pair](), 0
    for by_speaker in people.values():
        for first, second in combinations(by_speaker.values(), 2):
            matches = paired(first, second)
            pairs += matches
            alone += len(first) + len(second) - 2 * len(matches)
    texts = [tuple(_WORD.findall(narration.text.lower()) for narration in pair) for pair in pairs]
    words = sum(max(1, *map(len, both)) for both in texts)  # two empty texts count one word, without an error
    return {
        "recordings": len(people),
        "recordings_by_several": sum(len(by_speaker) > 1 for by_speaker in people.values()),
        "narrations": sum(map(len, narrated.values())),
        "speakers": len({speaker for by_speaker in people.values() for speaker in by_speaker}),
        "pairs": len(pairs),
        "without_a_pair": alone,
        "word_error_rate": _share(sum(_edits(*both) for both in texts), words),
        "same_verb": _equal((first.verb, second.verb) for first, second in pairs),
        "same_noun": _equal((first.noun, second.noun) for first, second in pairs),
    }


def paired(first: Sequence[ReleasedNarration], second: Sequence[ReleasedNarration]) -> list[_Pair]:
    """Pair narrations of two people with maximal total overlap in time, each at most once."""
    from scipy.optimize import linear_sum_assignment  # slow to import, and rarely needed

    (starts, ends), (other_starts, other_ends) = (
        np.array([[narration.start, narration.end] for narration in narrations]).T
        for narrations in (first, second)
    )
    ends, other_ends = np.maximum(ends, starts + LEAST_S), np.maximum(other_ends, other_starts + LEAST_S)
    overlap_s = np.minimum(ends[:, None], other_ends) - np.maximum(starts[:, None], other_starts)
    rows = zip(*linear_sum_assignment(overlap_s.clip(0), maximize=True), strict=True)
    return [(first[row], second[column]) for row, column in rows if overlap_s[row, column] > 0]


def _edits(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the Levenshtein distance of two texts in words."""
    row = list(range(len(second) + 1))
    for number, word in enumerate(first, 1):
        before, row = row, [number]
        for column, other in enumerate(second, 1):
            row.append(min(before[column] + 1, row[-1] + 1, before[column - 1] + (word != other)))
    return row[-1]


def _equal(words: Iterable[tuple[str, str]]) -> float | None:
    equal = [first == second for first, second in words if first or second]
    return _share(sum(equal), len(equal))


def _share(count: int, of: int) -> float | None:
    return round(count / of, 4) if of else None
