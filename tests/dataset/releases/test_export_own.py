"""`kitchensync export` over own recordings: the tablet's truth in the tables, consent, ids, what is left out."""

from __future__ import annotations

import csv
import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from cooked_recording import DONE_S, WRONG, copied, film_s, write_cooked
from small_recordings import HOST0_NS
from typed_commands import typed

from kitchensync.cli import main
from kitchensync.storage.events import EventLog
from kitchensync.task_graphs.formats.annotations import COMPLETE
from kitchensync.virtual_kitchen.kitchen import Kitchen


@pytest.fixture(scope="module")
def kitchen_and_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kitchen, Path]:
    root = tmp_path_factory.mktemp("own")
    return write_cooked(root), root


@pytest.fixture
def data(kitchen_and_data: tuple[Kitchen, Path], tmp_path: Path) -> Path:
    shutil.copytree(kitchen_and_data[1], tmp_path / "data")
    return tmp_path / "data"


run = partial(typed, "export")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_seconds_of_a_recording_are_those_of_the_tablet(
    kitchen_and_data: tuple[Kitchen, Path], data: Path
) -> None:
    done = run("seconds", data / "take1", "--grid", "segment", "--out", data.parent / "s.csv")
    assert done.exit_code == 0, done.output
    rows = table(data.parent / "s.csv")
    assert {row["recording"] for row in rows} == {"take1"}
    assert {row["step_id"] for row in rows} == {"1", "2", "3"}
    assert {row["step_id"] for row in rows if row["label"] == "1"} == {str(WRONG)}
    begun = {int(row["step_id"]): float(row["second"]) for row in reversed(rows)}
    ends = {node: film_s(kitchen_and_data[0], at_s) for node, at_s in DONE_S.items()}
    assert begun[2] == pytest.approx(ends[1], abs=0.05), "a step begins where the one before it ended"
    assert begun[3] == pytest.approx(ends[2], abs=0.05)


def test_a_data_set_wants_a_folder_of_its_own(data: Path) -> None:
    done = typed("release", "captaincook4d", data, "--out", data)
    assert (done.exit_code, "holds recordings" in done.stderr) == (2, True)
    assert sorted(path.name for path in data.iterdir()) == ["take1"]
    (data / COMPLETE).parent.mkdir()
    (data / COMPLETE).write_text("{}")
    done = run("steps", data, "--out", data.parent / "s.csv")
    assert (done.exit_code, "holds recordings too" in done.stderr) == (2, True)


def test_who_did_not_agree_is_left_out_and_named(data: Path) -> None:
    copied(data, "unwilling", lambda manifest: manifest.update(consent="none"))
    out = data.parent / "s.csv"
    done = run("seconds", data, "--out", out, "--json")
    said = json.loads(done.stdout)
    assert (done.exit_code, said["status"], said["recordings"]) == (0, "WARN", 1)
    assert "left out: unwilling: nobody agreed to `release_raw`" in done.stderr
    assert {row["recording"] for row in table(out)} == {"take1"}


@pytest.mark.parametrize("form", ["seconds", "frames"])
def test_what_is_used_without_consent_is_said_and_kept(data: Path, form: str) -> None:
    copied(data, "unwilling", lambda manifest: manifest.update(consent="none"))
    copied(data, "withdrawn", lambda manifest: manifest.update(withdrawn={"host_ns": 1}))
    out, options = data.parent / "out", ("--without-consent", "our own\n  hands", "--json")
    before = json.loads((data / "take1/recording.json").read_text())
    for _ in range(2):
        done = run(form, data, "--out", out, *options, "--force")
        assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["recordings"], said["status"]) == (2, "WARN")
    assert "used without consent: unwilling: nobody agreed to `release_raw`" in said["warnings"]
    (line,) = (line for line in said["warnings"] if "withdrawn" in line)
    assert line.startswith("left out")
    (kept,) = json.loads((data / "unwilling/recording.json").read_text())["consent_overrides"]
    assert (kept["purpose"], kept["reason"]) == ("release_raw", "our own hands")
    assert json.loads((data / "take1/recording.json").read_text()) == before
    assert run(form, data, "--out", out, "--force").exit_code == 0
    again = run(form, data / "unwilling", "--out", data.parent / "none")
    assert (again.exit_code, "release_raw" in again.stderr) == (1, True), "one reason is not for ever"
    assert run(form, data, "--out", out, "--force", "--without-consent", " ").exit_code == 2


