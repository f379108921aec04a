"""The splits that a release of a lab's own recordings writes by itself: every kind that they can give."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from recipe_app.graphs.formats.annotations import AnnotatedRecording
from recipe_app.releases.splits.kinds import PARTS, NoSuchSplit
from recipe_app.releases.splits.rule import Divided, Rule, divide, normal_only

KINDS = ("environment", "person", "recipes", "recordings")
RULE = Rule("ratio", ratio=(Fraction(6, 10), Fraction(2, 10), Fraction(2, 10)), seed=0)
PLACE = "data_splits/{}_data_split_{}.json"


def own_splits(
    out: Path, recordings: list[AnnotatedRecording]
) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Return files to write, files that are there and stay, and why a kind has none.

    What somebody made with `release split` stays as long as it divides exactly these recordings.
    """
    made: dict[str, str] = {}
    kept: list[str] = []
    lacking: dict[str, str] = {}
    for kind in KINDS:
        names = [PLACE.format(kind, which) for which in ("combined", "normal")]
        if all(_divides(out / name, ids) for name, ids in zip(names, _ids(recordings), strict=True)):
            kept += names
            continue
        try:
            divided = divide(kind, recordings, RULE)
        except NoSuchSplit as error:
            lacking[kind] = str(error)
        else:
            made |= dict(zip(names, map(_text, (divided, normal_only(divided, recordings))), strict=True))
    named = {*made, *kept}
    kept += [
        name
        for path in sorted((out / "data_splits").glob("*.json"))
        if (name := f"data_splits/{path.name}") not in named
    ]
    return made, kept, lacking


def _ids(recordings: list[AnnotatedRecording]) -> Iterator[set[str]]:
    yield {one.recording_id for one in recordings}
    yield {one.recording_id for one in recordings if not one.is_error}


def _divides(path: Path, ids: set[str]) -> bool:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        lists: Mapping[str, list[str]] = {part: found[part] for part in PARTS}
        return sorted(one for part in PARTS for one in lists[part]) == sorted(ids)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _text(divided: Divided) -> str:
    return json.dumps(divided.parts)
