"""Supervised child processes, forked from a server that has imported everything or started by `subprocess`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from forking import BEGIN, run_script
from waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="a fork becomes our child on Linux only"),
]


@pytest.mark.parametrize("is_forked", [True, False])
def test_a_process_is_a_child_in_its_own_session_and_shares_the_lock(tmp_path, is_forked):
    script = f"""
import os, signal
with ForkServer(COMMAND, work) as server:
    reader, hold = os.pipe()
    worker = start(server if {is_forked} else ForkServer(COMMAND), "an argument", hold=hold)
    os.close(hold)
    os.set_blocking(reader, False)
    expected = f"an argument {is_forked} True {{os.getpid()}} b''"
    assert log_lines(1) == [expected], log_lines(1)
    assert isinstance(worker.process, ForkedProcess) == {is_forked}
    try:
        os.read(reader, 1)
    except BlockingIOError:
        pass  # another process holds the other end
    else:
        raise AssertionError
    assert worker.returncode() is None
    worker.process.kill()
    assert worker.process.wait() == worker.returncode() == -signal.SIGKILL
    assert os.read(reader, 1) == b"", "the server does not hold it"
    worker.hold = None
    worker.restart()
    assert log_lines(2)[1] == expected
    worker.end()
    assert worker.process.wait() == -signal.SIGTERM
"""
    run_script(script, tmp_path)


@pytest.mark.parametrize("is_forked", [True, False])
def test_a_process_gets_the_current_umask(tmp_path, is_forked):
    script = f"""
import os
with ForkServer(COMMAND, work) as server:
    os.umask(0o027)
    worker = start(server if {is_forked} else ForkServer(COMMAND), "one")
    log_lines(1)
    status = open(f"/proc/{{worker.process.pid}}/status").read()
    assert "Umask:\\t0027" in status, status
    worker.kill()
"""
    run_script(script, tmp_path)


def test_a_fork_inherits_none_of_the_parents_own_handles(tmp_path):
    script = """
import os
ours, _ = os.pipe()
with ForkServer(COMMAND, work) as server:
    later, _ = os.pipe()
    worker = start(server, "one")
    log_lines(1)
    for pid, least in ((server._server.pid, 4), (worker.process.pid, 3)):
        handles = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
        assert len(handles) == least, handles
        assert not any(name.startswith("pipe:") for name in handles), handles
    worker.kill()
"""
    run_script(script, tmp_path)


@pytest.mark.parametrize("closed", ["0", "1", "2", "0, 1", "0, 1, 2"])
def test_closed_standard_handles_do_no_harm(tmp_path, closed):
    script = f"""
import os, sys
for handle in ({closed},):
    os.close(handle)
    if handle:
        setattr(sys, ["stdout", "stderr"][handle - 1], None)
with ForkServer(COMMAND, work) as server:
    dead, ended, worker = start(server, "die"), start(server, "end"), start(server, "one")
    assert [dead.process.wait(), ended.process.wait()] == [1, 0]
    until(lambda: {{"why", "True"}} <= set(open("log").read().split()), "the output of both")
    worker.kill()
"""
    run_script(script, tmp_path)


def test_ctrl_c_before_the_server_is_detached_does_not_reach_it(tmp_path):
    script = """
import os, signal
end_with_parent = fork_server.end_with_parent
def interrupted(*number):
    os.kill(os.getpid(), signal.SIGINT)
    end_with_parent(*number)
fork_server.end_with_parent = interrupted
with ForkServer(COMMAND, work) as server:
    worker = start(server, "one")
    assert log_lines(1)[0].split()[:2] == ["one", "True"]
    worker.kill()
"""
    run_script(script, tmp_path)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_forked_processes_outlive_the_server_and_the_next_uses_subprocess(tmp_path, number):
    script = f"""