def test_seconds_of_a_release_are_those_of_its_recording(data: Path) -> None:
    given = ("release", "captaincook4d", str(data / "take1"), "--out", str(data.parent / "set"))
    assert CliRunner().invoke(main, [*given, "--media", ""]).exit_code == 0
    out = data.parent / "s.csv"
    assert run("seconds", data / "take1", "--out", out).exit_code == 0
    released = run("seconds", data.parent / "set", "--out", data.parent / "again.csv")
    assert released.exit_code == 0, released.output
    assert out.read_text().replace("take1", "1_1") == (data.parent / "again.csv").read_text()


SOUP = {
    "name": "soup", "title": "Soup", "order": [7, 3, 5], "planned": [], "strategy": "normal", "display": "step",
    "edges": [[0, 7], [7, 3], [3, 5]], "seed": 1,
    "steps": {
        "7": {"label": "Stir-Stir the soup", "text": "Stir the soup"},
        "3": {"label": "Do-Do thing 2", "text": "Do thing 2"},
        "5": {"label": "Stir-Stir the soup", "text": "Stir the soup"},
    },
}  # fmt: skip


def test_step_numbers_depend_on_the_recipe_alone(data: Path) -> None:
    soup = copied(data, "take0")  # before take1 in a folder
    (soup / "events/tablet.jsonl").unlink()
    log = EventLog(soup, "tablet")
    log.append("recipe", host_ns=HOST0_NS, uncertainty_ns=0, body=SOUP, op_id="op0")
    for number, node in enumerate(SOUP["order"], start=1):
        at_ns, body = HOST0_NS + number * 10**9, {"node": node, "device": "t"}
        log.append("done", host_ns=at_ns, uncertainty_ns=0, body=body, op_id=f"op{number}")
    out = data.parent
    for name, given in (("both", data), ("take0", soup), ("take1", data / "take1")):
        assert run("steps", given, "--out", out / f"{name}.csv").exit_code == 0
    both = table(out / "both.csv")
    assert both == table(out / "take0.csv") + table(out / "take1.csv")
    numbers = [(row["recording"], row["step_id"], row["node"], row["text"]) for row in both]
    assert numbers == [
        ("take0", "5", "7", "Stir the soup"),
        ("take0", "3", "3", "Do thing 2"),
        ("take0", "5", "5", "Stir the soup"),
        *(("take1", str(node), str(node), f"Do thing {node}") for node in (1, 2, 3, 4)),
    ]
    assert run("windows", data, "--sizes", "2", "--out", out / "w.json").exit_code == 0
    first = json.loads((out / "w.json").read_text())[0]
    assert (first["step_ids"], first["nodes"]) == ([5, 3], [7, 3])
    assert run("prompts", data, "--out", out / "p.json").exit_code == 0
    asked = json.loads((out / "p.json").read_text())[0]
    assert (asked["step_id"], asked["node"], asked["text"]) == (5, 7, "Stir the soup")


def test_localization_of_own_recordings_says_the_rate_of_its_films(data: Path) -> None:
    splits = data.parent / "splits"
    splits.mkdir()
    parts = {"train": ["take1"], "val": [], "test": []}
    (splits / "person_data_split_combined.json").write_text(json.dumps(parts))
    given = ("localization", data, "--splits", splits, "--out", data.parent / "out")
    done = run(*given, "--fps", "30000/1001")
    assert done.exit_code == 0, done.output
    said = json.loads((data.parent / "out/combined/person.json").read_text())
    assert said["version"] == "KitchenSyncDataset-30000/1001fps-5Steps"
    assert [entry["label_id"] for entry in said["database"]["take1"]["annotations"]] == [1, 2, 3, 4]
    assert "pictures a second" not in done.stderr
    assert "has 30000/1001 frames a second, not 25" in run(*given, "--fps", "25", "--force").stderr
