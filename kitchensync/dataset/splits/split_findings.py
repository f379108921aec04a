"""Check a split: contents of its parts, and whether they are disjoint, complete, and separated as required."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, combinations

from kitchensync.dataset.source.data_set_folder import DataSet
from kitchensync.dataset.splits.rule import Divided
from kitchensync.dataset.splits.split_kinds import PARTS, SEPARATED, PartCounts, SplitReport, Value
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording

STEP_DISPLAY = "steps"
"""The display that shows only the active step: text recognition in the video could read it."""

ById = Mapping[str, AnnotatedRecording]


@dataclass(frozen=True)
class SplitFindings:
    """A report; faults and warnings, a line each."""

    report: SplitReport
    faults: list[str]
    warnings: list[str]


def check_split(divided: Divided, data: DataSet) -> SplitFindings:
    """Check the parts of a split: disjoint, complete, separated. Faults make it unusable, warnings do not."""
    by_id = {recording.recording_id: recording for recording in data.annotations.recordings}
    shared: dict[str, list[Value]] = {}  # pair of parts -> values that both have
    if value := SEPARATED.get(divided.kind):
        values = {part: {value(by_id[id_]) for id_ in divided.parts[part]} for part in PARTS}
        shared = {f"{a},{b}": sorted(values[a] & values[b], key=str) for a, b in combinations(PARTS, 2)}
    if divided.entries is None:
        counts = Counter(chain.from_iterable(divided.parts.values()))
        twice = sorted(id_ for id_, count in counts.items() if count > 1)
        left_out = [id_ for id_ in by_id if id_ not in counts]
    else:  # every entry must be in exactly one part
        entries = Counter(
            (id_, place)
            for places_by_id in divided.entries.values()
            for id_, places in places_by_id.items()
            for place in places
        )
        twice = sorted(f"{id_}[{place}]" for (id_, place), count in entries.items() if count > 1)
        counts = Counter(id_ for id_, _ in entries.elements())
        left_out = [id_ for id_, recording in by_id.items() if counts[id_] != len(recording.entries)]
    faults = [f"{id_} is in two parts" for id_ in twice]
    faults += [f"{pair.replace(',', ' and ')} share {divided.kind} {', '.join(map(str, both[:5]))}"
               for pair, both in shared.items() if "test" in pair and both]  # fmt: skip
    notes = [f"{pair.replace(',', ' and ')} share {divided.kind} {', '.join(map(str, both))}"
                for pair, both in shared.items() if "test" not in pair and both]  # fmt: skip
    warnings: list[str] = []
    missing = [id_ for id_ in left_out if divided.kind != "type" or not by_id[id_].is_error]
    if missing and divided.rule.name == "published" and divided.kind == "recipes":
        warnings.append(
            "the published set has three empty lists and no rule; give --rule FILE for lists with content"
        )
    elif missing:
        faults.append(f"{len(missing)} recordings are in no part: {', '.join(missing[:5])}")
    else:
        warnings += [f"the {part} part is empty" for part in PARTS if not divided.parts[part]]
    in_step_display, display_warnings = _displays(divided, data)
    warnings += display_warnings
    if without := [id_ for id_ in by_id if id_ not in data.lengths_s]:
        warnings.append(
            f"{len(without)} videos have no known length and count 0 hours: {', '.join(without[:5])}"
        )
    report: SplitReport = {
        "kind": divided.kind,
        "rule": divided.rule.as_json(),
        "parts": {part: _numbers(divided, part, data, by_id) for part in PARTS},
        "disjoint": not twice,
        "complete": not missing,
        "shared": shared,
        "left_out": left_out,
        "test_in_step_display": in_step_display,
        "notes": notes,
    }
    return SplitFindings(report, faults, warnings)


def _numbers(divided: Divided, part: str, data: DataSet, by_id: ById) -> PartCounts:
    ids = divided.parts[part]
    recordings = [by_id[id_] for id_ in ids]
    if divided.entries is None:
        seconds = sum(data.lengths_s.get(id_, 0.0) for id_ in ids)
    else:
        entries = (by_id[id_].entries[n] for id_, places in divided.entries[part].items() for n in places)
        seconds = sum(entry.end_s - entry.start_s for entry in entries if entry.performed)
    numbers: PartCounts = {
        "recordings": len(ids),
        "hours": round(seconds / 3600, 4),
        "with_errors": sum(recording.is_error for recording in recordings),
        "recipes": len({recording.activity_id for recording in recordings}),
        "persons": len({recording.person_id for recording in recordings}),
        "environments": len({recording.environment for recording in recordings}),
    }
    if divided.entries is not None:
        numbers["entries"] = sum(map(len, divided.entries[part].values()))
    if data.is_own:
        numbers["displays"] = dict(Counter(_display(data, id_) for id_ in ids))
    return numbers


def _display(data: DataSet, recording_id: str) -> str:
    return str(data.facts.get(recording_id, {}).get("display", "unknown"))


def _displays(divided: Divided, data: DataSet) -> tuple[list[str], list[str]]:
    """Return the test recordings in step display, and warnings about them and about missing other displays."""
    if not data.is_own or not divided.parts["test"]:
        return [], []
    displays = {id_: _display(data, id_) for id_ in divided.parts["test"]}
    in_step_display = [id_ for id_ in divided.parts["test"] if displays[id_] == STEP_DISPLAY]
    warnings = [f"test recording {id_} is in step display: text recognition could read the active step"
                for id_ in in_step_display]  # fmt: skip
    if not {"paragraph", "hidden"} & set(displays.values()):
        warnings.append(
            "no test recording is in paragraph or hidden display; record some, or choose another seed"
        )
    return in_step_display, warnings
