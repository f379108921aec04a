"""The steps of every recording divided over all three parts."""

from __future__ import annotations

import random
from fractions import Fraction

from kitchensync.dataset.splits.by_ratio import Ratio
from kitchensync.dataset.splits.split_kinds import PARTS, StepSplit
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

PUBLISHED = {"train": Fraction(75, 100), "test": Fraction(91, 100), "val": Fraction(1)}
"""Where the published loader cuts the entries of a recording: the test part stands before the validation part."""


def split(
    recordings: list[AnnotatedRecording], ratio: Ratio | None = None, seed: int | None = None
) -> StepSplit:
    """Cut the entries of each recording, normal and with errors apart: shuffled by a seed, without one in list order.

    The published loader shuffles a copy and cuts the list as it was.
    """
    cuts = dict(PUBLISHED) if ratio is None else _cuts(ratio)
    chance = None if seed is None else random.Random(seed)
    made: StepSplit = {part: {one.recording_id: [] for one in recordings} for part in PARTS}
    for one in recordings:
        for wrong in (False, True):
            places = [n for n, entry in enumerate(one.entries) if bool(entry.errors) == wrong]
            if chance is not None:
                chance.shuffle(places)
            begin = 0
            for part, cut in cuts.items():
                end = int(len(places) * cut)
                made[part][one.recording_id] += places[begin:end]
                begin = end
    return {
        part: {recording: sorted(places) for recording, places in ids.items()} for part, ids in made.items()
    }


def _cuts(ratio: Ratio) -> dict[str, Fraction]:
    train, val, _ = ratio
    return {"train": train, "val": train + val, "test": Fraction(1)}
