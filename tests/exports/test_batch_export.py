"""`batch export` gives the same files and answers as single exports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from derived_places import read_derived

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow
FEW = ("--streams", "gyroscope,head")


@pytest.fixture
def takes(cooked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("one", "other", "refused"):
        shutil.copytree(cooked, tmp_path / "data" / name)
        with edit_manifest(tmp_path / "data" / name) as manifest:
            manifest |= {"recording": name, "uuid": f"uuid-of-{name}"}
            manifest |= {"consent_scopes": []} if name == "refused" else {}
    return tmp_path / "data"


def run(code: int, *args: object) -> dict:
    done = CliRunner().invoke(main, [*map(str, args)])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("form", ["tables", "mcap"])
def test_a_batch_exports_the_same_as_single_exports(takes: Path, form: str) -> None:
    alone, together = takes.parent / "alone", takes.parent / "together"
    expected = run(0, "export", form, takes, "--out", alone, *FEW, "--json")
    answer = run(1, "batch", "export", takes, "--jobs", 2, "--json", "--", form, "--out", together, *FEW)
    rows = {row["recording"]: row for row in answer["recordings"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "one": "exported", "other": "exported", "refused": "refused",
    }  # fmt: skip
    assert [rows[name]["answer"]["recordings"] for name in ("one", "other")] == [
        [entry] for entry in json.loads(json.dumps(expected["recordings"]).replace(str(alone), str(together)))
    ]
    assert rows["refused"]["reason"] == expected["left_out"]["refused"]
    files = {path.relative_to(alone) for path in alone.rglob("*") if path.is_file()}
    assert files == {path.relative_to(together) for path in together.rglob("*") if path.is_file()}
    assert files
    assert any(str(together) in str(line) for line in read_derived(takes / "one")), "a withdrawal finds it"


def test_missing_arguments_are_named(takes: Path) -> None:
    done = CliRunner().invoke(main, ["batch", "export", str(takes), "--", "lerobot", "--out", "x"])
    assert done.exit_code == 2
    assert "say after -- what to export: mcap, tables" in done.output
    done = CliRunner().invoke(main, ["batch", "export", str(takes), "--", "tables"])
    assert done.exit_code == 2
    assert "--out" in done.output
