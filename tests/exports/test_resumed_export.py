"""An export that was killed goes on: what it had made is kept, and a withdrawal finds that too."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cooked_recording import copied
from processes import COMMAND, kitchensync
from typed_commands import answer
from waiting import until

from kitchensync.storage.copies.derived import read_derived
from kitchensync.storage.events import EventLog

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def data(cooked: Path, tmp_path: Path) -> Path:
    shutil.copytree(cooked, tmp_path / "data" / "take1")
    for name in ("take2", "take3"):
        copied(tmp_path / "data", name)
    return tmp_path / "data"


def without_places(said: dict[str, Any], out: Path) -> str:
    """Return what a command said, but for the folder it wrote to."""
    return json.dumps(said).replace(str(out), "OUT")


@pytest.mark.parametrize(("kind", "made"), [("mcap", "take1.mcap"), ("tables", "take1/about.json")])
def test_a_killed_export_goes_on_and_says_the_same(kind: str, made: str, data: Path, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    command = ["export", kind, str(data), "--out", str(out), "--json"]
    export = subprocess.Popen([COMMAND, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first = out / made
    journal = out / f".kitchensync-export-{kind}.jsonl"
    until(lambda: journal.exists() and "take1" in journal.read_text(), "the first recording", limit_s=120)
    export.send_signal(signal.SIGKILL)
    export.wait()
    before = first.stat()
    refused = kitchensync(*command)
    assert "exists and is not written over" in refused.stderr
    done = kitchensync(*command, "--resume")
    assert done.returncode == 0, done.stderr
    assert (first.stat().st_ino, first.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    said = answer("export", kind, data, "--out", whole)
    assert without_places(json.loads(done.stdout), out) == without_places(said, whole)
    assert {one["recording"] for one in said["recordings"]} == {"take1", "take2", "take3"}
    noted = {
        name for line in read_derived(data / "take1") if line["path"] == str(out) for name in line["files"]
    }
    assert made in noted, "the killed command could not note it"


def test_a_recording_that_changed_or_another_choice_is_made_anew(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert answer("export", "tables", data / "take1", "--out", out)["recordings"]
    kept = answer("export", "tables", data / "take1", "--out", out, "--resume")["recordings"]
    assert [one["recording"] for one in kept] == ["take1"]
    for more in (("--step", 2), ("--csv",)):
        refused = answer("export", "tables", data / "take1", "--out", out, "--resume", *more, code=1)
        assert "exists and is not written over" in json.dumps(refused)
    before = (out / "take1/about.json").stat().st_ino
    EventLog(data / "take1", "tablet").append(
        "mark", host_ns=10**12, uncertainty_ns=0, body={"text": "late"}, op_id="late"
    )
    assert answer("export", "tables", data / "take1", "--out", out, "--resume", "--force")["recordings"]
    assert (out / "take1/about.json").stat().st_ino != before
    (out / "take1" / "steps.parquet").unlink()
    answer("export", "tables", data / "take1", "--out", out, "--resume", "--force")
    assert (out / "take1" / "steps.parquet").exists()
