"""`kitchensync batch`: one command over many recordings, in processes and on a cluster, bad ones among them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import dying_work
import h5py
import pytest
from click.testing import CliRunner
from distributed import LocalCluster
from folder_contents import hashes
from processes import COMMAND

from kitchensync.batch.command import Journal
from kitchensync.batch.jobs import VERBS, job_of
from kitchensync.cli import main
from kitchensync.storage.batch import workers
from kitchensync.storage.batch.runner import Job, Workforce, run_all
from kitchensync.storage.catalogue.listing import recordings_below
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own for journals."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "kitchensync" / "batch"


@pytest.fixture
def lab(finished: Path, tmp_path: Path) -> Path:
    """Five recordings at several depths: two good, one damaged, one without manifest, one withdrawn."""
    root = tmp_path / "lab"
    for where in ("a/good-1", "a/deep/good-2", "b/flipped", "b/lost", "withdrawn"):
        shutil.copytree(finished, root / where)
    film = root / "b" / "flipped" / "gopro" / "GX010001.MP4"
    film.write_bytes(film.read_bytes()[:-1] + b"\0")
    (root / "b" / "lost" / "recording.json").unlink()
    with edit_manifest(root / "withdrawn") as manifest:
        manifest["withdrawn"] = {"host_ns": 1}
    return root


def asked(*words: object) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["batch", *map(str, words[:1]), "--json", *map(str, words[1:])])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer | {"code": done.exit_code, "stderr": done.stderr}


@pytest.mark.parametrize("jobs", [1, 2])
def test_verify_answers_for_each_what_the_command_answers_alone(jobs: int, lab: Path, state: Path) -> None:
    before = hashes(lab)
    answer = asked("verify", lab, "--jobs", jobs)
    alone = {}
    for row in answer["recordings"]:
        done = CliRunner().invoke(main, ["verify", row["path"], "--json"])
        alone[row["recording"]] = (done.exit_code, json.loads(done.stdout))
    assert {row["recording"]: (row["exit"], row["answer"]) for row in answer["recordings"]} == alone
    assert (answer["schema"], answer["code"], answer["failed"]) == ("batch/1", 1, 2)
    assert answer["counts"] == {"PASS": 2, "FAIL": 2, "WARN": 1}
    said = [line for line in answer["stderr"].splitlines() if line.startswith("kitchensync: ")]
    assert len(said) == 2
    assert "flipped" in said[0]
    assert "recover --rebuild" in said[1]
    kept = {f"{path}/sync/verify.json" for path in ("a/good-1", "a/deep/good-2", "b/flipped")}
    after = hashes(lab)
    assert {path: after[path] for path in after if path not in kept} == before
    assert kept < set(after), "who counts recordings goes by the last answer"
    assert list(state.glob("*")) == []


def test_archive_packs_all_that_can_be_packed(lab: Path) -> None:
    with edit_manifest(lab / "a" / "good-1") as manifest:
        manifest["state"] = "recording"
    answer = asked("archive", lab, "--jobs", "2")
    rows = {row["recording"]: row for row in answer["recordings"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "good-1": "refused",
        "good-2": "packed",
        "flipped": "packed",
        "lost": "refused",
        "withdrawn": "refused",
    }
    assert answer["code"] == 1
    assert "is not finished" in rows["good-1"]["reason"]
    (packed,) = (lab / "a" / "deep" / "good-2" / "hololens" / "pv").glob("*.h5")
    with h5py.File(packed) as file:
        assert len(file["index"]) == 60
    assert len(list((lab / "withdrawn" / "hololens" / "pv").glob("*.h5"))) == 3


def test_upload_takes_its_url_after_the_dashes_and_goes_on_where_it_was(lab: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    folder.mkdir()
    answer = asked("upload", lab / "a", "--", f"file://{folder}")
    assert (answer["code"], answer["counts"]) == (0, {"sent": 2})
    for name, where in (("good-1", "a/good-1"), ("good-2", "a/deep/good-2")):
        there = hashes(folder / name)
        here = {path: sha for path, sha in hashes(lab / where).items() if path != "copies.jsonl"}
        assert there == here
    again = asked("upload", lab / "a", "--", f"file://{folder}")
    assert [row["answer"]["sent"] for row in again["recordings"]] == [0, 0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verify", "LAB", "--", "--deeper"], "--deeper"),
        (["verify", "LAB", "--", "--json"], "--json"),
        (["upload", "LAB"], "URL"),
        (["record", "LAB"], "'record' is not one of"),
        (["verify", "LAB/nowhere"], "there is no such folder"),
        (["verify", "LAB/a/empty"], "there is no recording in it"),
        (["verify"], "PATHS"),
    ],
)
def test_wrong_usage_is_one_line_and_nothing_is_done(words: list[str], said: str, lab: Path) -> None:
    (lab / "a" / "empty").mkdir()
    before = hashes(lab)
    done = CliRunner().invoke(main, ["batch", "--json", *(word.replace("LAB", str(lab)) for word in words)])
    (line,) = done.stderr.splitlines()
    assert (done.exit_code, line.startswith("kitchensync: "), said in line) == (2, True, True), line
    refused = json.loads(done.stdout)
    assert (refused["schema"], refused["status"]) == ("batch/1", "refused")
    assert hashes(lab) == before


def test_strict_lets_a_warning_fail(lab: Path) -> None:
    assert asked("verify", lab / "withdrawn")["code"] == 0
    assert asked("verify", lab / "withdrawn", "--", "--strict")["code"] == 1


def test_a_fault_of_ours_in_one_recording_is_its_own(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kitchensync.storage import verify as verification

    whole = verification.verify

    def verify(recording: Path, **options: bool) -> dict[str, Any]:
        if recording.name == "good-1":
            raise ZeroDivisionError("nobody thought of it")
        if recording.name == "good-2":
            raise OSError(28, "No space left on device", str(recording))
        return whole(recording, **options)

    monkeypatch.setattr(verification, "verify", verify)
    job = job_of("verify", {"deep": False, "strict": False})
    rows = {path.name: job.work(path) for path in recordings_below(lab)}
    assert rows["good-1"]["status"] == rows["good-2"]["status"] == "not_done"
    assert "unforeseen ZeroDivisionError" in rows["good-1"]["reason"]
    assert "no space left on device" in rows["good-2"]["reason"]
    assert rows["flipped"]["status"] == "FAIL"


@pytest.mark.promise("Many recordings are worked through, and what ended is not done twice")
def test_processes_that_die_take_only_their_recordings_with_them() -> None:
    names = [f"take-{number:02}" for number in range(20)]
    names[3:3], names[11:11] = ["dies-a"], ["dies-b"]
    job = Job(dying_work.work, dying_work.not_done, loads="json", writes=None)
    paths = [Path("data") / name for name in names]
    answers = list(run_all(job, paths, Workforce(workers=2)))
    assert sorted(path for path, _ in answers) == sorted(paths), "each once"
    died = {path.name: answer["error"] for path, answer in answers if "error" in answer}
    assert died == {
        name: f"{name}: the process that worked on it died" for name in names if name.startswith("dies")
    }
    processes = {answer["pid"] for _, answer in answers if "pid" in answer}
    assert len(processes) <= 2 * 3 + 2, "only those under way are done alone, the others by two as before"


@pytest.mark.parametrize("count", [1, 3])
def test_a_worker_that_works_alone_may_die_too(count: int) -> None:
    job = Job(dying_work.work, dying_work.not_done, loads="json", writes=None)
    paths = [Path("dies"), *(Path(f"take-{number}") for number in range(count))]
    answers = dict(run_all(job, paths, Workforce(workers=1, apart=True)))
    assert {path.name: "error" in answer for path, answer in answers.items()} == {
        path.name: path.name == "dies" for path in paths
    }
    assert os.getpid() not in {answer.get("pid") for answer in answers.values()}


def test_a_scheduler_elsewhere_gives_the_same(lab: Path) -> None:
    here = asked("verify", lab, "--jobs", "1")
    with LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0", protocol="tcp", host="127.0.0.1"
    ) as cluster:
        there = asked("verify", lab, "--scheduler", cluster.scheduler_address)
    assert there["recordings"] == here["recordings"]


def test_no_scheduler_is_one_line_and_nothing_is_done(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kitchensync.storage.batch.cluster.CONNECT_S", 1)
    refused = asked("archive", lab / "a", "--scheduler", "tcp://127.0.0.1:1")
    assert (refused["code"], refused["status"]) == (1, "refused")
    assert "start the scheduler" in refused["reason"]
    assert not list(lab.rglob("*-*.h5"))


def group(leader: int) -> list[str]:
    """Commands of the processes in a group that run still."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True)
    lines = (line.split(None, 2) for line in listed.stdout.splitlines())
    return [args for pgid, stat, args in lines if int(pgid) == leader and not stat.startswith("Z")]


