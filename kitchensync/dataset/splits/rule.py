"""Split recordings by a rule: as published, by a ratio and a seed, by the paper's supplement, or by a file.

The published rules reproduce the lists of CaptainCook4D and mean nothing for other data. The rules of the paper's
supplement work for any data. Environment: train and val share the kitchens with most recordings, the other kitchens
are the test part. Person: people who cooked every recipe are the test part, the others are divided between train and
val.
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
    AppliedRule,
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
"""Kitchens that train and val share; all but one if there are fewer than six."""
EVERY = 4
"""Recordings of train and val per validation recording: the ratio 0.6 to 0.2."""

Recordings = list[AnnotatedRecording]


def by_supplement(kind: str, recordings: Recordings, seed: int) -> Split:
    """Split by the rule of the paper's supplement. Raises NoSuchSplit if the data do not allow it."""
    chance = random.Random(seed)
    if kind == "environment":
        return _environment(recordings, chance)
    if kind == "person":
        return _person(recordings, chance)
    raise NoSuchSplit(f"the supplement has no rule for {kind}; give --ratio and --seed, or --rule FILE")


def _environment(recordings: Recordings, chance: random.Random) -> Split:
    kitchens: dict[int, Recordings] = defaultdict(list)
    for recording in recordings:
        kitchens[recording.environment].append(recording)
    if len(kitchens) < 2:
        raise NoSuchSplit(
            "all recordings are of one kitchen: none is left for the test part; choose another kind"
        )
    by_size = sorted(kitchens, key=lambda kitchen: (-len(kitchens[kitchen]), kitchen))
    shared = by_size[: min(MOST_SHARED, len(kitchens) - 1)]
    val = _draw_validation([kitchens[kitchen] for kitchen in shared], chance)
    parts = empty()
    for recording in recordings:
        id_ = recording.recording_id
        part = "test" if recording.environment not in shared else "val" if id_ in val else "train"
        parts[part].append(id_)
    return parts


def _draw_validation(kitchens: list[Recordings], chance: random.Random) -> set[str]:
    """Draw every fourth recording of each type; every kitchen with two recordings is in train and in val."""
    by_kitchen = [sorted(kitchen, key=lambda recording: recording.recording_id) for kitchen in kitchens]
    for kitchen in by_kitchen:
        chance.shuffle(kitchen)
    drawn: set[str] = set()
    for is_error in (False, True):
        ids = [r.recording_id for kitchen in by_kitchen for r in kitchen if r.is_error == is_error]
        drawn |= set(ids[EVERY - 1 :: EVERY])
    for kitchen in by_kitchen:
        ids = [recording.recording_id for recording in kitchen]
        if drawn.issuperset(ids):
            drawn.discard(ids[0])
        elif not drawn.intersection(ids) and len(ids) > 1:
            drawn.add(ids[0])
    return drawn


def _person(recordings: Recordings, chance: random.Random) -> Split:
    cooked: dict[int, set[int]] = defaultdict(set)
    for recording in recordings:
        cooked[recording.person_id].add(recording.activity_id)
    recipes = set().union(*cooked.values())
    complete = {person for person in cooked if cooked[person] == recipes}
    if not complete or len(complete) == len(cooked):
        who = "every person" if complete else "no person"
        raise NoSuchSplit(
            f"{who} cooked all {len(recipes)} recipes: there is no test part; give --ratio and --seed"
        )
    others = sorted(set(cooked) - complete)
    chance.shuffle(others)
    val = set(_validators(others, recordings))
    parts = empty()
    for recording in recordings:
        person = recording.person_id
        part = "test" if person in complete else "val" if person in val else "train"
        parts[part].append(recording.recording_id)
    return parts


def _validators(others: list[int], recordings: Recordings) -> list[int]:
    """Take people until they have a quarter of the recordings; at least one person, but not the last."""
    counts = {person: sum(recording.person_id == person for recording in recordings) for person in others}
    target, total = sum(counts.values()) / EVERY, 0
    taken: list[int] = []
    for person in others[:-1]:
        if taken and total + counts[person] / 2 > target:
            break
        taken.append(person)
        total += counts[person]
    return taken


PUBLISHED = {"train": Fraction(75, 100), "test": Fraction(91, 100), "val": Fraction(1)}
"""Where the published loader cuts the entries of a recording; its test part comes before its validation part."""


