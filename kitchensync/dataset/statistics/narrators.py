"""How far people who narrated the same film alone agree, by words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from kitchensync.dataset.source.data_set import FINE_GRAINED
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.graph_files import MAX_ANNOTATION_BYTES, read_text

LEAST_S = 1.0
"""A narration of a moment, without an end, lasts so long."""
_WORD = re.compile(r"\w+")
_Second = Annotated[float, Field(allow_inf_nan=False)]


class ReleasedNarration(BaseModel):
    """What somebody said of a film, as releases hold it; a speaker is a number as participants have."""

    start: _Second
    end: _Second
    text: str
    verb: str
    noun: str
    speaker: int


def released_narrations_of(folder: Path) -> dict[str, list[ReleasedNarration]]:
    """Read the narrations of a release of ours by recording; none where it has none. Raises BadGraph."""
    if not (folder / FINE_GRAINED).exists():
        return {}
    try:
        return _NARRATED.validate_json(read_text(folder / FINE_GRAINED, most_bytes=MAX_ANNOTATION_BYTES))
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise BadGraph(FINE_GRAINED, place, "not as `release` writes narrations") from error


_NARRATED = TypeAdapter(dict[str, list[ReleasedNarration]])
_Pair = tuple[ReleasedNarration, ReleasedNarration]


def agreement_of_narrators(narrated: Mapping[str, Sequence[ReleasedNarration]]) -> dict[str, Any]:
    """Count narrations, as releases hold them by recording, and compare every two people who narrated one film.

    `word_error_rate` is edits of words divided by the words of the longer text, over all pairs; `same_verb` and
    `same_noun` are shares of the pairs in which somebody names one. None where there is nothing to compare.
    """
    people: dict[str, dict[int, list[ReleasedNarration]]] = {name: {} for name in narrated}
    for name, all_of in narrated.items():
        for one in all_of:
            people[name].setdefault(one.speaker, []).append(one)
    pairs, alone = list[_Pair](), 0
    for told in people.values():
        for first, second in combinations(told.values(), 2):
            found = paired(first, second)
            pairs += found
            alone += len(first) + len(second) - 2 * len(found)
    texts = [tuple(_WORD.findall(one.text.lower()) for one in pair) for pair in pairs]
    words = sum(max(1, *map(len, both)) for both in texts)  # two empty texts have no error of one
    return {
        "recordings": len(people),
        "recordings_by_several": sum(len(told) > 1 for told in people.values()),
        "narrations": sum(map(len, narrated.values())),
        "speakers": len({speaker for told in people.values() for speaker in told}),
        "pairs": len(pairs),
        "without_a_pair": alone,
        "word_error_rate": _share(sum(_edits(*both) for both in texts), words),
        "same_verb": _equal((one.verb, other.verb) for one, other in pairs),
        "same_noun": _equal((one.noun, other.noun) for one, other in pairs),
    }


def paired(first: Sequence[ReleasedNarration], second: Sequence[ReleasedNarration]) -> list[_Pair]:
    """Pair narrations of two people so that the pairs overlap in time as long as possible, each once at most."""
    from scipy.optimize import linear_sum_assignment  # slow to import, and rarely needed

    (starts, ends), (other_starts, other_ends) = (
        np.array([[one.start, one.end] for one in all_of]).T for all_of in (first, second)
    )
    ends, other_ends = np.maximum(ends, starts + LEAST_S), np.maximum(other_ends, other_starts + LEAST_S)
    both_s = np.minimum(ends[:, None], other_ends) - np.maximum(starts[:, None], other_starts)
    rows = zip(*linear_sum_assignment(both_s.clip(0), maximize=True), strict=True)
    return [(first[row], second[column]) for row, column in rows if both_s[row, column] > 0]


def _edits(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words are put in, taken out or replaced to make one text of the other (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, word in enumerate(one, 1):
        before, row = row, [number]
        for column, its in enumerate(other, 1):
            row.append(min(before[column] + 1, row[-1] + 1, before[column - 1] + (word != its)))
    return row[-1]


def _equal(words: Iterable[tuple[str, str]]) -> float | None:
    told = [one == other for one, other in words if one or other]
    return _share(sum(told), len(told))


def _share(count: int, of: int) -> float | None:
    return round(count / of, 4) if of else None
