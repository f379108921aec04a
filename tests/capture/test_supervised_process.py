"""A child process that is kept alive, and its spare."""

from __future__ import annotations

import sys

import pytest
from waiting import until

from kitchensync.capture.errors import ProcessKeepsDying
from kitchensync.capture.process import supervised_process
from kitchensync.capture.process.supervised_process import MAX_DEATHS, SupervisedProcess

SCRIPT = """
import sys, time
if "--spare" in sys.argv and sys.stdin.buffer.readline() != b"go\\n":
    sys.exit(0)
print("working", "--spare" in sys.argv, flush=True)
time.sleep(60)
"""


@pytest.fixture
def worker(tmp_path):
    worker = SupervisedProcess("test", [sys.executable, "-c", SCRIPT], tmp_path / "log", None)
    yield worker
    worker.kill()


def said(worker: SupervisedProcess, count: int) -> list[str]:
    """Wait until the processes have said so many lines."""

    def lines() -> list[str]:
        return worker.log.read_text().splitlines()

    until(lambda: len(lines()) >= count, f"line {count} of what the processes say")
    return lines()


def test_a_spare_does_nothing_until_it_takes_the_place_of_the_dead(worker):
    worker.start()
    worker.keep_spare()
    assert said(worker, 1) == ["working False"]
    first = worker.process.pid
    worker.process.kill()
    worker.process.wait()
    worker.restart()
    assert said(worker, 2) == ["working False", "working True"]
    assert worker.process.pid != first
    assert worker.returncode() is None


def test_a_spare_that_was_killed_is_no_hindrance(worker):
    worker.start()
    worker.keep_spare()
    assert said(worker, 1) == ["working False"]
    first, spare = worker.process.pid, worker._spare
    spare.kill()
    spare.wait()
    worker.process.kill()
    worker.process.wait()
    worker.restart()
    assert said(worker, 2) == ["working False", "working False"]
    assert worker.process.pid not in (first, spare.pid)


def test_the_end_sends_the_spare_home(worker):
    worker.start()
    worker.keep_spare()
    spare = worker._spare
    said(worker, 1)
    worker.end()
    worker.process.wait(timeout=60)
    assert spare.returncode is not None
    worker.keep_spare()
    assert worker._spare is None, "no spare after the end was asked"


def test_one_that_keeps_dying_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(
        supervised_process, "DEATHS_WINDOW_S", 3600.0
    )  # a busy computer takes long to start six
    worker = SupervisedProcess("test", [sys.executable, "-c", "print('why')"], tmp_path / "log", None)
    worker.start()
    for _ in range(MAX_DEATHS):
        worker.process.wait()
        worker.restart()
    worker.process.wait()
    with pytest.raises(ProcessKeepsDying, match="why"):
        worker.restart()
