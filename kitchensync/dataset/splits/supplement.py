"""The rules that the supplement of the CaptainCook4D paper states, for data of any lab.

Environment: train and val share the fullest kitchens, the others are the test part. Person: those who cooked every
recipe are the test part, the others are divided between train and val.
"""

from __future__ import annotations

import random
from collections import defaultdict

from kitchensync.dataset.splits.split_kinds import NoSuchSplit, Split, empty
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

MOST_SHARED = 5
"""Kitchens that train and val share; all but one where there are fewer than six."""
EVERY = 4
"""One recording of so many is for validation: the ratio 0.6 to 0.2."""

Recordings = list[AnnotatedRecording]


def split(kind: str, recordings: Recordings, seed: int) -> Split:
    """Return the parts of the rule. Raises NoSuchSplit where the data cannot fulfil it."""
    chance = random.Random(seed)
    if kind == "environment":
        return _environment(recordings, chance)
    if kind == "person":
        return _person(recordings, chance)
    raise NoSuchSplit(f"the supplement has no rule for {kind}; give --ratio and --seed, or --rule FILE")


def _environment(recordings: Recordings, chance: random.Random) -> Split:
    kitchens: dict[int, Recordings] = defaultdict(list)
    for one in recordings:
        kitchens[one.environment].append(one)
    if len(kitchens) < 2:
        raise NoSuchSplit(
            "all recordings are of one kitchen: none is left for the test part; choose another kind"
        )
    fullest = sorted(kitchens, key=lambda kitchen: (-len(kitchens[kitchen]), kitchen))
    shared = fullest[: min(MOST_SHARED, len(kitchens) - 1)]
    val = _for_validation([kitchens[kitchen] for kitchen in shared], chance)
    made = empty()
    for one in recordings:
        part = "test" if one.environment not in shared else "val" if one.recording_id in val else "train"
        made[part].append(one.recording_id)
    return made


def _for_validation(kitchens: list[Recordings], chance: random.Random) -> set[str]:
    """Draw every fourth recording of each type, kitchen by kitchen; each keeps one, and gives one if it has two."""
    by_kitchen = [sorted(kitchen, key=lambda one: one.recording_id) for kitchen in kitchens]
    for kitchen in by_kitchen:
        chance.shuffle(kitchen)
    drawn: set[str] = set()
    for is_error in (False, True):
        row = [one.recording_id for kitchen in by_kitchen for one in kitchen if one.is_error == is_error]
        drawn |= set(row[EVERY - 1 :: EVERY])
    for kitchen in by_kitchen:
        ids = [one.recording_id for one in kitchen]
        if drawn.issuperset(ids):
            drawn.discard(ids[0])
        elif not drawn.intersection(ids) and len(ids) > 1:
            drawn.add(ids[0])
    return drawn


def _person(recordings: Recordings, chance: random.Random) -> Split:
    cooked: dict[int, set[int]] = defaultdict(set)
    for one in recordings:
        cooked[one.person_id].add(one.activity_id)
    recipes = set().union(*cooked.values())
    complete = {person for person in cooked if cooked[person] == recipes}
    if not complete or len(complete) == len(cooked):
        who = "everybody" if complete else "nobody"
        raise NoSuchSplit(
            f"{who} cooked all {len(recipes)} recipes: no test part can be told apart; give --ratio and --seed"
        )
    others = sorted(set(cooked) - complete)
    chance.shuffle(others)
    val = set(_validators(others, recordings))
    made = empty()
    for one in recordings:
        part = "test" if one.person_id in complete else "val" if one.person_id in val else "train"
        made[part].append(one.recording_id)
    return made


def _validators(others: list[int], recordings: Recordings) -> list[int]:
    """Take persons until they have a quarter of the recordings; at least one, where one is left to train with."""
    counts = {person: sum(one.person_id == person for one in recordings) for person in others}
    wanted, found = sum(counts.values()) / EVERY, 0
    taken: list[int] = []
    for person in others[:-1]:
        if taken and found + counts[person] / 2 > wanted:
            break
        taken.append(person)
        found += counts[person]
    return taken
