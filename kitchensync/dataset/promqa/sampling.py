"""Some of the examples, drawn by a seed: the published way of it, not its very draw."""

from __future__ import annotations

import random
from collections import defaultdict

from kitchensync.dataset.promqa.questions import KINDS, TAGS, PromqaExample

MOST_WRONG_BEFORE, MOST_TARGETS = 5, 5
SHARE_OF_TAGS = 8
"""Of a kind that is a tag an eighth as many are wanted as of `next` and `missing`: 50 beside 400."""
CELLS = 4
"""Noisy or not, with a target or without."""


def sample(found: list[PromqaExample], wanted: int, seed: int) -> list[PromqaExample]:
    """Draw `wanted` examples each of `next` and `missing`, an eighth of each other kind; fewer where there are not.

    Of these two kinds a quarter is drawn of each cell, noisy or not and with a target or none, and what is over of
    the first ones; at most one of a recording in a cell. Examples with more than five earlier steps that were
    wrong, or more than five targets, are never drawn. The order stays.
    """
    chance = random.Random(seed)
    kept: set[str] = set()
    for kind in KINDS:
        fitting = [
            one
            for one in found
            if one["type"] == kind
            and sum("errors" in step for step in one["previous_steps"]) <= MOST_WRONG_BEFORE
            and len(_targets(one)) <= MOST_TARGETS
        ]
        chance.shuffle(fitting)
        cells: dict[tuple[bool, bool], dict[str, PromqaExample]] = defaultdict(dict)
        for one in fitting:
            cells[one["is_noisy"], bool(_targets(one))].setdefault(one["recording_id"], one)
        drawn = fitting[: -(-wanted // SHARE_OF_TAGS)]
        if kind not in TAGS:
            drawn = [
                one
                for place, cell in enumerate(cells.values())
                for one in list(cell.values())[: -(-(wanted - place) // CELLS)]
            ]
        kept.update(one["question_id"] for one in drawn)
    return [one for one in found if one["question_id"] in kept]


def _targets(one: PromqaExample) -> list[object]:
    return list(one.get("next_steps") or one.get("missing_steps") or [])
