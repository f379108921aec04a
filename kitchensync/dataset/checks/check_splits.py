"""Lists of the parts: every recording in one of them, and nothing that a test part must not share."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kitchensync.dataset.checks.release_faults import DataSetUnderCheck
from kitchensync.dataset.splits.split_kinds import KINDS, PARTS, SEPARATED
from kitchensync.shell.untrusted_json import parse_json


def check_splits(checked: DataSetUnderCheck) -> None:
    """Check each list of `data_splits/`; of the published recipes the lists are empty."""
    by_id = {one.recording_id: one for one in checked.annotations.recordings}
    for name in sorted(name for name in checked.texts if name.startswith("data_splits/")):
        kind, _, which = name.removeprefix("data_splits/").removesuffix(".json").partition("_data_split_")
        if kind not in KINDS or which not in ("combined", "normal"):
            checked.found.differs(name, "", "<kind>_data_split_<combined or normal>.json", "another name")
            continue
        parts = _parts(checked, name, kind)
        if parts is None or (not any(parts.values()) and kind == "recipes" and not checked.is_own):
            continue
        _members(checked, name, kind, which, parts)
        if kind in SEPARATED:
            held = {
                part: {SEPARATED[kind](by_id[one]) for one in ids if one in by_id}
                for part, ids in parts.items()
            }
            for part in ("train", "val"):
                if both := sorted(held[part] & held["test"], key=str):
                    shared = ", ".join(map(str, both[:5]))
                    checked.flaw(name, f"{part} and test", f"no {kind} in common", f"{kind} {shared}")


def _members(
    checked: DataSetUnderCheck, name: str, kind: str, which: str, parts: dict[str, list[str]]
) -> None:
    wrong = {one.recording_id for one in checked.annotations.recordings if one.is_error}
    wanted = {one for one in checked.ids if which == "combined" or one not in wrong}
    counts = Counter(one for ids in parts.values() for one in ids)
    for one, count in sorted(counts.items()):
        if one not in wanted:
            checked.found.differs(name, one, f"a recording of the {which} set", "none of it")
        elif count > 1 and kind != "steps":
            checked.found.differs(name, one, "a place in one part", f"in {count}")
    if kind == "type":
        wanted -= wrong - counts.keys()
        for one in sorted(wrong & set(parts["train"])):
            checked.found.differs(name, one, "no errors in the train part", "errors")
    for one in sorted(wanted - counts.keys()):
        checked.found.differs(name, one, "a place in one part", "none")


def _parts(checked: DataSetUnderCheck, name: str, kind: str) -> dict[str, list[str]] | None:
    try:
        found: Any = parse_json(checked.texts[name])
        if set(found) != set(PARTS):
            raise ValueError("other parts than train, val and test")
        return {part: [str(one) for one in found[part]] for part in PARTS}
    except (ValueError, TypeError) as error:
        checked.found.differs(name, "", "lists of train, val and test", str(error)[:80])
        return None