import os
with ForkServer(COMMAND, work) as server:
    before = children()
    workers = [start(server, "one")]
    log_lines(1)
    fork_server.LIMIT_S = 0.2
    os.kill(server._server.pid, {int(number)})
    workers.append(start(server, "two"))
    assert log_lines(2)[1].split()[:2] == ["two", "False"]
    assert workers[0].returncode() is None
    assert len(children() - before) == 2, "nothing was forked in addition"
    for worker in workers:
        worker.kill()
"""
    run_script(script, tmp_path)


CANNOT_FORK = {
    "threads": "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
    "no process left": """
import os
def fails(): raise BlockingIOError
os.fork = fails
""",
    "no process left later": """
import os
fork_server.LIMIT_S = 3600.0  # it answers immediately
fork, parent = os.fork, os.getpid()
os.fork = lambda: fork() if parent in (os.getpid(), os.getppid()) else 1 / 0
""",
    "not our child": """
import contextlib
fork_server._adopting = contextlib.nullcontext
fork_server.LIMIT_S = 0.2
""",
}


@pytest.mark.parametrize("why", CANNOT_FORK)
def test_a_process_is_started_with_subprocess_if_forking_is_impossible(tmp_path, why):
    script = f"""
{CANNOT_FORK[why]}
with ForkServer(COMMAND, work) as server:
    worker = start(server, "one")
    assert log_lines(1)[0].split()[:2] == ["one", "False"], log_lines(1)
    worker.kill()
"""
    run_script(script, tmp_path)


def test_two_servers_are_independent(tmp_path):
    script = """
import signal
with ForkServer(COMMAND, work) as server:
    with ForkServer(COMMAND, work) as other:
        first = start(other, "one")
        log_lines(1)
    worker = start(server, "two")
    assert log_lines(2)[1].split()[:2] == ["two", "True"]
    worker.process.kill()
    assert worker.process.wait() == -signal.SIGKILL
    first.kill()
"""
    run_script(script, tmp_path)


def ignore_ends() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def test_nothing_is_forked_while_sigchld_is_ignored(tmp_path):
    script = """
with ForkServer(COMMAND, work) as server:
    print(type(server.start(["die"], 2, None)).__name__)
"""
    assert run_script(script, tmp_path, preexec_fn=ignore_ends).split() == ["Popen"]
    script = """
import signal, sys
from kitchensync.cli import main
sys.argv = ["kitchensync", "--help"]
try:
    main()
finally:
    print(signal.getsignal(signal.SIGCHLD).name)
"""
    output = run_script(script, tmp_path, preexec_fn=ignore_ends)
    assert output.split()[-1] == "SIG_DFL", "our commands get the exit codes of their children anyway"


def test_the_server_ends_with_its_parent_and_leaves_no_process(tmp_path):
    script = """
import os, signal
server = ForkServer(COMMAND, work).__enter__()
print(server._server.pid, server.start(["one"], os.open(os.devnull, os.O_WRONLY), None).pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script], cwd=tmp_path, stdout=-1, stderr=-1, text=True, check=False
    )
    server, forked = map(int, done.stdout.split())
    os.kill(forked, signal.SIGKILL)
    for pid in (server, forked):
        until(lambda: not os.path.exists(f"/proc/{pid}"), f"the end of process {pid}")  # noqa: B023 (called at once)


@pytest.mark.parametrize("is_forked", [True, False])
def test_a_process_that_keeps_dying_is_given_up(tmp_path, is_forked):
    script = f"""
from kitchensync.capture.errors import ProcessKeepsDying
from kitchensync.capture.process import supervised_process
supervised_process.DEATHS_WINDOW_S = 3600.0  # starting six takes long on a busy computer
with ForkServer(COMMAND, work) as server:
    worker = start(server if {is_forked} else ForkServer(COMMAND), "die")
    for _ in range(supervised_process.MAX_DEATHS):
        assert worker.process.wait() == 1
        worker.restart()
    worker.process.wait()
    try:
        worker.restart()
    except ProcessKeepsDying as error:
        print(error)
"""
    assert "why" in run_script(script, tmp_path)
