"""One split by one rule, with everything that is to be known of it: what its parts hold, share and leave out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kitchensync.dataset.splits import by_ratio, published_split, split_steps, supplement
from kitchensync.dataset.splits.by_ratio import Ratio
from kitchensync.dataset.splits.split_kinds import (
    PARTS,
    NoSuchSplit,
    Split,
    StepSplit,
    empty,
    names_of,
)
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording


@dataclass(frozen=True)
class Rule:
    """How the parts come about: `published`, `ratio`, `supplement`, or the `values` of a file by part."""

    name: str
    ratio: Ratio | None = None
    seed: int | None = None
    values: Mapping[str, list[str]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the rule as a reader can use it again."""
        said: dict[str, Any] = {"name": self.name}
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
        return _steps(recordings, rule)
    made = _parts(kind, recordings, rule)
    if kind == "type":
        normal = {one.recording_id for one in recordings if not one.is_error}
        made["train"] = [one for one in made["train"] if one in normal]
    place = {one.recording_id: n for n, one in enumerate(recordings)}
    return Divided(kind, rule, {part: sorted(made[part], key=place.__getitem__) for part in PARTS})


def _parts(kind: str, recordings: list[AnnotatedRecording], rule: Rule) -> Split:
    if rule.name == "published":
        return published_split.split(kind, recordings)
    if rule.ratio is not None:
        return by_ratio.split(kind, recordings, rule.ratio, rule.seed or 0)
    if rule.name == "supplement":
        return supplement.split(kind, recordings, rule.seed or 0)
    return _by_values(kind, recordings, rule.values)


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


def _steps(recordings: list[AnnotatedRecording], rule: Rule) -> Divided:
    if rule.name not in ("published", "ratio"):
        raise NoSuchSplit("steps are divided as published or by --ratio and --seed, not by --rule")
    entries = split_steps.split(recordings, rule.ratio, rule.seed)
    parts = {part: [recording for recording, places in entries[part].items() if places] for part in PARTS}
    return Divided("steps", rule, parts, entries)


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
