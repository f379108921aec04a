"""Child processes that are kept alive, forked from a server that has imported everything, or started anew."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import psutil
import pytest
from waiting import until

from kitchensync.capture.errors import ProcessKeepsDying
from kitchensync.capture.process import fork_server, supervised_process
from kitchensync.capture.process.fork_server import ForkedProcess, ForkServer
from kitchensync.capture.process.supervised_process import MAX_DEATHS, SupervisedProcess

WORKER = """
import os, sys, time
from kitchensync.capture.process.fork_server import serve
is_forked = len(sys.argv) == 1
words = sys.argv[1:] or serve()
if words == ["die"]:
    sys.exit("why")
if words:
    print(*words, is_forked, os.getsid(0) == os.getpid(), os.getppid(), os.read(0, 1), flush=True)
    time.sleep(60)
"""
COMMAND = [sys.executable, "-c", WORKER]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fork becomes our child on Linux only")


@pytest.fixture
def start(tmp_path):
    """Start a worker of a server; those are killed at the end."""
    workers = []

    def start(forks: ForkServer, *words: str, hold: int | None = None) -> SupervisedProcess:
        until(forks.is_ready, "a server that has imported everything, or none")
        workers.append(SupervisedProcess("test", [*words], tmp_path / "log", hold, forks))
        workers[-1].start()
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill()


def said(worker: SupervisedProcess, count: int) -> list[str]:
    """Wait until the processes have said so many lines."""

    def lines() -> list[str]:
        return worker.log.read_text().splitlines()

    until(lambda: len(lines()) >= count, f"line {count} of what the processes say")
    return lines()


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children()}


@pytest.mark.parametrize("is_forked", [True, False])
def test_a_process_is_our_child_in_a_session_of_its_own_and_shares_the_lock(start, is_forked):
    with ForkServer(COMMAND) as server:
        reader, hold = os.pipe()
        worker = start(server if is_forked else ForkServer(COMMAND), "some words", hold=hold)
        os.close(hold)
        os.set_blocking(reader, False)
        assert said(worker, 1) == [f"some words {is_forked} True {os.getpid()} b''"]
        assert isinstance(worker.process, ForkedProcess) == is_forked
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)  # somebody holds the other end
        assert worker.returncode() is None
        worker.process.kill()
        assert worker.process.wait() == worker.returncode() == -signal.SIGKILL
        assert os.read(reader, 1) == b"", "the server does not hold it"
        os.close(reader)
        worker.hold = None
        worker.restart()
        assert said(worker, 2)[1] == f"some words {is_forked} True {os.getpid()} b''"
        worker.end()
        assert worker.process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_what_a_server_forked_outlives_it_and_the_next_is_started_anew(start, monkeypatch, number):
    before = children()
    with ForkServer(COMMAND) as server:
        worker = start(server, "one")
        assert said(worker, 1)
        monkeypatch.setattr(fork_server, "LIMIT_S", 0.2)
        os.kill(server._server.pid, number)
        start(server, "two")
        assert said(worker, 2)[1].split()[:2] == ["two", "False"]
        assert worker.returncode() is None
        assert len(children() - before) == 2, "nothing was forked as well"


def test_a_server_that_cannot_import_is_told_by_the_process_that_starts_anew(start):
    with ForkServer([sys.executable, "-c", "import no_such_module"]) as server:
        worker = start(server, "one")
        assert worker.process.wait() == 1
        assert "no_such_module" in said(worker, 1)[-1]


def test_a_server_that_hangs_while_it_imports_holds_nobody_up(start, monkeypatch):
    hangs = "import sys, time; print(*sys.argv[1:], flush=True); time.sleep(60)"
    with ForkServer([sys.executable, "-c", hangs]) as server:
        assert not server.is_ready()
        monkeypatch.setattr(server, "_end_s", 0.0)
        assert said(start(server, "one"), 1) == ["one"]
        assert server._server is None, "it was given up"


def test_a_server_that_cannot_fork_again_says_so_at_once(start, monkeypatch):
    monkeypatch.setattr(fork_server, "LIMIT_S", 3600.0)
    fails = (
        "import os\nfork, server = os.fork, os.getpid()\n"
        "os.fork = lambda: fork() if os.getpid() == server else 1 / 0\n"
    )
    with ForkServer([sys.executable, "-c", fails + WORKER]) as server:
        assert said(start(server, "one"), 1)[0].split()[:2] == ["one", "False"]


def test_what_cannot_become_our_child_does_not_run(start, monkeypatch):
    monkeypatch.setattr(fork_server, "_adopting", contextlib.nullcontext)
    monkeypatch.setattr(fork_server, "LIMIT_S", 0.2)
    with ForkServer(COMMAND) as server:
        assert said(start(server, "one"), 1)[0].split()[:2] == ["one", "False"]


def test_one_server_ends_and_another_goes_on(start):
    with ForkServer(COMMAND) as server:
        with ForkServer(COMMAND) as other:
            assert said(start(other, "one"), 1)
        worker = start(server, "two")
        assert said(worker, 2)[1].split()[:2] == ["two", "True"]
        worker.process.kill()
        assert worker.process.wait() == -signal.SIGKILL


def with_ends_ignored(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        stdout=-1,
        stderr=-1,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )


def test_where_ends_of_children_are_ignored_nothing_is_forked():
    script = (
        "from kitchensync.capture.process.fork_server import ForkServer\n"
        f"with ForkServer({COMMAND!r}) as server:\n"
        "    print(type(server.start(['die'], 2, None)).__name__, server.is_ready())"
    )
    done = with_ends_ignored(script)
    assert done.stdout.split() == ["Popen", "True"], done.stderr
    script = (
        "import signal, sys; from kitchensync.cli import main\n"
        "sys.argv = ['kitchensync', '--help']\n"
        "try: main()\n"
        "finally: print(signal.getsignal(signal.SIGCHLD).name)"
    )
    done = with_ends_ignored(script)
    assert done.stdout.split()[-1] == "SIG_DFL", "our commands learn of their children's ends all the same"


def test_the_server_ends_with_its_parent_and_leaves_nothing(start):
    script = (
        "import os, signal, sys; from kitchensync.capture.process.fork_server import ForkServer\n"
        f"server = ForkServer({COMMAND!r}).__enter__()\n"
        "while not server.is_ready(): pass\n"
        "print(server._server.pid, server.start(['one'], os.open(os.devnull, os.O_WRONLY), None).pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=-1, stderr=-1, text=True, check=False)
    server, forked = map(int, done.stdout.split())
    os.kill(forked, signal.SIGKILL)
    for pid in (server, forked):
        until(lambda: not os.path.exists(f"/proc/{pid}"), f"the end of process {pid}")  # noqa: B023 (called at once)


@pytest.mark.parametrize("is_forked", [True, False])
def test_one_that_keeps_dying_is_given_up(start, monkeypatch, is_forked):
    monkeypatch.setattr(
        supervised_process, "DEATHS_WINDOW_S", 3600.0
    )  # a busy computer takes long to start six
    with ForkServer(COMMAND) as server:
        worker = start(server if is_forked else ForkServer(COMMAND), "die")
        for _ in range(MAX_DEATHS):
            assert worker.process.wait() == 1
            worker.restart()
        worker.process.wait()
        with pytest.raises(ProcessKeepsDying, match="why"):
            worker.restart()