def divide_steps(
    recordings: list[AnnotatedRecording], ratio: Ratio | None = None, seed: int | None = None
) -> StepSplit:
    """Divide the entries of each recording, normal entries and entries with errors separately.

    With a seed they are shuffled, without in list order: the published loader shuffles a copy and cuts the original.
    """
    cuts = PUBLISHED
    if ratio is not None:
        cuts = {"train": ratio[0], "val": ratio[0] + ratio[1], "test": Fraction(1)}
    chance = None if seed is None else random.Random(seed)
    parts: StepSplit = {part: {recording.recording_id: [] for recording in recordings} for part in PARTS}
    for recording in recordings:
        for has_errors in (False, True):
            places = [n for n, entry in enumerate(recording.entries) if bool(entry.errors) == has_errors]
            if chance is not None:
                chance.shuffle(places)
            start = 0
            for part, cut in cuts.items():
                end = int(len(places) * cut)
                parts[part][recording.recording_id] += places[start:end]
                start = end
    return {part: {id_: sorted(places) for id_, places in ids.items()} for part, ids in parts.items()}


PLACES: Mapping[str, Mapping[str, frozenset[int]]] = {
    "environment": {
        "train": frozenset({1, 2, 5}),
        "val": frozenset({6, 7}),
        "test": frozenset({3, 8, 9, 10, 11}),
    },
    "person": {"train": frozenset({3, 4, 5, 6}), "val": frozenset({7, 8}), "test": frozenset({1, 2})},
}
TRAIN, VAL = (6, 10), (2, 10)
"""Shares of the recordings of a recipe and type, as fractions, rounded down; the rest is the test part."""


