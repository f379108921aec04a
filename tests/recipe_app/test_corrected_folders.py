"""Published folders after corrections at the desk: the corrected entry differs in every file that holds it, alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_data_sets
import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, TaggedError

pytestmark = pytest.mark.timeout(300)
CSV, JSON = "annotation_csv/error_annotations.csv", "annotation_json/error_annotations.json"
COMPLETE, STEPS = "annotation_json/complete_step_annotations.json", "annotation_json/step_annotations.json"


def run(*words: object) -> Any:
    return CliRunner().invoke(main, [*map(str, words)])


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.glob("*/*.*")}


class AtTheDesk:
    """A folder in the app, and a researcher who corrects its recordings over the app's own addresses."""

    def __init__(self, kitchen: Any, folder: Path, recording: str) -> None:
        self.kitchen, self.folder = kitchen, folder
        done = run("annotations", "import", folder, "--data", kitchen.data, "--json")
        assert done.exit_code == 0, done.output
        rows = kitchen.tools.records.rows(tables.recording)
        (self.id,) = (row["id"] for row in rows if row["recipe"].endswith(f" {recording}"))
        self.desk = kitchen.desk("researcher")

    def state(self) -> dict[str, Any]:
        answer = self.desk.get(f"/api/v1/desk/recordings/{self.id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def correct(self, kind: str, body: dict[str, Any]) -> None:
        seen = self.kitchen.tools.records.ops(self.id)[-1]["n"]
        body = {"op_id": new_id(self.kitchen.utc_ns), "kind": kind, "body": body, "seen": seen}
        answer = self.desk.post(f"/api/v1/desk/recordings/{self.id}/corrections", json=body)
        assert answer.status_code == 200, answer.text

    def edit(self, node: int, place: int, **fields: Any) -> None:
        errors = [error for error in self.state()["errors"].values() if error["node"] == node]
        self.correct("edit_error", {"error_id": errors[place]["error_id"], "fields": fields})

    def add(self, node: int, **fields: Any) -> None:
        self.correct(
            "add_error", {"error_id": new_id(self.kitchen.utc_ns), "fields": {"node": node, **fields}}
        )

    def exported(self, out: Path) -> dict[str, Any]:
        done = run("annotations", "export", "--out", out, "--data", self.kitchen.data, "--json")
        assert done.exit_code == 0, done.output
        said: dict[str, Any] = json.loads(done.stdout)
        return said


def small(folder: Path) -> Path:
    errors = (TaggedError("Preparation Error", "wrong cup"), TaggedError("Order Error", "too early"))
    first = Entry(1, "Pour-Pour tea", 1.5, 4.25, errors, "Pour coffee")
    second, third = Entry(2, "Stir-Stir", 5.0, 7.0), Entry(3, "Serve-Serve", -1.0, -1.0)
    missing = Entry(3, "Serve-Serve", -1.0, -1.0, (TaggedError("Missing Step", "not served"),))
    made = [
        AnnotatedRecording("1_7", 1, "Tea", 4, 2, (first, second, third)),
        AnnotatedRecording("1_8", 1, "Tea", 4, 2, (second, first, missing)),
    ]
    made_data_sets.write(folder, made)
    return folder


def entry_of(files: dict[str, bytes], recording: str, place: int) -> dict[str, Any]:
    (one,) = (one for one in json.loads(files[JSON]) if one["recording_id"] == recording)
    found: dict[str, Any] = one["step_annotations"][place]
    return found


def only_this_differs(
    before: dict[str, bytes], after: dict[str, bytes], recording: str, place: int
) -> set[str]:
    """Assert that nothing but one entry (and what its recording's `is_error` says) differs; return the files."""
    assert before.keys() == after.keys()
    differing = {name for name in before if before[name] != after[name]}
    for name in differing:
        was, now = before[name].decode(), after[name].decode()
        if name.endswith(".csv"):
            rows = [list(csv.reader(io.StringIO(text))) for text in (was, now)]
            lines = [n for n, (a, b) in enumerate(zip(*rows, strict=True)) if a != b]
            ours = [n for n, row in enumerate(rows[0]) if row[0] == recording]
            assert lines == [ours[place]], name
        else:
            two = [json.loads(text) for text in (was, now)]
            if name == JSON:
                two = [{one["recording_id"]: one for one in document} for document in two]
            for document in two:
                document[recording].pop("is_error", None)
                steps = document[recording].get("steps") or document[recording]["step_annotations"]
                steps[place] = None
            assert two[0] == two[1], name
            assert json.dumps(json.loads(now), indent=4) == now, name  # the published layout
    return differing


@pytest.mark.slow
def test_one_correction_of_the_published_set_differs_in_exactly_that_entry(
    kitchen: Any, shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    desk = AtTheDesk(kitchen, folder, "1_28")
    before = tree(folder)
    (node, *_) = (error["node"] for error in desk.state()["errors"].values())
    desk.edit(node, 0, description="Corrected at the desk")
    said = desk.exported(tmp_path / "out")
    after = tree(tmp_path / "out")
    assert only_this_differs(before, after, "1_28", node - 1) == {CSV, JSON}
    entry = entry_of(before, "1_28", node - 1)
    entry["errors"][0]["description"] = "Corrected at the desk"
    assert entry_of(after, "1_28", node - 1) == entry
    assert said["corrected"] == ["1_28"]
    assert any(
        line.startswith("annotation_csv/average_segment_length.csv: stays") for line in said["warnings"]
    )


CORRECTIONS: dict[str, tuple[Callable[[AtTheDesk], None], str, int, set[str], dict[str, Any]]] = {
    "another category": (
        lambda desk: desk.edit(1, 1, categories=[3]), "1_7", 0, {JSON, CSV},
        {"errors": [{"tag": "Preparation Error", "description": "wrong cup"},
                    {"tag": "Timing Error", "description": "too early"}]},
    ),
    "an error taken out": (
        lambda desk: desk.edit(1, 0, removed=True), "1_7", 0, {JSON, CSV},
        {"errors": [{"tag": "Order Error", "description": "too early"}]},
    ),
    "an error added": (
        lambda desk: desk.add(2, categories=[7], description="spilt", text="Stir twice"), "1_7", 1,
        {JSON, CSV, COMPLETE, STEPS, "annotation_csv/step_annotations.csv"},
        {"errors": [{"tag": "Other", "description": "spilt"}], "modified_description": "Stir twice"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CORRECTIONS)
def test_a_correction_stands_in_every_file_that_holds_its_entry(
    kitchen: Any, tmp_path: Path, name: str
) -> None:
    correct, recording, place, files, want = CORRECTIONS[name]
    desk = AtTheDesk(kitchen, small(tmp_path / "set"), recording)
    correct(desk)
    desk.exported(tmp_path / "out")
    before, after = tree(tmp_path / "set"), tree(tmp_path / "out")
    assert only_this_differs(before, after, recording, place) == files
    entry = entry_of(before, recording, place)
    assert entry_of(after, recording, place) == entry | want
    with_errors = json.loads(after[COMPLETE])[recording]["steps"][place]["has_errors"]
    assert with_errors == bool(want["errors"])


def test_the_last_error_taken_out_makes_the_entry_and_the_recording_normal(
    kitchen: Any, tmp_path: Path
) -> None:
    desk = AtTheDesk(kitchen, small(tmp_path / "set"), "1_8")
    desk.edit(2, 0, removed=True)
    desk.edit(2, 0, removed=True)
    desk.edit(2, 1, removed=True)
    desk.edit(3, 0, removed=True)
    desk.exported(tmp_path / "out")
    (one,) = (one for one in json.loads(tree(tmp_path / "out")[JSON]) if one["recording_id"] == "1_8")
    assert one["is_error"] is False
    assert not any("errors" in step for step in one["step_annotations"])


def test_a_correction_that_is_undone_leaves_the_folder_as_it_came(kitchen: Any, tmp_path: Path) -> None:
    desk = AtTheDesk(kitchen, small(tmp_path / "set"), "1_7")
    desk.edit(1, 0, description="no, another")
    desk.correct("undo", {"undoes": [kitchen.tools.records.ops(desk.id)[-1]["op_id"]]})
    desk.correct("note", {"text": "looked at again"})
    said = desk.exported(tmp_path / "out")
    assert (said["corrected"], said["warnings"]) == ([], [])
    assert tree(tmp_path / "out") == tree(tmp_path / "set")


def test_a_file_of_another_form_does_not_hide_the_correction(kitchen: Any, tmp_path: Path) -> None:
    folder = small(tmp_path / "set")
    odd = (folder / CSV).read_bytes().replace(b"\n", b"\r\n")
    (folder / CSV).write_bytes(odd)
    desk = AtTheDesk(kitchen, folder, "1_7")
    desk.edit(1, 1, description="red cup")
    said = desk.exported(tmp_path / "out")
    assert b"red cup" not in odd
    assert b"red cup" in (tmp_path / "out" / CSV).read_bytes()
    assert any(line.startswith(f"{CSV}: was of another form") for line in said["warnings"])


CARDS = ("README.md", "croissant.json", "download.py", "index.html")
PUBLISHED = ("annotation_json", "annotation_csv", "task_graphs", "metadata", "data_splits")


def held(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in tree(folder).items() if name.partition("/")[0] in PUBLISHED}


@pytest.mark.slow
def test_the_published_set_is_released_byte_for_byte_and_then_with_its_correction(
    kitchen: Any, shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("captaincook4d")
    desk = AtTheDesk(kitchen, folder, "1_28")
    options = ["release", "captaincook4d", folder, "--data", kitchen.data, "--json"]
    done = run(*options, "--out", tmp_path / "first")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["status"], said["corrected"], said["warnings"], len(said["recordings"])) == (
        "PASS",
        [],
        [],
        252,
    )
    before = held(folder)
    assert len(before) == 7 + 7 + 16 + 1 + 8
    assert held(tmp_path / "first") == before
    (node, *_) = (error["node"] for error in desk.state()["errors"].values())
    desk.edit(node, 0, description="Corrected at the desk")
    said = json.loads(run(*options, "--out", tmp_path / "second").stdout)
    assert only_this_differs(before, held(tmp_path / "second"), "1_28", node - 1) == {CSV, JSON}
    assert (said["status"], said["corrected"]) == ("WARN", ["1_28"])
    assert any("average_segment_length.csv: stays as published" in line for line in said["warnings"])


def test_a_published_folder_needs_no_app_and_its_checksums_and_licence_come_along(tmp_path: Path) -> None:
    folder = small(tmp_path / "set")
    (folder / "LICENSE").write_text("Free for all.\n")
    (folder / "metadata" / "download_links.json").write_text("{}")
    done = run("release", "captaincook4d", folder, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert tree(tmp_path / "out") == tree(folder)
    assert (tmp_path / "out" / "LICENSE").read_text() == "Free for all.\n"
    lines = (tmp_path / "out" / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in lines} == {*tree(folder), "LICENSE", *CARDS}
    again = run("release", "captaincook4d", folder, tmp_path / "out", "--out", tmp_path / "third")
    assert (again.exit_code, "give it alone" in again.stderr) == (2, True)
    nowhere = run(
        "release", "captaincook4d", folder, "--data", tmp_path / "nowhere", "--out", tmp_path / "third"
    )
    assert (nowhere.exit_code, "the app was never started here" in nowhere.stderr) == (1, True)
    assert not (tmp_path / "third").exists()
