"""A repeated export keeps complete files, and does not report files of other data as current."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from derived_places import read_derived
from small_recordings import HOST0_NS

from kitchensync.cli import main
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.recording_files.annotation_folder import add_judged

pytestmark = pytest.mark.slow
MADE = {"tables": "{}/about.json", "mcap": "{}.mcap"}
EVERY = pytest.mark.parametrize("form", sorted(MADE))
FEW = ("--streams", "gyroscope,head")


@pytest.fixture
def takes(cooked: Path, tmp_path: Path) -> Path:
    for name in ("one", "other"):
        shutil.copytree(cooked, tmp_path / "data" / name)
        with edit_manifest(tmp_path / "data" / name) as manifest:
            manifest |= {"recording": name, "uuid": f"uuid-of-{name}"}
    return tmp_path / "data"


def run(form: str, data: Path, *more: object) -> Result:
    return CliRunner().invoke(
        main, ["export", form, str(data), "--out", str(data.parent / "out"), *FEW, *map(str, more)]
    )


def reports(form: str, data: Path, *more: object) -> dict[str, dict[str, Any]]:
    done = run(form, data, "--json", *more)
    assert done.exit_code == 0, done.output
    return {report["recording"]: report for report in json.loads(done.stdout)["recordings"]}


def stamps(out: Path) -> dict[str, int]:
    files = (path for path in out.rglob("*") if path.is_file())
    return {path.relative_to(out).as_posix(): path.stat().st_mtime_ns for path in files}


def destroy(place: Path) -> None:
    shutil.rmtree(place.parent) if place.name == "about.json" else place.unlink()


@EVERY
def test_only_missing_exports_are_written_again(form: str, takes: Path) -> None:
    out = takes.parent / "out"
    first = reports(form, takes)
    before = stamps(out)
    destroy(out / MADE[form].format("other"))
    again = reports(form, takes)
    assert again["one"] == first["one"] | {"was_there": True}
    assert {key for key in first["other"] if again["other"][key] != first["other"][key]} <= {"bytes"}
    kept = {name for name, at_ns in stamps(out).items() if before[name] == at_ns}
    assert stamps(out).keys() == before.keys()
    assert kept == {name for name in before if name.startswith("one")}


@EVERY
def test_a_withdrawal_finds_exports_that_were_kept(form: str, takes: Path) -> None:
    reports(form, takes)
    shutil.rmtree(takes / "_app")  # as a killed command may leave it
    reports(form, takes)
    (line,) = read_derived(takes / "one")
    assert line["files"]
    assert "of" not in line


@EVERY
def test_decisions_and_review_videos_do_not_change_exports(form: str, takes: Path) -> None:
    reports(form, takes)
    add_judged(takes / "one", "decisions", {"items": [], "answers": [], "figures": {}})
    (takes / "one/sync/review").mkdir()
    (takes / "one/sync/review/gopro_360p.mp4").write_bytes(b"a small video")
    assert all(report["was_there"] for report in reports(form, takes).values())


@EVERY
@pytest.mark.parametrize("what", ["options", "recording", "damaged"])
def test_exports_of_other_data_are_not_reported_as_current(form: str, takes: Path, what: str) -> None:
    reports(form, takes)
    out, more = takes.parent / "out", ["--from", 3] if what == "options" else []
    before = stamps(out)
    if what == "recording":
        EventLog(takes / "one", "operator").append(
            "mark", host_ns=HOST0_NS, uncertainty_ns=0, body={}, op_id="m"
        )
    if what == "damaged":
        place = max((path for path in out.rglob("one*/**/*.parquet")), default=out / MADE[form].format("one"))
        place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])
        before = stamps(out)
    refused = run(form, takes, *more)
    assert refused.exit_code == (1 if what == "options" else 0), "the other recording is exported"
    assert "exists and is not overwritten" in refused.stderr
    assert ("one left out" in refused.stderr) == (what != "options")
    assert "other left out" not in refused.stderr
    assert stamps(out) == before
    assert "was_there" not in reports(form, takes, "--force", *more)["one"]
