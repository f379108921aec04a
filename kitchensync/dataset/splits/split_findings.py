"""What the parts of a split hold, and whether they are disjoint, complete, and share what the kind separates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from kitchensync.dataset.source.data_set_folder import DataSet
from kitchensync.dataset.splits.rule import Divided
from kitchensync.dataset.splits.split_kinds import PARTS, SEPARATED
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

STEP_DISPLAY = "steps"
"""The display on which the active step stands alone: text recognition in the picture could read it."""

ById = Mapping[str, AnnotatedRecording]


@dataclass(frozen=True)
class SplitFindings:
    """The answer's keys, and what is to be warned of, a line each."""

    said: dict[str, Any]
    faults: list[str]
    warnings: list[str]


def look_over(divided: Divided, data: DataSet) -> SplitFindings:
    """Judge a split: parts in numbers, disjoint, complete, shared; faults make it useless, warnings do not."""
    by_id = {one.recording_id: one for one in data.annotations.recordings}
    shared: dict[str, list[Any]] = {}  # what the kind separates and two parts have in common
    if value := SEPARATED.get(divided.kind):
        held = {part: {value(by_id[one]) for one in divided.parts[part]} for part in PARTS}
        shared = {f"{a},{b}": sorted(held[a] & held[b], key=str) for a, b in combinations(PARTS, 2)}
    if divided.entries is None:
        counts = Counter(one for ids in divided.parts.values() for one in ids)
        twice = sorted(one for one, count in counts.items() if count > 1)
        left_out = [one for one in by_id if one not in counts]
    else:  # entries stand in one part each, and all of them in some part
        places = Counter(
            (one, place) for ids in divided.entries.values() for one, found in ids.items() for place in found
        )
        twice = sorted(f"{one}[{place}]" for (one, place), count in places.items() if count > 1)
        counts = Counter(one for one, _ in places.elements())
        left_out = [one for one, recording in by_id.items() if counts[one] != len(recording.entries)]
    faults = [f"{one} is in two parts" for one in twice]
    faults += [f"{pair.replace(',', ' and ')} share {divided.kind} {', '.join(map(str, values[:5]))}"
               for pair, values in shared.items() if "test" in pair and values]  # fmt: skip
    notes = [f"{pair.replace(',', ' and ')} share {divided.kind} {', '.join(map(str, values))}"
                for pair, values in shared.items() if "test" not in pair and values]  # fmt: skip
    warnings: list[str] = []
    missing = [one for one in left_out if divided.kind != "type" or not by_id[one].is_error]
    if missing and divided.rule.name == "published" and divided.kind == "recipes":
        warnings.append(
            "the published set has three empty lists and no rule; give --rule FILE for lists with content"
        )
    elif missing:
        faults.append(f"{len(missing)} recordings are in no part: {', '.join(missing[:5])}")
    else:
        warnings += [f"the {part} part is empty" for part in PARTS if not divided.parts[part]]
    listed, displays = _displays(divided, data)
    said = {
        "kind": divided.kind,
        "rule": divided.rule.as_json(),
        "parts": {part: _numbers(divided, part, data, by_id) for part in PARTS},
        "disjoint": not twice,
        "complete": not missing,
        "shared": shared,
        "left_out": left_out,
        "test_in_step_display": listed,
        "notes": notes,
    }
    if without := [one for one in by_id if one not in data.lengths_s]:
        displays.append(
            f"{len(without)} films have no known length and count 0 hours: {', '.join(without[:5])}"
        )
    return SplitFindings(said, faults, warnings + displays)


def _numbers(divided: Divided, part: str, data: DataSet, by_id: ById) -> dict[str, object]:
    ids = divided.parts[part]
    recordings = [by_id[one] for one in ids]
    if divided.entries is None:
        seconds = sum(data.lengths_s.get(one, 0.0) for one in ids)
    else:
        done = (by_id[one].entries[n] for one, places in divided.entries[part].items() for n in places)
        seconds = sum(entry.end_s - entry.start_s for entry in done if entry.performed)
    found: dict[str, object] = {
        "recordings": len(ids),
        "hours": round(seconds / 3600, 4),
        "with_errors": sum(one.is_error for one in recordings),
        "recipes": len({one.activity_id for one in recordings}),
        "persons": len({one.person_id for one in recordings}),
        "environments": len({one.environment for one in recordings}),
    }
    if divided.entries is not None:
        found["entries"] = sum(map(len, divided.entries[part].values()))
    if data.is_own:
        found["displays"] = dict(
            Counter(str(data.facts.get(one, {}).get("display", "unknown")) for one in ids)
        )
    return found


def _displays(divided: Divided, data: DataSet) -> tuple[list[str], list[str]]:
    """List the test recordings on whose tablet the active step could be read; warn where there are no others."""
    if not data.is_own or not divided.parts["test"]:
        return [], []
    test = divided.parts["test"]
    display = {one: str(data.facts.get(one, {}).get("display", "unknown")) for one in test}
    listed = [one for one in test if display[one] == STEP_DISPLAY]
    warnings = [f"test recording {one} is in step display: text recognition could read the active step"
                for one in listed]  # fmt: skip
    if not {"paragraph", "hidden"} & set(display.values()):
        warnings.append(
            "no test recording is in paragraph or hidden display; record some, or choose another seed"
        )
    return listed, warnings
