"""Parts by a ratio and a seed: recordings recipe by recipe, kitchens, persons and recipes as wholes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction

from kitchensync.dataset.splits.split_kinds import PARTS, SEPARATED, NoSuchSplit, Split, Value, empty, strata
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

Ratio = tuple[Fraction, Fraction, Fraction]


def split(kind: str, recordings: list[AnnotatedRecording], ratio: Ratio, seed: int) -> Split:
    """Return parts whose sizes are as close to the ratio as the kind allows. Raises NoSuchSplit."""
    chance = random.Random(seed)
    if kind in ("recordings", "type"):
        return _by_recording(recordings, ratio, chance)
    return _by_group(kind, recordings, ratio, chance)


def _by_recording(recordings: list[AnnotatedRecording], ratio: Ratio, chance: random.Random) -> Split:
    """Cut each recipe and type by the ratio, rounded down; what is left over goes where most is lacking."""
    made, left = empty(), []
    for group in strata(recordings):
        ids = sorted(one.recording_id for one in group)
        chance.shuffle(ids)
        for part, share in zip(PARTS, ratio, strict=True):
            count = int(len(group) * share)
            made[part] += ids[:count]
            ids = ids[count:]
        left += ids
    for one in left:
        made[_most_lacking(made, len(recordings), ratio)].append(one)
    return made


def _by_group(kind: str, recordings: list[AnnotatedRecording], ratio: Ratio, chance: random.Random) -> Split:
    """Give whole groups, the largest first, to the part that lacks most; a part that is asked for gets one."""
    groups: dict[Value, list[str]] = {}
    for one in recordings:
        groups.setdefault(SEPARATED[kind](one), []).append(one.recording_id)
    asked = [part for part, share in zip(PARTS, ratio, strict=True) if share]
    if len(groups) < len(asked):
        raise NoSuchSplit(
            f"{len(groups)} of {kind} cannot fill {len(asked)} parts; choose another kind, or give a ratio with a 0"
        )
    order = sorted(groups, key=str)
    chance.shuffle(order)
    order.sort(key=lambda value: -len(groups[value]))
    made = empty()
    for place, value in enumerate(order):
        without = [part for part in asked if not made[part]]
        open_to = without if len(order) - place == len(without) else asked
        made[_most_lacking(made, len(recordings), ratio, open_to)] += groups[value]
    return made


def _most_lacking(
    made: Mapping[str, Sequence[str]], total: int, ratio: Ratio, parts: Sequence[str] = PARTS
) -> str:
    lacking = {part: total * share - len(made[part]) for part, share in zip(PARTS, ratio, strict=True)}
    return max(parts, key=lambda part: lacking[part])
