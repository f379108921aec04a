"""How far people who narrated one film agree: cases counted by hand, and pairs found by trying all of them."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from kitchensync.dataset.statistics.narrators import (
    LEAST_S,
    ReleasedNarration,
    agreement_of_narrators,
    paired,
)

TOLD = [
    ("1_1", 3, 0.0, 4.0, "Pour the hot water", "pour", "water"),
    ("1_1", 3, 4.0, 9.0, "stir it", "stir", ""),
    ("1_1", 3, 20.0, 21.0, "wait", "wait", ""),
    ("1_1", 5, 1.0, 3.0, "pour water, slowly", "pour", "water"),
    ("1_1", 5, 3.0, 8.0, "mix it", "mix", ""),
    ("1_2", 3, 0.0, 2.0, "alone", "", ""),
]
"""Recording, speaker, from, to, text, verb, noun."""
BY_HAND = {
    "recordings": 2,
    "recordings_by_several": 1,
    "narrations": 6,
    "speakers": 2,
    "pairs": 2,
    "without_a_pair": 1,
    "word_error_rate": round(
        (3 + 1) / (4 + 2), 4
    ),  # two words out of the first text, one put in; one replaced
    "same_verb": 0.5,
    "same_noun": 1.0,  # of the pair in which a noun is named
}


def test_agreement_is_as_counted_by_hand() -> None:
    narrated: dict[str, list[ReleasedNarration]] = {}
    for name, speaker, start, end, text, verb, noun in TOLD:
        one = ReleasedNarration(start=start, end=end, text=text, verb=verb, noun=noun, speaker=speaker)
        narrated.setdefault(name, []).append(one)
    assert agreement_of_narrators(narrated) == BY_HAND
    silent = [ReleasedNarration(start=0, end=1, text="", verb="", noun="", speaker=who) for who in (3, 5)]
    assert agreement_of_narrators({"1_1": silent})["word_error_rate"] == 0
    nothing = agreement_of_narrators({})
    assert (nothing["narrations"], nothing["pairs"], nothing["word_error_rate"]) == (0, 0, None)


SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=4)


@given(SPANS, SPANS)
def test_no_other_pairs_overlap_longer(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    def overlap(one: tuple[float, float], other: tuple[float, float]) -> float:
        return max(0, min(one[1], other[1]) - max(one[0], other[0]))

    spans = [[(start, start + lasts) for start, lasts in side] for side in (first, second)]
    told = [
        [ReleasedNarration(start=start, end=end, text="", verb="", noun="", speaker=1) for start, end in side]
        for side in spans
    ]
    found = paired(*told)
    lasting_spans = [[(start, max(end, start + 1)) for start, end in side] for side in spans]
    few, many = sorted(lasting_spans, key=len)
    most = max(sum(map(overlap, few, order)) for order in permutations(many, len(few)))
    lasting = [overlap(*((one.start, max(one.end, one.start + LEAST_S)) for one in both)) for both in found]
    assert (sum(lasting), 0 in lasting) == (most, False)
    for side in zip(*found, strict=True):
        assert len({id(one) for one in side}) == len(side)
