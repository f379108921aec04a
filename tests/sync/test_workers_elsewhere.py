"""Workers of a scheduler: absent, unfit, or dying at their work; real ones, over TCP on this computer."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from distributed import Client, LocalCluster

from kitchensync.cli import main
from kitchensync.storage.batch import cluster
from kitchensync.storage.batch.cluster import Undone, facts, on_cluster, unfit
from kitchensync.storage.errors import NoDask, NoWorkers
from kitchensync.storage.manifest import write_json
from kitchensync.sync.batch.batch import synchronize_all

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scheduler():
    """A scheduler without a worker; a test starts the ones it wants."""
    with LocalCluster(
        n_workers=0,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as made:
        yield made


@pytest.fixture
def start_worker(scheduler, tmp_path):
    """Start workers in processes of their own, without a nanny that would start them anew."""
    started: list[subprocess.Popen] = []

    def start(name: str, **env: str) -> None:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler.scheduler_address]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--name", name]
        started.append(
            subprocess.Popen(
                [*command, *options, "--local-directory", str(tmp_path / name)],
                env={**os.environ, **env},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    yield start
    for process in started:
        process.kill()
        process.wait()
    with Client(scheduler.scheduler_address) as client:
        while client.scheduler_info()["workers"]:  # the next test begins without any
            client.sync(cluster_pause)


async def cluster_pause() -> None:
    import asyncio

    await asyncio.sleep(0.1)


def wait_for(scheduler, count: int) -> None:
    with Client(scheduler.scheduler_address) as client:
        client.wait_for_workers(count, timeout=60)


@pytest.fixture
def folders(tmp_path):
    """Folders that have a manifest and nothing more: the work on them is made up here."""
    paths = [tmp_path / "data" / f"take-{k}" for k in range(3)]
    for path in paths:
        path.mkdir(parents=True)
        write_json(path / "recording.json", {"recording": path.name})
    return paths


def test_a_scheduler_without_workers_is_waited_for_with_words(scheduler, take, monkeypatch):
    monkeypatch.setattr(cluster, "WAIT_S", 1)
    words = ["sync", str(take), "--scheduler", scheduler.scheduler_address, "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    first, last = [line for line in done.stderr.splitlines() if line.startswith("kitchensync: ")]
    assert "no workers at tcp://127.0.0.1:" in first
    assert "waiting up to 1 s" in first
    assert "no worker came within 1 s" in last
    assert not (take / "sync").exists()


def test_no_scheduler_is_one_line(take, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    with pytest.raises(NoDask, match=r"cannot work on tcp://127\.0\.0\.1:1: .*; start the scheduler"):
        synchronize_all([take], scheduler="tcp://127.0.0.1:1")
    assert not (take / "sync").exists()


@pytest.mark.filterwarnings("ignore::distributed.versions.VersionMismatchWarning")
def test_an_unfit_worker_is_named_and_a_fit_one_works(scheduler, start_worker, folders, tmp_path, capsys):
    info = tmp_path / "other" / "numpy-0.0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.0.1\n")
    start_worker("old", PYTHONPATH=str(tmp_path / "other"))
    wait_for(scheduler, 1)

    def work(path):
        return {"recording": path.name, "status": "aligned", "pairs": []}

    address = scheduler.scheduler_address
    with pytest.raises(NoWorkers, match=r"numpy 0\.0\.1 instead of"):
        list(on_cluster(work, folders, address, writes=""))
    capsys.readouterr()
    start_worker("fit")
    wait_for(scheduler, 2)
    results = list(on_cluster(work, folders, address, writes=""))
    assert sorted(path.name for path, _ in results) == ["take-0", "take-1", "take-2"]
    assert "is not used: numpy 0.0.1 instead of" in capsys.readouterr().err


def test_what_a_dying_worker_had_is_done_elsewhere(scheduler, start_worker, folders, tmp_path, monkeypatch):
    """One recording kills the first worker that takes it, another every one."""
    monkeypatch.setattr(cluster, "WAIT_S", 5)
    for name in ("a", "b", "c"):
        start_worker(name)
    wait_for(scheduler, 3)
    once = tmp_path / "once"

    def work(path):
        if path.name == "take-2" or (path.name == "take-1" and not once.exists()):
            once.touch()
            os._exit(9)
        return {"recording": path.name, "status": "aligned", "pairs": []}

    results = list(on_cluster(work, folders, scheduler.scheduler_address, writes=""))
    done = {result[0].name for result in results if not isinstance(result, Undone)}
    (undone,) = [result for result in results if isinstance(result, Undone)]
    assert "take-0" in done
    assert undone.path.name == "take-2"
    assert "tcp://127.0.0.1:" in undone.words()
    assert done == {"take-0", "take-1"}


def test_what_a_worker_goes_on_with_after_ctrl_c_is_said(scheduler, start_worker, folders, tmp_path, capsys):
    for name in ("a", "b"):
        start_worker(name)
    wait_for(scheduler, 2)

    def work(path):
        while path.name == "take-1" and not (tmp_path / "enough").exists():
            time.sleep(0.01)
        return {"recording": path.name}

    results = on_cluster(work, folders, scheduler.scheduler_address, writes="")
    first, _ = next(results)
    results.close()
    (tmp_path / "enough").touch()
    assert first.name == "take-0"
    said = capsys.readouterr().err
    assert "kitchensync: workers may go on with what they had begun: take-1 (tcp://127.0.0.1:" in said
    assert "take-2" not in said


def test_a_worker_must_see_the_same_recordings(folders):
    here = facts([str(folders[0])], "sync")
    assert unfit(facts([str(folders[0])], "sync"), here) == ""
    there = {"versions": here["versions"], "recordings": facts(["/nowhere"], "sync")["recordings"]}
    assert "does not see /nowhere (no such file or directory)" in unfit(there, here)
    other = facts([str(folders[1])], "sync")["recordings"][str(folders[1])]
    assert "sees another recording" in unfit({**here, "recordings": {str(folders[0]): other}}, here)
    closed = {**here["recordings"][str(folders[0])], "writes": False}
    assert "may not write" in unfit({**here, "recordings": {str(folders[0]): closed}}, here)


def test_without_a_worker_left_this_computer_has_the_last_try(take, monkeypatch):
    def nobody(work, todo, scheduler, **_more):
        yield from (Undone(path, {"tcp://10.0.0.9:1": "the worker was lost"}) for path in todo)

    def died(job, todo, _workers):
        yield from ((path, job.not_done(path, "the process died")) for path in todo)

    monkeypatch.setattr("kitchensync.storage.batch.runner.on_cluster", nobody)
    (answer,) = synchronize_all([take], scheduler="tcp://10.0.0.5:8786")["recordings"]
    assert answer["status"] == "aligned"
    (take / "sync" / "state.json").unlink()
    monkeypatch.setattr("kitchensync.storage.batch.runner._in_processes", died)
    (answer,) = synchronize_all([take], scheduler="tcp://10.0.0.5:8786")["recordings"]
    assert answer["status"] == "not_done"
    assert answer["error"].endswith("; before, tcp://10.0.0.9:1: the worker was lost")