COUNT = 100
"""So many that Ctrl-C comes long before the last one."""


@pytest.mark.parametrize("to", [os.killpg, os.kill], ids=["as a terminal does", "to the command alone"])
def test_ctrl_c_ends_it_and_the_same_command_goes_on(
    to: Callable[[int, int], None], finished: Path, tmp_path: Path, state: Path
) -> None:
    data = tmp_path / "many"
    for number in range(COUNT):
        shutil.copytree(finished, data / f"take-{number:03}", copy_function=os.link)
    command = [str(COMMAND), "batch", "verify", "--json", "many", "--jobs", "2", "--", "--strict"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    to(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert first.startswith(f"1/{COUNT}  PASS  take-")
    assert process.returncode == 1
    *progress, last = filter(None, stderr.splitlines())
    assert "stopped by Ctrl-C" in last
    assert all("PASS  take-" in line for line in progress), stderr
    assert json.loads(stdout)["status"] == "refused"
    end_s = time.monotonic() + 30
    while left := group(process.pid):  # the server of workers notices the end a moment later
        assert time.monotonic() < end_s, left
        time.sleep(0.05)
    (journal,) = state.glob("*.jsonl")
    done = len(journal.read_text().splitlines())
    assert done < COUNT
    assert done in (1 + len(progress), 2 + len(progress)), "noted, then shown"
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"resuming: {done} of {COUNT} were finished by the interrupted run" in again.stderr
    assert len(again.stderr.splitlines()) == 1 + COUNT - done
    rows = json.loads(again.stdout)["recordings"]
    assert [row["recording"] for row in rows] == [f"take-{number:03}" for number in range(COUNT)]
    assert list(state.glob("*")) == []


def test_ctrl_c_waits_until_the_pool_has_let_go_of_its_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised in the middle of one, it would leave a lock that the pool's own thread waits for."""
    done: list[str] = []

    class Pool(ProcessPoolExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> Any:
            signal.raise_signal(signal.SIGINT)
            future = super().submit(*args, **kwargs)
            done.append("given out")
            return future

    monkeypatch.setattr("kitchensync.storage.batch.workers.ProcessPoolExecutor", Pool)
    job = Job(dying_work.work, dying_work.not_done, loads="json", writes=None)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        list(run_all(job, [tmp_path / f"take-{number}" for number in range(9)], Workforce(workers=2)))
    assert done == ["given out"] * 2
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_that_comes_in_a_callback_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    state = workers._State(is_busy=True)
    monkeypatch.setattr(workers, "_state", state)
    monkeypatch.setattr(sys, "unraisablehook", workers._interrupt_later)
    before = {number: signal.signal(number, workers._hear) for number in (signal.SIGINT, signal.SIGALRM)}

    class Callback:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def worked() -> None:
        Callback()
        time.sleep(10)

    try:
        with pytest.raises(KeyboardInterrupt):
            worked()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert state.is_over


def test_an_interrupt_that_a_library_made_an_error_of_still_ends_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_state", workers._State())

    def work(path: Path) -> dict[str, Any]:
        try:
            workers._hear()
        except KeyboardInterrupt:
            return {"error": f"{path.name} does not open"}
        return {"status": "PASS"}

    with pytest.raises(KeyboardInterrupt):
        workers.until_interrupted(work, tmp_path)


def test_only_what_is_as_it_was_counts_as_done(lab: Path) -> None:
    command = ["verify", {"deep": False}, [str(lab)]]
    paths = [lab / "a" / "good-1", lab / "a" / "deep" / "good-2"]
    for path in paths:
        Journal(command).add({"path": str(path), "exit": 0})
    Journal(command).add({"path": str(lab / "b" / "lost"), "exit": 1})
    assert list(Journal(command).done()) == paths
    assert Journal(["verify", {"deep": True}, [str(lab)]]).done() == {}
    with edit_manifest(paths[0]) as manifest:
        manifest["place"] = "elsewhere"
    with Journal(command).path.open("a") as file:
        file.write('{"row": {"pa')
    assert list(Journal(command).done()) == paths[1:]
    Journal(command).close()
    assert Journal(command).done() == {}


def test_without_a_place_for_its_journal_it_works_and_says_so_once(lab: Path, state: Path) -> None:
    state.parent.parent.write_text("a file")
    answer = asked("verify", lab / "a", "--jobs", "1")
    assert (answer["code"], answer["counts"]) == (0, {"PASS": 2})
    (line,) = (line for line in answer["stderr"].splitlines() if line.startswith("kitchensync: "))
    assert "this run cannot be resumed after Ctrl-C" in line


def test_every_verb_is_a_command_with_these_options() -> None:
    for name, verb in VERBS.items():
        command = main.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        if name != "export":  # a group, each with options of its own
            assert set(verb.takes) <= {param.name for param in command.params}, name
