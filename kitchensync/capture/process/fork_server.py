"""Fork processes from a server that has imported everything already, which saves most of their start-up time.

The server is forked from the recorder after its imports. It forks each process twice, and the process in between
exits immediately: the new process becomes a child of the recorder (PR_SET_CHILD_SUBREAPER), which can wait for it and
signal it like any other child. It survives the server.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NoReturn

from setproctitle import setproctitle

from kitchensync.capture.process.worker_process import LIBC, MEMORY_KEPT, end_with_parent, keep_memory

_PR_SET_CHILD_SUBREAPER = 36  # from linux/prctl.h
MAX_MESSAGE_BYTES = 1 << 16  # SOCK_SEQPACKET cuts off what one read has no room for
LIMIT_S = 3.0  # a server that hangs is killed then, and `subprocess` starts the process
POLL_S = 0.0005  # delays every new process; the one in between exits at once


class ForkedProcess:
    """A child of this process that the server forked; has the needed part of `subprocess.Popen`'s interface."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int:
        """Wait for its end; return the exit code."""
        code = self._wait(0)
        assert code is not None
        return code

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:  # its pid is not reused before it has been waited for
            os.kill(self.pid, number)

    def _wait(self, options: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                pid, status = self.pid, signal.SIGKILL  # waited for elsewhere: its exit code is lost
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class ForkServer:
    """Starts processes by forking; if that is not possible, with `subprocess`."""

    def __init__(self, command: Sequence[str], work: Callable[[Sequence[str]], None] | None = None) -> None:
        """Forked processes call `work` with their arguments; others run `command` with the arguments appended."""
        self._command, self._work = list(command), work
        self._server: ForkedProcess | None = None
        self._socket: socket.socket | None = None

    def __enter__(self) -> ForkServer:
        """Fork the server, before this process has other threads or open files and sockets."""
        # While SIGCHLD is ignored, exit codes of children are lost.
        has_sigchld = signal.getsignal(signal.SIGCHLD) != signal.SIG_IGN
        if self._work is None or LIBC is None or not has_sigchld or threading.active_count() > 1:
            return self
        _open_standard_handles()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        # Blocked until the server ignores it, which is its first step.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            pid = os.fork()
            if not pid:
                _run_and_exit(partial(_serve, theirs, parent, self._work))
        except OSError:
            ours.close()
            return self
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._server, self._socket = ForkedProcess(pid), ours
        return self

    def __exit__(self, *_: object) -> None:
        """End the server, not the processes that it forked."""
        self._stop()

    def start(
        self, arguments: Sequence[str], log: int, hold: int | None
    ) -> ForkedProcess | subprocess.Popen[bytes]:
        """Start a process in its own session, so that Ctrl-C does not reach it; it inherits the handle `hold`."""
        inherited = () if hold is None else (hold,)
        pid = self._fork(arguments, (log, *inherited))
        if pid is not None:
            return ForkedProcess(pid)
        return subprocess.Popen(
            [*self._command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=MEMORY_KEPT | os.environ,
            pass_fds=inherited,
        )

    def _fork(self, arguments: Sequence[str], handles: Sequence[int]) -> int | None:
        if self._socket is None:
            return None
        self._socket.settimeout(LIMIT_S)
        try:
            with _adopting(), open("/proc/self/status", encoding="utf-8") as status:
                umask = next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))
                request = {"arguments": list(arguments), "umask": umask}
                socket.send_fds(self._socket, [json.dumps(request).encode()], handles)
                answer = self._socket.recv(MAX_MESSAGE_BYTES)
        except OSError:
            answer = b""
        if not answer:  # the server was killed or hangs
            self._stop()
            return None
        return int(answer)

    def _stop(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        if self._socket is not None:
            with self._socket, contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # ends a forked process that has not reported its pid
                self._socket.setblocking(False)
                if late := self._socket.recv(MAX_MESSAGE_BYTES):
                    os.kill(int(late), signal.SIGKILL)
        self._socket = self._server = None


_ADOPTION_LOCK = threading.Lock()


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Become the parent of orphaned descendants, only during a fork: others would have to be waited for too."""
    assert LIBC is not None
    with _ADOPTION_LOCK:
        LIBC.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
        try:
            yield
        finally:
            LIBC.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(0))


def _open_standard_handles() -> None:
    """Open those of stdin, stdout and stderr that are closed, so that no other file gets their numbers."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)


def _run_and_exit(task: Callable[[], None]) -> NoReturn:
    """Run a task, then exit without returning into the code that forked this process."""
    code = 1
    try:
        try:
            task()
            code = 0
        except BaseException:  # noqa: BLE001 (printed as the interpreter would)
            traceback.print_exc()
        sys.stdout.flush()
    finally:
        os._exit(code)


def _serve(channel: socket.socket, parent: int, work: Callable[[Sequence[str]], None]) -> None:
    """Fork a process that calls `work` for each request, until the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent reacts to Ctrl-C
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        return
    _detach(channel)
    while True:
        message, handles, _, _ = socket.recv_fds(channel, MAX_MESSAGE_BYTES, 2)
        if not message:
            return
        if between := os.fork():
            if os.waitpid(between, 0)[1]:
                return  # the fork failed: the parent starts the process with `subprocess`
            for handle in handles:
                os.close(handle)
            continue
        between = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == between:
            time.sleep(POLL_S)
        if os.getppid() != parent:
            os._exit(1)  # the parent has ended or does not wait any more
        _become_worker(channel, handles[0])
        request = json.loads(message)
        os.umask(request["umask"])
        work(request["arguments"])
        return


def _detach(channel: socket.socket) -> None:
    """Close everything inherited from the parent, except the imported modules."""
    setproctitle("kitchensync fork server")
    os.setsid()
    for handle in map(int, os.listdir("/proc/self/fd")):
        if handle not in (0, 1, 2, channel.fileno()):
            with contextlib.suppress(OSError):  # the handle of `listdir` is closed already
                os.close(handle)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    keep_memory()
    gc.freeze()  # imported modules are never collected, so their pages stay shared


def _become_worker(channel: socket.socket, log: int) -> None:
    """Report the pid to the parent; replace the server's session, socket and output."""
    try:
        channel.send(str(os.getpid()).encode())
    except OSError:
        os._exit(1)  # the parent does not wait any more
    os.setsid()
    channel.close()
    for standard in (1, 2):
        os.dup2(log, standard)
    os.close(log)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
