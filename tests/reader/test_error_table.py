"""`rec.errors` agrees in every field with errors that were entered, ruled on, undone and removed."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pandas
import pytest
from cooked_recording import FROZEN
from numbered_recording import write_numbered
from small_recordings import HOST0_NS

import kitchensync as ks
from kitchensync.operations.error_rows import ERROR_COLUMNS
from kitchensync.storage.errors import BadAnnotations
from kitchensync.storage.events import EventLog
from kitchensync.storage.recording_files.annotation_folder import add_judged

UNCERTAIN_NS = 3_000_000
PLANNED = {"error_id": "p1", "fields": {"node": 1, "categories": [1], "text": "Do half of thing 1"}}
SPILT = {"error_id": "p3", "fields": {"node": 4, "categories": [0], "recovery": "Wipe it up"}}
LEFT_OUT = {"error_id": "p2", "fields": {"node": 4, "categories": [6], "outcome": "not_done"}}


def host_ns(seconds: float) -> int:
    return HOST0_NS + round(seconds * 1e9)


class Tablet:
    """Writes operations to a recording's log."""

    def __init__(self, recording: Path) -> None:
        self.log, self.count = EventLog(recording, "tablet"), 0

    def touch(self, kind: str, at_s: float, **body: Any) -> str:
        self.count += 1
        op_id = f"op{self.count}"
        ns = host_ns(at_s)
        self.log.append(
            kind, host_ns=ns, uncertainty_ns=UNCERTAIN_NS, body=body | {"device": "t"}, op_id=op_id
        )
        return op_id


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    write_numbered(root)
    return root / "take1"


