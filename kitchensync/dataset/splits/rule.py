"""One split by one rule: as published, by a ratio and a seed, by the paper's supplement, or by the values of a file.

The published rules are those by which the lists of CaptainCook4D can be made again; they mean nothing for other data.
Those that the supplement of the paper states are for data of any lab. Environment: train and val share the fullest
kitchens, the others are the test part. Person: those who cooked every recipe are the test part, the others are
divided between train and val.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from kitchensync.dataset.splits.split_kinds import (
    PARTS,
    SEPARATED,
    NoSuchSplit,
    Split,
    StepSplit,
    Value,
    empty,
    names_of,
    script_number,
    strata,
)
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

MOST_SHARED = 5
"""Kitchens that train and val share; all but one where there are fewer than six."""
EVERY = 4
"""One recording of so many is for validation: the ratio 0.6 to 0.2."""

Recordings = list[AnnotatedRecording]


def by_supplement(kind: str, recordings: Recordings, seed: int) -> Split:
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


PUBLISHED = {"train": Fraction(75, 100), "test": Fraction(91, 100), "val": Fraction(1)}
"""Where the published loader cuts the entries of a recording: the test part stands before the validation part."""


def steps_divided(
    recordings: list[AnnotatedRecording], ratio: Ratio | None = None, seed: int | None = None
) -> StepSplit:
    """Cut the entries of each recording, normal and with errors apart: shuffled by a seed, without one in list order.

    The published loader shuffles a copy and cuts the list as it was.
    """
    cuts = PUBLISHED
    if ratio is not None:
        cuts = {"train": ratio[0], "val": ratio[0] + ratio[1], "test": Fraction(1)}
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


PLACES: Mapping[str, Mapping[str, frozenset[int]]] = {
    "environment": {
        "train": frozenset({1, 2, 5}),
        "val": frozenset({6, 7}),
        "test": frozenset({3, 8, 9, 10, 11}),
    },
    "person": {"train": frozenset({3, 4, 5, 6}), "val": frozenset({7, 8}), "test": frozenset({1, 2})},
}
TRAIN, VAL = (6, 10), (2, 10)
"""Shares of the recordings of a recipe and type, as fractions; the rest is the test part."""


def as_published(kind: str, recordings: list[AnnotatedRecording]) -> Split:
    """Return the published parts. Raises NoSuchSplit where a recording is not of the published set."""
    made = empty()
    if kind == "recipes":
        return made  # the published file is three empty lists, and no rule is published
    if kind in PLACES:
        for one in recordings:
            value = SEPARATED[kind](one)
            part = next((part for part, values in PLACES[kind].items() if value in values), None)
            if part is None:
                raise NoSuchSplit(
                    f"{one.recording_id}: {kind} {value} is not in the published set; give --ratio and --seed, "
                    "or --rule"
                )
            made[part].append(one.recording_id)
        return made
    for group in strata(recordings):  # by script number, after 6 tenths and 2 more, both rounded down
        ids = sorted((one.recording_id for one in group), key=script_number)
        train, val = (len(ids) * share // whole for share, whole in (TRAIN, VAL))
        made["train"] += ids[:train]
        made["val"] += ids[train : train + val]
        made["test"] += ids[train + val :]
    return made


Ratio = tuple[Fraction, Fraction, Fraction]


def by_ratio(kind: str, recordings: list[AnnotatedRecording], ratio: Ratio, seed: int) -> Split:
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


@dataclass(frozen=True)
class Rule:
    """How the parts come about: `published`, `ratio`, `supplement`, or the `values` of a file by part."""

    name: str
    ratio: Ratio | None = None
    seed: int | None = None
    values: Mapping[str, list[str]] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return the rule as a reader can use it again."""
        said: dict[str, object] = {"name": self.name}
        if self.ratio is not None:
            said["ratio"] = [float(share) for share in self.ratio]
        if self.seed is not None:
            said["seed"] = self.seed
        return said | ({"values": dict(self.values)} if self.values else {})


@dataclass(frozen=True)
class Divided:
    """The parts; of kind `steps` also the entries of each recording."""

    kind: str
    rule: Rule
    parts: Split
    entries: StepSplit | None = None


def divide(kind: str, recordings: list[AnnotatedRecording], rule: Rule) -> Divided:
    """Divide recordings by a rule, in their own order within each part. Raises NoSuchSplit."""
    if kind == "steps":
        if rule.name not in ("published", "ratio"):
            raise NoSuchSplit("steps are divided as published or by --ratio and --seed, not by --rule")
        entries = steps_divided(recordings, rule.ratio, rule.seed)
        parts = {part: [name for name, places in entries[part].items() if places] for part in PARTS}
        return Divided("steps", rule, parts, entries)
    if rule.name == "published":
        made = as_published(kind, recordings)
    elif rule.ratio is not None:
        made = by_ratio(kind, recordings, rule.ratio, rule.seed or 0)
    elif rule.name == "supplement":
        made = by_supplement(kind, recordings, rule.seed or 0)
    else:
        made = _by_values(kind, recordings, rule.values)
    if kind == "type":
        normal = {one.recording_id for one in recordings if not one.is_error}
        made["train"] = [one for one in made["train"] if one in normal]
    place = {one.recording_id: n for n, one in enumerate(recordings)}
    return Divided(kind, rule, {part: sorted(made[part], key=place.__getitem__) for part in PARTS})


def _by_values(kind: str, recordings: list[AnnotatedRecording], values: Mapping[str, list[str]]) -> Split:
    made = empty()
    for part in PARTS:
        wanted = set(values.get(part, ()))
        found = [one for one in recordings if names_of(kind, one) & wanted]
        if unknown := wanted - set().union(*(names_of(kind, one) for one in found)):
            raise NoSuchSplit(
                f"{kind} {min(unknown)}: the rule names it and no recording has it; correct the rule"
            )
        made[part] = [one.recording_id for one in found]
    return made


def normal_only(divided: Divided, recordings: list[AnnotatedRecording]) -> Divided:
    """Return the same parts without recordings with errors."""
    normal = {one.recording_id for one in recordings if not one.is_error}
    parts = {part: [one for one in ids if one in normal] for part, ids in divided.parts.items()}
    entries = None
    if divided.entries is not None:
        entries = {
            part: {one: places for one, places in ids.items() if one in normal}
            for part, ids in divided.entries.items()
        }
    return Divided(divided.kind, divided.rule, parts, entries)
