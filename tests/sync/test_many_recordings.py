"""Many recordings in one run: any number of workers, killed and taken up again, one bad among them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from distributed import LocalCluster
from processes import COMMAND

from kitchensync.cli import main
from kitchensync.storage.errors import NoDask
from kitchensync.sync import synchronize as job
from kitchensync.sync.batch.batch import failed, synchronize_all
from kitchensync.sync.report.overview import compare, summary_page, worst_first
from kitchensync.sync.result.state import finished

pytestmark = pytest.mark.slow

COUNT, SECONDS = 3, 14.0


@pytest.fixture(scope="module")
def made(recordings, tmp_path_factory):
    root = tmp_path_factory.mktemp("many")
    for k in range(COUNT):
        recordings.write_clip(root / f"take-{k}", 50 + k, SECONDS, pv_bytes=50)
    return root


@pytest.fixture
def root(made, tmp_path):
    """Copies that a test may spoil, and one that is no recording at all."""
    shutil.copytree(made, tmp_path / "data")
    (tmp_path / "data" / "broken").mkdir()
    (tmp_path / "data" / "broken" / "recording.json").write_text("{")
    return tmp_path / "data"


def digests(root):
    """Hash every file that synchronization wrote."""
    files = [path for path in sorted(root.glob("*/sync/**/*")) if path.is_file()]
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def statuses(answer):
    return {entry["recording"]: entry["status"] for entry in answer["recordings"]}


def without_paths(answer):
    own = ("path", "reasons")  # the reason of a broken one names its folder
    return [{k: v for k, v in entry.items() if k not in own} for entry in answer["recordings"]]


def test_two_workers_give_the_files_of_one(root, tmp_path):
    shutil.copytree(root, tmp_path / "other")
    alone = synchronize_all([root], workers=1)
    together = synchronize_all([tmp_path / "other"], workers=2)
    assert statuses(alone) == statuses(together)
    assert statuses(alone)["broken"] == "not_done"
    assert without_paths(alone) == without_paths(together)
    assert digests(root) == digests(tmp_path / "other")


def test_a_scheduler_elsewhere_gives_the_same(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(root, tmp_path / "other")
    synchronize_all([root], workers=1)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", protocol="tcp", host="127.0.0.1"
    ) as cluster:
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
        answer = synchronize_all([Path("other")], scheduler=cluster.scheduler_address)
    assert statuses(answer)["take-0"] == "aligned"
    paths = {entry["path"] for entry in answer["recordings"] if "path" in entry}
    assert paths == {f"other/take-{k}" for k in range(COUNT)}, "as one worker says them"
    assert digests(root) == digests(tmp_path / "other")


def test_a_scheduler_that_is_not_there_is_one_line(root):
    with pytest.raises(NoDask, match=r"cannot work on tcp://127\.0\.0\.1:1"):
        synchronize_all([root], scheduler="tcp://127.0.0.1:1")


def test_runs_that_are_killed_at_any_time_end_with_the_same_files(root, tmp_path):
    shutil.copytree(root, tmp_path / "other")
    synchronize_all([root], workers=1)
    command = [COMMAND, "sync", tmp_path / "other", "--jobs", "2", "--json"]
    for killed_after_s in (0.7, 1.6, 2.4, 3.3):
        with subprocess.Popen(command, stdout=-3, stderr=-3, start_new_session=True) as child:
            with suppress(subprocess.TimeoutExpired):
                child.wait(killed_after_s)
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    done = subprocess.run(command, stdout=-1, stderr=-3, check=False)
    assert statuses(json.loads(done.stdout))["take-0"] == "aligned"
    assert digests(root) == digests(tmp_path / "other")


@pytest.mark.promise("Many recordings are worked through, and what ended is not done twice")
def test_a_killed_run_is_taken_up_again(root, tmp_path):
    """Half of the recordings are finished, one was left in the middle, with files half written."""
    shutil.copytree(root, tmp_path / "other")
    whole = synchronize_all([root], workers=1)
    synchronize_all([tmp_path / "other" / "take-0"], workers=1)
    before = (tmp_path / "other" / "take-0" / "sync" / "index.parquet").stat().st_mtime_ns
    left = tmp_path / "other" / "take-1" / "sync"
    (left / "alignment").mkdir(parents=True)
    (left / "alignment" / "GX010001.MP4.json.part").write_text("{")
    (left / "index.parquet").write_bytes(b"half")
    again = synchronize_all([tmp_path / "other"], workers=1)
    assert without_paths(again) == without_paths(whole)
    assert digests(root) == digests(tmp_path / "other")
    index = tmp_path / "other" / "take-0" / "sync" / "index.parquet"
    assert index.stat().st_mtime_ns == before
    synchronize_all([tmp_path / "other"], workers=1, again=True)
    assert index.stat().st_mtime_ns > before, "--again does finished ones too"


def test_what_changed_is_not_taken_for_finished(root):
    take = root / "take-0"
    synchronize_all([take], workers=1)
    assert finished(take, None) is not None
    assert finished(take, "gopro") is None
    (take / "sync" / "poses.parquet").unlink()
    assert finished(take, None) is None
    synchronize_all([take], workers=1)
    with (take / "gopro" / "GH010001.MP4").open("ab") as film:
        film.write(b"more")
    assert finished(take, None) is None


def test_a_file_that_comes_meanwhile_is_not_taken_for_synchronized(root, monkeypatch):
    take, whole = root / "take-0", job.synchronize

    def synchronize(path, *, master):
        answer = whole(path, master=master)
        shutil.copy(path / "gopro" / "GH010001.MP4", path / "gopro" / "GH010002.MP4")
        return answer

    monkeypatch.setattr("kitchensync.sync.synchronize.synchronize", synchronize)
    synchronize_all([take], workers=1)
    assert finished(take, None) is None


def test_an_answer_that_cannot_be_kept_is_its_own_fault(root):
    (root / "take-1" / "sync").write_text("no folder")
    answer = statuses(synchronize_all([root], workers=1))
    assert [answer[f"take-{k}"] for k in range(3)] == ["aligned", "not_done", "aligned"]


def test_a_fault_in_one_recording_is_its_own(root, monkeypatch):

    def synchronize(path, master):
        if path.name == "take-1":
            raise ZeroDivisionError("nobody thought of it")
        return {"recording": path.name, "status": "aligned", "pairs": [], "path": str(path)}

    monkeypatch.setattr("kitchensync.sync.synchronize.synchronize", synchronize)
    answer = synchronize_all([root], workers=1)
    assert statuses(answer)["take-0"] == "aligned"
    bad = next(entry for entry in answer["recordings"] if entry["recording"] == "take-1")
    assert bad["reasons"] == ["unforeseen ZeroDivisionError: nobody thought of it"]
    assert finished(root / "take-1", None) is None


def test_the_command_writes_a_summary_worst_first(root):
    result = CliRunner().invoke(main, ["sync", str(root), "--jobs", "1", "--json"])
    assert result.exit_code == 1
    json.loads(result.stdout)
    assert re.search(r"^\d/\d  \w+  take-0$", result.stderr, re.MULTILINE)
    page = (root / "sync-summary.html").read_text(encoding="utf-8")
    assert page.index("broken") < page.index("take-0")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what stands for sound here is no number at times
def test_batch_synchronizes_and_reports_as_the_commands_do(root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(root, tmp_path / "other")
    alone = CliRunner().invoke(main, ["sync", str(root), "--jobs", "1", "--json"])
    done = CliRunner().invoke(main, ["batch", "sync", str(tmp_path / "other"), "--jobs", "2", "--json"])
    rows = {row["recording"]: row for row in json.loads(done.stdout)["recordings"]}
    assert done.exit_code == alone.exit_code == 1
    assert {name: row["status"] for name, row in rows.items()} == statuses(json.loads(alone.stdout))
    assert digests(root) == digests(tmp_path / "other")
    index = tmp_path / "other" / "take-0" / "sync" / "index.parquet"
    before = index.stat().st_mtime_ns
    assert asked_rows("sync", tmp_path / "other")["take-0"]["exit"] == 0
    assert index.stat().st_mtime_ns == before, "it was finished"
    assert asked_rows("sync", tmp_path / "other", "--", "--again")["take-0"]["exit"] == 0
    assert index.stat().st_mtime_ns > before
    shutil.copy(root / "sync-summary.html", tmp_path / "other")
    reports = asked_rows("report", tmp_path / "other")
    for name in ("take-0", "take-1", "take-2"):
        assert reports[name]["answer"]["page"] == str(tmp_path / "other" / name / "sync" / "report.html")
        assert (tmp_path / "other" / name / "sync" / "report.html").stat().st_size > 10_000
    assert reports["broken"]["status"] == "refused"
    assert "take-0/sync/report.html" in (tmp_path / "other" / "sync-summary.html").read_text()


def asked_rows(verb, *words):
    done = CliRunner().invoke(main, ["batch", "--json", verb, "--jobs", "1", *map(str, words)])
    return {row["recording"]: row for row in json.loads(done.stdout)["recordings"]}


def test_worst_comes_first_whatever_the_order():
    entries = [
        {"recording": name, "status": status, "pairs": []}
        for name, status in [
            ("a", "aligned"),
            ("b", "check"),
            ("c", "not_aligned"),
            ("d", "nothing_to_align"),
        ]
    ]
    assert [e["recording"] for e in worst_first(entries[::-1])] == ["c", "b", "a", "d"]


def test_names_are_escaped(tmp_path):
    page = summary_page({"recordings": [failed(tmp_path / "x", "<script>alert(1)</script>")]}, tmp_path)
    assert "<script>" not in page


def test_what_a_new_version_changed(root, tmp_path):
    shutil.copytree(root / "take-0", tmp_path / "old")
    synchronize_all([root / "take-0"], workers=1)
    shutil.copytree(root / "take-0", tmp_path / "new", dirs_exist_ok=True)
    path = tmp_path / "new" / "sync" / "alignment" / "GH010001.MP4.json"
    body = json.loads(path.read_text())
    assert compare(root / "take-0", tmp_path / "new")["changed"] == 0
    body["map"]["coef"][0] += 0.002
    path.write_text(json.dumps(body))
    answer = compare(root / "take-0", tmp_path / "new")
    assert answer["changed"] == 1
    assert answer["pairs"][0]["moved_ms"] == pytest.approx(2.0, abs=0.001)
    result = CliRunner().invoke(main, ["sync", str(root / "take-0"), "--compare", str(tmp_path / "new")])
    assert result.exit_code == 0
    assert "1 of 1 changed" in result.output
    assert "moved by up to 2.0000 ms" in result.output
    nothing = CliRunner().invoke(main, ["sync", str(root / "take-0"), "--compare", str(tmp_path / "old")])
    assert nothing.exit_code == 1
    assert len(nothing.stderr.strip().splitlines()) == 1