@pytest.fixture(scope="module")
def recording(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(made, tmp_path_factory.mktemp("errors") / "take1")


@pytest.fixture(scope="module")
def entered(recording: Path) -> dict[str, dict[str, Any]]:
    """Enter errors of every kind; return the true values of each, without unknown ones."""
    tablet = Tablet(recording)
    tablet.touch("recipe", 0.0, **FROZEN | {"planned": [PLANNED, LEFT_OUT, SPILT]})
    tablet.touch("done", 3.0, node=1)
    tablet.touch("edit_error", 3.1, error_id="p1", fields={"outcome": "as_planned", "intent": "on_purpose"})
    plain = {"node": 2, "categories": [4], "description": "spilt"}
    tablet.touch("error", 5.0, error_id="plain", fields=plain)
    tablet.touch("error", 6.0, error_id="undone", fields=plain)
    tablet.touch("undo", 6.5, undoes=f"op{tablet.count}")
    tablet.touch("error", 7.0, error_id="removed", fields=plain)
    tablet.touch("edit_error", 7.5, error_id="removed", fields={"removed": True})
    tablet.touch("error", 8.0, error_id="moved", fields={"node": 3, "categories": [2, 3]})
    times = {"at": host_ns(7.2), "end": host_ns(7.9), "point_of_no_return": host_ns(7.5)}
    times |= {"noticed_at": host_ns(7.6), "corrected_at": host_ns(9.5)}
    details = {"intent": "by_accident", "noticed": "later", "corrected_by": 3}
    tablet.touch("edit_error", 12.0, error_id="moved", fields=times | details)
    added = {"node": 3, "categories": [5], "at": host_ns(9.0), "noticed": "somebody_else", "corrected_by": -1}
    tablet.touch("add_error", 13.0, error_id="added", fields=added)
    tablet.touch(
        "error", 10.0, error_id="follows", fields={"node": 3, "categories": [7], "corrected_by": "moved"}
    )
    tablet.touch("recovered", 10.5, error_id="p3", shown="Wipe it up")
    tablet.touch("error", 11.0, error_id="ruled", fields=plain | {"noticed": "not", "intent": "on_purpose"})
    tablet.touch("error", 11.5, error_id="denied", fields=plain)
    ruling = {"verdict": "happened", "intent": "unsure", "noticed": "by_others"}
    rulings = {"ruled": ruling, "denied": {"verdict": "did_not_happen"}}
    errors = [{"error_id": name, "judged": judged} for name, judged in rulings.items()]
    add_judged(recording, "errors", {"errors": errors})
    thing = {n: f"Do-Do thing {n}" for n in range(1, 5)}
    entered = {"planned": False, "source": "entered"}
    spilt = {"node": 2, "step": thing[2], "categories": ["Technique Error"], "description": "spilt"}
    return {
        "p1": {"planned": True, "source": "entered", "node": 1, "step": thing[1], "intent": "on_purpose",
               "categories": ["Measurement Error"]},
        "p3": {"planned": True, "source": "entered", "node": 4, "step": thing[4],
               "categories": ["Preparation Error"], "corrected_by": "p3", "corrected_s": 10.5},
        "plain": entered | spilt | {"reported_s": 5.0},
        "moved": entered | {
            "node": 3, "step": thing[3], "categories": ["Order Error", "Timing Error"], "reported_s": 8.0,
            "at_s": 7.2, "end_s": 7.9, "point_of_no_return_s": 7.5, "noticed_s": 7.6, "corrected_s": 9.5,
            "intent": "by_accident", "noticed": "by_the_cook", "corrected_by": "3",
        },
        "added": entered | {
            "node": 3, "step": thing[3], "categories": ["Temperature Error"], "reported_s": 13.0, "at_s": 9.0,
            "noticed": "by_somebody_else", "corrected_by": "none",
        },
        "follows": entered | {"node": 3, "step": thing[3], "categories": ["Other"], "reported_s": 10.0,
                              "corrected_by": "moved"},
        "ruled": entered | spilt | {"source": "marked", "reported_s": 11.0, "noticed": "by_somebody_else"},
    }  # fmt: skip


def present_values(row: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a row that are not missing, times rounded."""
    present = {
        name: value for name, value in row.items() if isinstance(value, list) or not pandas.isna(value)
    }
    return {name: round(value, 2) if isinstance(value, float) else value for name, value in present.items()}


def test_every_field_is_as_entered_and_unknown_fields_are_missing(
    recording: Path, entered: dict[str, dict[str, Any]]
) -> None:
    with ks.open(recording) as rec:
        begin_s = float(rec.clock.of_host([HOST0_NS])[0]) / 1e9
        table, clock_s = rec.errors, rec.clock.bound_s
    assert tuple(table.columns) == ERROR_COLUMNS
    rows = {row["error_id"]: present_values(row) for row in table.to_dict("records")}
    bounds = {name: row.pop("bound_s", None) for name, row in rows.items()}
    assert rows.keys() == entered.keys()
    for name, true in entered.items():
        times = {key: round(value + begin_s, 2) for key, value in true.items() if key.endswith("_s")}
        assert rows[name] == {"recording": "take1", "error_id": name, **true, **times}, name
    assert {name for name, bound in bounds.items() if bound is not None} == {"moved", "added"}
    assert math.isclose(bounds["moved"], round(clock_s, 2))
    assert list(table["error_id"])[-2:] == ["p1", "p3"], "errors without a time come last"


def test_all_errors_of_a_folder_are_one_table(recording: Path, entered: dict[str, Any]) -> None:
    table = ks.errors(recording.parent)
    assert set(table["error_id"]) == entered.keys()
    assert table["planned"].sum() == 2
    assert json.loads(table.to_json(orient="records"))[0]["recording"] == "take1"


def test_a_recording_without_a_recipe_has_no_errors(made: Path) -> None:
    with ks.open(made) as rec:
        assert rec.errors.empty
        assert tuple(rec.errors.columns) == ERROR_COLUMNS


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("errors", {"errors": 5}),
        ("errors", {"errors": [{"error_id": "plain", "judged": []}]}),
        ("errors", {"errors": [{"error_id": "plain", "judged": {"verdict": {}}}]}),
        ("errors", {}),
    ],
)
def test_rulings_of_another_form_are_refused(
    made: Path, tmp_path: Path, kind: str, content: dict[str, Any]
) -> None:
    shutil.copytree(made, tmp_path / "take1")
    Tablet(tmp_path / "take1").touch("recipe", 0.0, **FROZEN)
    add_judged(tmp_path / "take1", kind, content)
    with ks.open(tmp_path / "take1") as rec, pytest.raises(BadAnnotations, match="errors-1.json: errors"):
        _ = rec.errors


def test_a_file_of_rulings_without_a_number_is_ignored(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "take1")
    Tablet(tmp_path / "take1").touch("recipe", 0.0, **FROZEN)
    (tmp_path / "take1" / "annotations").mkdir()
    (tmp_path / "take1" / "annotations" / "errors-x.json").write_text("{}")
    with ks.open(tmp_path / "take1") as rec:
        assert rec.errors.empty
