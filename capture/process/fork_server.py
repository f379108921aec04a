"""Processes forked from one that has imported everything: most of what starting a process takes is done once.

A process is forked twice, and the one between ends at once: what remains becomes a child of the parent
(PR_SET_CHILD_SUBREAPER), which waits for it and signals it like any other. It goes on when the server is killed.
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
from collections.abc import Iterator, Sequence
from functools import partial

from kitchensync.capture.process.worker_process import LIBC, MEMORY_KEPT, end_with_parent

_PR_SET_CHILD_SUBREAPER = 36
MOST_BYTES = 1 << 16
FIRST_LIMIT_S = 60.0
"""A busy computer takes long to import everything."""
LIMIT_S = 3.0
READY = b"ready"
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
    """Starts a server and asks it for processes; without one (elsewhere than on Linux) they are started anew."""

    def __init__(self, command: Sequence[str]) -> None:
        """`command` starts the server; more words after it start a process by itself."""
        self._command = list(command)
        self._is_ready = False
        self._end_s = 0.0
        self._server: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def __enter__(self) -> ForkServer:
        """Start the server, which then imports everything; nobody waits for that here."""
        if LIBC is None or signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            return self  # where it is ignored nobody learns how a child has ended
        self._end_s = time.monotonic() + FIRST_LIMIT_S
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.suppress(OSError):  # what hinders it is told when a process is needed
            self._server = subprocess.Popen(
                self._command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # what cannot be imported is told by the processes that start anew
                start_new_session=True,
                env=MEMORY_KEPT | os.environ,
                preexec_fn=partial(end_with_parent, signal.SIGKILL),  # noqa: PLW1509 (one system call)
            )
        return self

    def __exit__(self, *_: object) -> None:
        """End the server; who was forked is ended by whoever asked for it."""
        self._leave()

    def is_ready(self) -> bool:
        """Return whether a process can be started now: the server has imported everything, or there is none."""
        if self._socket is not None and not self._is_ready:
            self._socket.setblocking(False)
            try:
                self._is_ready = bool(self._socket.recv(MOST_BYTES))
            except BlockingIOError:
                if time.monotonic() < self._end_s:
                    return False
            if not self._is_ready:
                self._leave()
        return True

    def start(
        self, words: Sequence[str], log: int, hold: int | None
    ) -> ForkedProcess | subprocess.Popen[bytes]:
        """Start a process in a session of its own, so that Ctrl-C reaches only us; `hold` stays open in it."""
        kept = () if hold is None else (hold,)
        pid = self._fork(words, (log, *kept)) if self._is_ready else None
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
                socket.send_fds(self._socket, [json.dumps(words).encode()], handles)
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
                if (late := self._socket.recv(MOST_BYTES)) not in (b"", READY):
                    os.kill(int(late), signal.SIGKILL)
        self._socket = self._server = None


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


def serve() -> list[str]:
    """Fork a process whenever one is asked for on stdin: return its words there, [] in the server at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent alone
    gc.freeze()  # what was imported stays, and is shared
    asked, parent = socket.socket(fileno=sys.stdin.fileno()), os.getppid()
    asked.send(READY)
    while True:
        message, handles, _, _ = socket.recv_fds(asked, MOST_BYTES, 2)
        if not message:
            return []
        if between := os.fork():
            if os.waitpid(between, 0)[1]:
                return []  # it could not fork: what is asked for is started anew
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
        return [str(word) for word in json.loads(message)]


def _begin(asked: socket.socket, log: int) -> None:
    """Say who we are; leave everything of the server."""
    try:
        asked.send(str(os.getpid()).encode())
    except OSError:
        os._exit(1)  # nobody waits for us any more
    os.setsid()
    asked.detach()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for handle, standard in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(handle, standard)
    os.close(nothing)
    os.close(log)