def as_published(kind: str, recordings: list[AnnotatedRecording]) -> Split:
    """Return the published parts. Raises NoSuchSplit if a recording is not in the published set."""
    parts = empty()
    if kind == "recipes":
        return parts  # the published file is three empty lists, and no rule is published
    if kind in PLACES:
        for recording in recordings:
            value = SEPARATED[kind](recording)
            part = next((part for part, values in PLACES[kind].items() if value in values), None)
            if part is None:
                raise NoSuchSplit(
                    f"{recording.recording_id}: {kind} {value} is not in the published set; give --ratio and --seed, "
                    "or --rule"
                )
            parts[part].append(recording.recording_id)
        return parts
    for group in strata(recordings):
        ids = sorted((recording.recording_id for recording in group), key=script_number)
        train, val = (len(ids) * share // whole for share, whole in (TRAIN, VAL))
        parts["train"] += ids[:train]
        parts["val"] += ids[train : train + val]
        parts["test"] += ids[train + val :]
    return parts


Ratio = tuple[Fraction, Fraction, Fraction]


def by_ratio(kind: str, recordings: list[AnnotatedRecording], ratio: Ratio, seed: int) -> Split:
    """Return parts whose sizes are as close to the ratio as the kind allows. Raises NoSuchSplit."""
    chance = random.Random(seed)
    if kind in ("recordings", "type"):
        return _by_recording(recordings, ratio, chance)
    return _by_group(kind, recordings, ratio, chance)


def _by_recording(recordings: list[AnnotatedRecording], ratio: Ratio, chance: random.Random) -> Split:
    """Divide each recipe and type by the ratio, rounded down; the rest fills the parts that are most incomplete."""
    parts, rest = empty(), []
    for group in strata(recordings):
        ids = sorted(recording.recording_id for recording in group)
        chance.shuffle(ids)
        for part, share in zip(PARTS, ratio, strict=True):
            count = int(len(group) * share)
            parts[part] += ids[:count]
            ids = ids[count:]
        rest += ids
    for recording_id in rest:
        parts[_most_incomplete(parts, len(recordings), ratio)].append(recording_id)
    return parts


def _by_group(kind: str, recordings: list[AnnotatedRecording], ratio: Ratio, chance: random.Random) -> Split:
    """Assign whole groups, the largest first, to the most incomplete part; every part with a share gets a group."""
    groups: dict[Value, list[str]] = {}
    for recording in recordings:
        groups.setdefault(SEPARATED[kind](recording), []).append(recording.recording_id)
    with_share = [part for part, share in zip(PARTS, ratio, strict=True) if share]
    if len(groups) < len(with_share):
        raise NoSuchSplit(
            f"{len(groups)} of {kind} cannot fill {len(with_share)} parts; choose another kind, or give a ratio "
            "with a 0"
        )
    order = sorted(groups, key=str)
    chance.shuffle(order)
    order.sort(key=lambda value: -len(groups[value]))
    parts = empty()
    for place, value in enumerate(order):
        without = [part for part in with_share if not parts[part]]
        # The last groups are reserved for the parts that have none yet.
        allowed = without if len(order) - place == len(without) else with_share
        parts[_most_incomplete(parts, len(recordings), ratio, allowed)] += groups[value]
    return parts


def _most_incomplete(parts: Split, total: int, ratio: Ratio, allowed: Sequence[str] = PARTS) -> str:
    missing = {part: total * share - len(parts[part]) for part, share in zip(PARTS, ratio, strict=True)}
    return max(allowed, key=lambda part: missing[part])


@dataclass(frozen=True)
class Rule:
    """A rule: `published`, `ratio`, `supplement`, or `file` with its `values` by part."""

    name: str
    ratio: Ratio | None = None
    seed: int | None = None
    values: Mapping[str, list[str]] = field(default_factory=dict)

    def as_json(self) -> AppliedRule:
        """Return the rule as JSON, for the answer of `release split`."""
        rule: AppliedRule = {"name": self.name}
        if self.ratio is not None:
            rule["ratio"] = [float(share) for share in self.ratio]
        if self.seed is not None:
            rule["seed"] = self.seed
        if self.values:
            rule["values"] = dict(self.values)
        return rule


@dataclass(frozen=True)
class Divided:
    """The parts; for kind `steps` also the entries of each recording."""

    kind: str
    rule: Rule
    parts: Split
    entries: StepSplit | None = None


def divide(kind: str, recordings: list[AnnotatedRecording], rule: Rule) -> Divided:
    """Divide recordings by a rule, in their own order within each part. Raises NoSuchSplit."""
    if kind == "steps":
        if rule.name not in ("published", "ratio"):
            raise NoSuchSplit("steps are divided as published or by --ratio and --seed, not by --rule")
        entries = divide_steps(recordings, rule.ratio, rule.seed)
        parts = {part: [name for name, places in entries[part].items() if places] for part in PARTS}
        return Divided("steps", rule, parts, entries)
    if rule.name == "published":
        parts = as_published(kind, recordings)
    elif rule.ratio is not None:
        parts = by_ratio(kind, recordings, rule.ratio, rule.seed or 0)
    elif rule.name == "supplement":
        parts = by_supplement(kind, recordings, rule.seed or 0)
    else:
        parts = _by_values(kind, recordings, rule.values)
    if kind == "type":
        normal = _normal_ids(recordings)
        parts["train"] = [recording_id for recording_id in parts["train"] if recording_id in normal]
    order = {recording.recording_id: n for n, recording in enumerate(recordings)}
    return Divided(kind, rule, {part: sorted(parts[part], key=order.__getitem__) for part in PARTS})


def _by_values(kind: str, recordings: list[AnnotatedRecording], values: Mapping[str, list[str]]) -> Split:
    parts = empty()
    for part in PARTS:
        names = set(values.get(part, ()))
        matches = [recording for recording in recordings if names_of(kind, recording) & names]
        if unknown := names - set().union(*(names_of(kind, recording) for recording in matches)):
            raise NoSuchSplit(
                f"{kind} {min(unknown)}: the rule names it but no recording has it; correct the rule"
            )
        parts[part] = [recording.recording_id for recording in matches]
    return parts


def normal_only(divided: Divided, recordings: list[AnnotatedRecording]) -> Divided:
    """Return the same parts without recordings with errors."""
    normal = _normal_ids(recordings)
    parts = {part: [id_ for id_ in ids if id_ in normal] for part, ids in divided.parts.items()}
    entries = None
    if divided.entries is not None:
        entries = {
            part: {id_: places for id_, places in ids.items() if id_ in normal}
            for part, ids in divided.entries.items()
        }
    return Divided(divided.kind, divided.rule, parts, entries)


def _normal_ids(recordings: list[AnnotatedRecording]) -> set[str]:
    return {recording.recording_id for recording in recordings if not recording.is_error}
