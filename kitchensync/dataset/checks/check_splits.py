"""Check the splits: every recording in one part, and nothing shared with the test part that must not be."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

from kitchensync.dataset.checks.release_faults import DataSetUnderCheck
from kitchensync.dataset.splits.split_kinds import KINDS, PARTS, SEPARATED
from kitchensync.shell.untrusted_json import parse_json


def check_splits(checked: DataSetUnderCheck) -> None:
    """Check each list of `data_splits/`; the published lists of recipes are empty."""
    by_id = {recording.recording_id: recording for recording in checked.annotations.recordings}
    for name in sorted(name for name in checked.texts if name.startswith("data_splits/")):
        kind, _, which = name.removeprefix("data_splits/").removesuffix(".json").partition("_data_split_")
        if kind not in KINDS or which not in ("combined", "normal"):
            checked.faults.differs(name, "", "<kind>_data_split_<combined or normal>.json", "another name")
            continue
        parts = _parts(checked, name)
        if parts is None or (not any(parts.values()) and kind == "recipes" and not checked.is_own):
            continue
        _members(checked, name, kind, which, parts)
        if kind in SEPARATED:
            values = {
                part: {SEPARATED[kind](by_id[id_]) for id_ in ids if id_ in by_id}
                for part, ids in parts.items()
            }
            for part in ("train", "val"):
                if both := sorted(values[part] & values["test"], key=str):
                    shared = ", ".join(map(str, both[:5]))
                    checked.flaw(name, f"{part} and test", f"no {kind} in common", f"{kind} {shared}")


def _members(
    checked: DataSetUnderCheck, name: str, kind: str, which: str, parts: dict[str, list[str]]
) -> None:
    with_errors = {
        recording.recording_id for recording in checked.annotations.recordings if recording.is_error
    }
    expected = {id_ for id_ in checked.ids if which == "combined" or id_ not in with_errors}
    counts = Counter(chain.from_iterable(parts.values()))
    for id_, count in sorted(counts.items()):
        if id_ not in expected:
            checked.faults.differs(name, id_, f"a recording of the {which} set", "none of it")
        elif count > 1 and kind != "steps":
            checked.faults.differs(name, id_, "a place in one part", f"in {count}")
    if kind == "type":
        expected -= with_errors - counts.keys()
        for id_ in sorted(with_errors & set(parts["train"])):
            checked.faults.differs(name, id_, "no errors in the train part", "errors")
    for id_ in sorted(expected - counts.keys()):
        checked.faults.differs(name, id_, "a place in one part", "none")


def _parts(checked: DataSetUnderCheck, name: str) -> dict[str, list[str]] | None:
    try:
        parts: Any = parse_json(checked.texts[name])
        if set(parts) != set(PARTS):
            raise ValueError("other parts than train, val and test")
        return {part: [str(recording_id) for recording_id in parts[part]] for part in PARTS}
    except (ValueError, TypeError) as error:
        checked.faults.differs(name, "", "lists of train, val and test", str(error)[:80])
        return None
