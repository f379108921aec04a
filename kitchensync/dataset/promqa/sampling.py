"""Draw examples by a seed, with the published method but not the published random numbers."""

from __future__ import annotations

import random
from collections import defaultdict

from kitchensync.dataset.promqa.questions import KINDS, TAGS, PromqaExample

MOST_WRONG_BEFORE, MOST_TARGETS = 5, 5  # as in the published sampling
SHARE_OF_TAGS = 8
"""Examples of `next` or `missing` per example of a kind that is a tag: 400 beside 50."""
CELLS = 4
"""Noisy or not, with a target or without."""


def sample(examples: list[PromqaExample], count: int, seed: int) -> list[PromqaExample]:
    """Draw `count` examples each of `next` and `missing`, an eighth of each other kind, or as many as there are.

    For these two kinds a quarter is drawn from each cell (noisy or not, with or without a target), the remainder
    from the first cells, and at most one per recording and cell. Examples with more than five earlier steps with
    errors, or more than five targets, are never drawn. The order stays.
    """
    chance = random.Random(seed)
    kept: set[str] = set()
    for kind in KINDS:
        suitable = [
            example
            for example in examples
            if example["type"] == kind
            and sum("errors" in step for step in example["previous_steps"]) <= MOST_WRONG_BEFORE
            and len(_targets(example)) <= MOST_TARGETS
        ]
        chance.shuffle(suitable)
        cells: dict[tuple[bool, bool], dict[str, PromqaExample]] = defaultdict(dict)
        for example in suitable:
            cell = cells[example["is_noisy"], bool(_targets(example))]
            cell.setdefault(example["recording_id"], example)
        drawn = suitable[: -(-count // SHARE_OF_TAGS)]
        if kind not in TAGS:
            drawn = [
                example
                for place, cell in enumerate(cells.values())
                for example in list(cell.values())[: -(-(count - place) // CELLS)]
            ]
        kept.update(example["question_id"] for example in drawn)
    return [example for example in examples if example["question_id"] in kept]


def _targets(example: PromqaExample) -> list[object]:
    return list(example.get("next_steps") or example.get("missing_steps") or [])
