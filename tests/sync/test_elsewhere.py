"""After the local files were freed: what was computed stays, and what is computed anew reads the copies."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kitchensync.calibration.jobs.mount_check import KEPT
from kitchensync.cli import main
from kitchensync.storage.errors import FilesFreed
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.names import MANIFEST
from kitchensync.sync.report.page import write_report
from kitchensync.sync.result.state import STATE

pytestmark = pytest.mark.slow

NOW = FreeRule(copies_before_free=1, keep_days=0.0)


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def alignments(answer: dict) -> list:
    """Everything that was measured, without the names of places."""
    return [
        {key: value for key, value in pair.items() if key not in ("inputs", "created")}
        for recording in answer["recordings"]
        for pair in recording["pairs"]
    ]


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def synchronized(made, tmp_path_factory) -> tuple[Path, dict, str]:
    """A data folder with a recording that is aligned, its answer, and its page."""
    data = tmp_path_factory.mktemp("synchronized") / "data"
    shutil.copytree(made[0] / "take1", data / "take1")
    done = run("sync", data, "--json")
    assert done.exit_code == 0, done.stderr
    assert run("report", data / "take1").exit_code == 0
    return data, json.loads(done.stdout), (data / "take1" / "sync" / "report.html").read_text()


@pytest.fixture
def freed(synchronized, tmp_path) -> Path:
    """A copy of it whose large files lie in a store only."""
    shutil.copytree(synchronized[0], tmp_path / "data")
    (tmp_path / "store").mkdir()
    take = tmp_path / "data" / "take1"
    (state,) = run_mover([take], [tmp_path / "store"], rule=NOW)
    assert state.freed > 5
    assert not [path for path in take.rglob("*") if path.suffix == ".MP4" or path.stem.isdigit()]
    return take


def unmount(freed: Path) -> None:
    store = freed.parent.parent / "store"
    store.rename(store.with_name("away"))


def test_a_folder_is_finished_after_its_files_were_freed(freed, synchronized):
    before = contents(freed)
    unmount(freed)
    done = run("sync", freed.parent, "--json")
    assert done.exit_code == 0, done.stderr
    assert [one["status"] for one in json.loads(done.stdout)["recordings"]] == ["aligned"]
    assert contents(freed) == before


def test_sync_reads_the_copy_and_measures_the_same(freed, synchronized):
    shutil.rmtree(freed / "sync")
    done = run("sync", freed, "--json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert alignments(answer) == alignments(synchronized[1])
    for table in ("index.parquet", "poses.parquet"):
        other = synchronized[0] / "take1" / "sync" / table
        assert (freed / "sync" / table).read_bytes() == other.read_bytes()
    assert not (freed.parent.parent / "store" / "take1" / "sync" / "poses.parquet.part").exists()


def test_sync_without_a_copy_keeps_the_last_answer_and_every_file(freed, synchronized):
    unmount(freed)
    before = contents(freed)
    done = run("sync", freed, "--json")
    (answer,) = json.loads(done.stdout)["recordings"]
    assert (done.exit_code, answer["status"], answer["checked"]) == (0, "aligned", False)
    assert "no copy can be read now" in answer["reasons"][-1]
    assert alignments({"recordings": [answer]}) == alignments(synchronized[1])
    assert contents(freed) == before
    assert (freed / STATE).exists()


def test_sync_without_a_copy_and_without_an_answer_is_refused(freed):
    shutil.rmtree(freed / "sync")
    unmount(freed)
    done = run("sync", freed)
    assert done.exit_code == 1
    assert "no copy can be read now" in done.stderr
    assert not (freed / "sync").exists()


def test_report_reads_the_copy(freed, synchronized):
    (freed / "sync" / "report.html").unlink()
    assert run("report", freed).exit_code == 0
    page = (freed / "sync" / "report.html").read_text()
    assert "GX010001.MP4" in page
    assert page.count("<svg") == synchronized[2].count("<svg")
    assert ("no packet" in page) == ("no packet" in synchronized[2])


def test_report_without_a_copy_is_refused_and_the_good_page_stays(freed):
    unmount(freed)
    write_json(freed / KEPT, {"schema": "calibrate-check/1", "status": "PASS", "mounts": []})
    before = contents(freed)
    done = run("report", freed)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no copy can be read now" in done.stderr
    assert contents(freed) == before
    with pytest.raises(FilesFreed):
        write_report(freed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state": "recording"}, "is not closed yet"),
        ({"withdrawn": {"host_ns": 1}}, "the participant withdrew consent"),
        ({"streams": 5}, "recording.json is wrong at 'streams'"),
    ],
)
def test_sync_refuses_what_it_must_not_work_on_and_its_answer_stays(synchronized, tmp_path, change, words):
    take = tmp_path / "take1"
    shutil.copytree(synchronized[0] / "take1", take)
    with edit_manifest(take) as manifest:
        manifest.update(change)
    before = contents(take)
    done = run("sync", take)
    assert (done.exit_code, contents(take)) == (1, before)
    assert words in done.stderr
    (take / MANIFEST).unlink()
    done = run("sync", take)
    assert done.exit_code == 1
    assert f"`kitchensync recover --rebuild {take.name}`" in done.stderr


def test_what_was_given_up_has_nothing_to_align(synchronized, tmp_path):
    take = tmp_path / "take1"
    shutil.copytree(synchronized[0] / "take1", take)
    with edit_manifest(take) as manifest:
        manifest["state"] = "aborted"
    before = contents(take)
    done = run("sync", take)
    assert (done.exit_code, contents(take)) == (0, before)
    assert "nothing_to_align" in done.stdout
    assert "it was given up at its start" in done.stdout
