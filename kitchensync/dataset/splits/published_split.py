"""The rules by which the published lists of CaptainCook4D can be made again; they mean nothing for other data."""

from __future__ import annotations

from collections.abc import Mapping

from kitchensync.dataset.splits.split_kinds import SEPARATED, NoSuchSplit, Split, empty, script_number, strata
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

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


def split(kind: str, recordings: list[AnnotatedRecording]) -> Split:
    """Return the published parts. Raises NoSuchSplit where a recording is not of the published set."""
    if kind == "recipes":
        return empty()  # the published file is three empty lists, and no rule is published
    if kind in PLACES:
        return _by_place(kind, recordings)
    return _by_number(recordings)


def _by_place(kind: str, recordings: list[AnnotatedRecording]) -> Split:
    made = empty()
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


def _by_number(recordings: list[AnnotatedRecording]) -> Split:
    """Cut the recordings of each recipe and type, by script number, after 6 tenths and 2 more, both rounded down."""
    made = empty()
    for group in strata(recordings):
        ids = sorted((one.recording_id for one in group), key=script_number)
        train, val = (len(ids) * share // whole for share, whole in (TRAIN, VAL))
        made["train"] += ids[:train]
        made["val"] += ids[train : train + val]
        made["test"] += ids[train + val :]
    return made
