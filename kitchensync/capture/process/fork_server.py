"""Processes forked from one that has imported everything: most of what starting a process takes is done once.

That one is forked from the recorder as soon as this has imported what it needs. A process is forked twice, and
the one between ends at once: what remains becomes a child of the recorder (PR_SET_CHILD_SUBREAPER), which waits for
it and signals it like any other. It goes on when the server is killed.
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

_PR_SET_CHILD_SUBREAPER = 36
MOST_BYTES = 1 << 16
LIMIT_S = 3.0
LOOK_S = 0.0005


class ForkedProcess:
    """A child of this process that a server forked: what is needed of `subprocess.Popen`."""

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
        if self.poll() is None:  # until it has been waited for nobody else gets its number
            os.kill(self.pid, number)

    def _wait(self, how: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, how)
            except ChildProcessError:
                pid, status = self.pid, signal.SIGKILL  # somebody else waited for it: how it ended is lost
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class ForkServer:
    """Forks itself off this process, then processes off itself; where it cannot, they are started anew."""

    def __init__(self, command: Sequence[str], work: Callable[[Sequence[str]], None] | None = None) -> None:
        """`work` is done, with its words, by what is forked; `command` and the words start a process anew."""
        self._command, self._work = list(command), work
        self._server: ForkedProcess | None = None
        self._socket: socket.socket | None = None

    def __enter__(self) -> ForkServer:
        """Fork the server: before this process has other threads, and files or sockets that are its alone."""
        # Where SIGCHLD is ignored nobody learns how a child has ended.
        is_told = signal.getsignal(signal.SIGCHLD) != signal.SIG_IGN
        if self._work is None or LIBC is None or not is_told or threading.active_count() > 1:
            return self
        _open_standard_handles()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            pid = os.fork()
            if not pid:
                _leaving(partial(_serve, theirs, parent, self._work))
        except OSError:
            ours.close()
            return self
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._server, self._socket = ForkedProcess(pid), ours
        return self

    def __exit__(self, *_: object) -> None:
        """End the server; who was forked is ended by whoever asked for it."""
        self._leave()

    def start(
        self, words: Sequence[str], log: int, hold: int | None
    ) -> ForkedProcess | subprocess.Popen[bytes]:
        """Start a process in a session of its own, so that Ctrl-C reaches only us; `hold` stays open in it."""
        kept = () if hold is None else (hold,)
        pid = self._fork(words, (log, *kept))
        if pid is not None:
            return ForkedProcess(pid)
        return subprocess.Popen(
            [*self._command, *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=MEMORY_KEPT | os.environ,
            pass_fds=kept,
        )

    def _fork(self, words: Sequence[str], handles: Sequence[int]) -> int | None:
        if self._socket is None:
            return None
        self._socket.settimeout(LIMIT_S)
        try:
            with _adopting():
                asked = {"words": list(words), "umask": _umask()}
                socket.send_fds(self._socket, [json.dumps(asked).encode()], handles)
                told = self._socket.recv(MOST_BYTES)
        except OSError:
            told = b""
        if not told:  # it was killed, or hangs
            self._leave()
            return None
        return int(told)

    def _leave(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        if self._socket is not None:
            with self._socket, contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # who was forked and has not said so ends
                self._socket.setblocking(False)
                if late := self._socket.recv(MOST_BYTES):
                    os.kill(int(late), signal.SIGKILL)
        self._socket = self._server = None


def _umask() -> int:
    """Return the umask of this process: what is started anew would inherit it."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))


_ONE_ADOPTS = threading.Lock()


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Become the parent of orphans below us; not for longer than a fork takes, or we would have to wait for all."""
    assert LIBC is not None
    with _ONE_ADOPTS:
        LIBC.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
        try:
            yield
        finally:
            LIBC.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(0))


def _open_standard_handles() -> None:
    """Open what somebody closed of stdin, stdout and stderr: nothing else may get their numbers."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)


def _leaving(task: Callable[[], None]) -> NoReturn:
    """Do a task, then leave for good: what the forked process was about to do is not ours."""
    code = 1
    try:
        try:
            task()
            code = 0
        except BaseException:  # noqa: BLE001 (told as an interpreter tells it)
            traceback.print_exc()
        sys.stdout.flush()
    finally:
        os._exit(code)


def _serve(asked: socket.socket, parent: int, work: Callable[[Sequence[str]], None]) -> None:
    """Fork a process whenever one is asked for, until the parent has gone; `work` is done in each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent alone
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        return
    _set_apart(asked)
    while True:
        message, handles, _, _ = socket.recv_fds(asked, MOST_BYTES, 2)
        if not message:
            return
        if between := os.fork():
            if os.waitpid(between, 0)[1]:
                return  # it could not fork: what is asked for is started anew
            for handle in handles:
                os.close(handle)
            continue
        between = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == between:
            time.sleep(LOOK_S)
        if os.getppid() != parent:
            os._exit(1)  # it has given up waiting for us, or is gone
        _begin(asked, handles[0])
        told = json.loads(message)
        os.umask(told["umask"])
        work(told["words"])
        return


def _set_apart(asked: socket.socket) -> None:
    """Give back what a process has of the one it was forked from, but for what it has imported."""
    setproctitle("kitchensync fork server")
    os.setsid()
    for handle in map(int, os.listdir("/proc/self/fd")):
        if handle not in (0, 1, 2, asked.fileno()):
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.close(handle)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)
    keep_memory()
    gc.freeze()  # what was imported stays, and is shared


def _begin(asked: socket.socket, log: int) -> None:
    """Say who we are; leave everything of the server."""
    try:
        asked.send(str(os.getpid()).encode())
    except OSError:
        os._exit(1)  # nobody waits for us any more
    os.setsid()
    asked.close()
    for standard in (1, 2):
        os.dup2(log, standard)
    os.close(log)
    sys.stdout, sys.stderr = (os.fdopen(one, "w", buffering=1, closefd=False) for one in (1, 2))
