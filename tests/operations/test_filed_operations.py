"""Operations of a tablet in recordings that came from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kitchensync.operations.entries import entries_of
from kitchensync.operations.event_lines import event_lines
from kitchensync.operations.filed_log import filed_operations
from kitchensync.operations.planned_steps import plan_of
from kitchensync.operations.reduce import reduce_log
from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.events import EventLog, read_events
from kitchensync.storage.timeline.film_times import FilmPlace

STEPS = {str(n): {"label": f"Do-Do thing {n}", "text": f"Do thing {n}"} for n in range(1, 4)}
PLANNED = {"error_id": "p1", "fields": {"node": 2, "categories": [4], "description": "spilt"}}
RECIPE = {
    "name": "tea", "title": "Tea", "order": [1, 2, 3], "steps": STEPS, "planned": [PLANNED], "edges": [[0, 1]],
    "strategy": "normal", "display": "step", "seed": 1,
}  # fmt: skip
EDIT = {"error_id": "p1", "device": "t"}


def filed(folder: Path, kind: str, body: dict[str, Any], **more: Any) -> Path:
    log = EventLog(folder, "tablet")
    log.append("recipe", host_ns=1, uncertainty_ns=0, body=RECIPE, op_id="op0")
    fields = {"host_ns": 2, "uncertainty_ns": 0, "op_id": "op1"} | more
    log.append(kind, body=body, **fields)
    return folder


FIELDS: list[dict[str, Any]] = [
    *({"categories": None}, {"categories": [8]}, {"categories": 4}, {"text": None}),
    *({"removed": None}, {"node": [2]}, {"node": 10**24}, {"before": "x"}, {"conflicts": 7}),
    *({"judged": 7}, {"planned": "no"}),
]
BODIES: list[tuple[str, dict[str, Any]]] = [
    *(("edit_error", EDIT | {"fields": fields}) for fields in FIELDS),
    ("edit_error", EDIT | {"fields": None}),
    ("edit_error", {"fields": {}}),
    ("done", {"node": 10**24}),
    ("done", {"node": "1"}),
    ("done", {"node": 1, "seen": 10**24}),
    ("voice", {"sha256": None}),
    ("recipe", RECIPE | {"order": [10**24], "steps": {}}),
    ("recipe", RECIPE | {"language": 7}),
    ("recipe", {key: value for key, value in RECIPE.items() if key != "title"}),
    ("recipe", RECIPE | {"steps": STEPS | {"2": {"text": "Do thing 2"}}}),
    ("recipe", RECIPE | {"planned": [PLANNED | {"fields": {"categories": None}}]}),
]


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_body_with_wrong_types_is_a_damaged_line(tmp_path: Path, number: int) -> None:
    with pytest.raises(BadEventLog, match=r"tablet.jsonl, line 2"):
        list(filed_operations(filed(tmp_path, *BODIES[number])))


EVENTS: list[dict[str, Any]] = [
    {"host_ns": 10**24},
    {"uncertainty_ns": -(1 << 62)},
    {"op_id": ["op1"]},
    {"body": {"undoes": {"op": 0}}},
]


@pytest.mark.parametrize("number", range(len(EVENTS)))
def test_an_event_with_unusable_values_is_a_damaged_line(tmp_path: Path, number: int) -> None:
    filed(tmp_path, "undo", **({"body": {"undoes": "op0"}} | EVENTS[number]))
    with pytest.raises(BadEventLog, match="line 2"):
        read_events(tmp_path)


def test_numbers_that_an_error_may_lack_can_be_null(tmp_path: Path) -> None:
    fields = {"node": None, "before": None, "at": None, "corrected_by": None}
    state = reduce_log(filed_operations(filed(tmp_path, "edit_error", EDIT | {"fields": fields})))
    assert plan_of(state).order == (1, 2, 3)
    entries = entries_of(state, lambda _: FilmPlace(0.0, 0.0), lambda _: 0)
    assert [entry.node for entry in entries] == [1, 2, 3]


def test_an_undone_undo_of_several_operations_undoes_nothing(tmp_path: Path) -> None:
    """Operations are filed as by the app: its own log and the folder reduce to the same state."""
    log = [operation("r", "recording", RECIPE)]
    log += [operation("a", "done", {"node": 1}), operation("b", "done", {"node": 2})]
    log += [operation("u", "undo", {"undoes": ["a", "b"]}), operation("v", "undo", {"undoes": ["u"]})]
    for count, expected in ((4, "waiting"), (5, "done")):
        folder = tmp_path / str(count)
        folder.mkdir()
        kinds = {op["op_id"]: op["kind"] for op in log}
        for op in log[:count]:
            for op_id, kind, body in event_lines(op, RECIPE, kinds):
                EventLog(folder, "tablet").append(kind, host_ns=2, uncertainty_ns=0, body=body, op_id=op_id)
        for operations in (log[:count], filed_operations(folder)):
            steps = reduce_log(operations)["steps"]
            assert [steps[node]["state"] for node in "12"] == [expected, expected]


def operation(op_id: str, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    times = {"host_ns": 2, "received_host_ns": 2, "basis": "receipt", "clock": {}}
    return {"op_id": op_id, "kind": kind, "body": body, "device": "t", "seen": 9, "n": 0} | times
