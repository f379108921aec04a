"""Read untrusted files in a separate process with limits on memory and time.

A parser written in C may crash, hang or take all memory on a hostile file. The process is started at the first
request, serves one request after another, and is restarted after a file has ended it.

A request is a line of JSON; so is an answer, followed by blobs whose sizes it lists.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

from kitchensync.shell.untrusted_json import MOST_BYTES, BadJson, parse_object

START_S = 60.0
"""Time limit for starting the process, seconds: long, for a computer under load."""
PROGRAM = "import sys; from kitchensync.shell.process_apart import main; main(sys.argv[1], int(sys.argv[2]))"
ONE_THREAD = dict.fromkeys(("OPENCV_FOR_THREADS_NUM", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""Environment that limits libraries to one thread, since each thread takes address space."""


@dataclass(frozen=True)
class Bounds:
    """Limits of one request."""

    seconds: float
    most_bytes: int
    "Address space, including the program itself (about 0.3 GB with NumPy and OpenCV)."
    environment: dict[str, str] = field(default_factory=dict)
    "Further environment variables for the process."


class ChildAnswer(NamedTuple):
    """An answer: a JSON value, and blobs."""

    value: Any
    blobs: Sequence[bytes] = ()


class ReaderFailed(Exception):
    """A file ended the process, or its reader raised; the text tells how."""


class OutOfTime(ReaderFailed):
    """Reading took longer than allowed."""


class OutOfMemory(ReaderFailed):
    """Reading took more memory than allowed."""


class ProcessApart:
    """Calls one function, `module:function`, in the separate process; a context manager, for one thread.

    The function takes the arguments of `ask` and returns `ChildAnswer`. Its exceptions are raised as `ReaderFailed`.
    """

    def __init__(self, function: str, bounds: Bounds) -> None:
        self._function, self._bounds = function, bounds
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[ChildAnswer | ReaderFailed | None] = queue.Queue()
        self._listener = threading.Thread()

    def __enter__(self) -> ProcessApart:
        """Return itself; the process starts with the first request."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.end()

    def ask(self, *arguments: Any, more_s: float = 0.0) -> ChildAnswer:
        """Call the function; `more_s` extends the time limit. Raises ReaderFailed; OSError if the system fails."""
        process, limit_s = self._running(), self._bounds.seconds + more_s
        question = json.dumps({"arguments": arguments, "seconds": limit_s}).encode() + b"\n"
        assert process.stdin is not None
        try:
            process.stdin.write(question)
            process.stdin.flush()
            answer = self._answers.get(timeout=limit_s)
        except queue.Empty:
            answer = OutOfTime(f"takes longer than {limit_s:.0f} s")
        except BrokenPipeError:
            answer = None
        if answer is None:
            raise self._why_ended()
        if isinstance(answer, ReaderFailed):
            self.end()
            raise answer
        return answer

    def _why_ended(self) -> Exception:
        process = self._process
        assert process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        code = process.poll()
        self.end()
        if code == -signal.SIGKILL:
            return OSError("the process that reads it was killed; is there memory left?")
        if code == -getattr(signal, "SIGALRM", 0):
            return OutOfTime("takes too long")
        return ReaderFailed("crashes the program that reads it")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-P", "-c", PROGRAM, self._function]
            self._process = subprocess.Popen(
                [*command, str(self._bounds.most_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD, **self._bounds.environment},
            )
            self._answers = queue.Queue()
            self._listener = threading.Thread(target=_listen, args=(self._process, self._answers))
            self._listener.start()
            try:
                ready = self._answers.get(timeout=START_S)
            except queue.Empty:
                ready = None
            if not isinstance(ready, ChildAnswer):
                self.end()
                raise OSError("the process that reads untrusted files does not start")
        return self._process

    def end(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        self._listener.join()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # flushing data that the process did not read
                pipe.close()


def ask_once(function: str, bounds: Bounds, *arguments: Any) -> ChildAnswer:
    """Call a function in a process that ends with the answer. Raises ReaderFailed, OSError."""
    with ProcessApart(function, bounds) as process:
        return process.ask(*arguments)


def _listen(
    process: subprocess.Popen[bytes], answers: queue.Queue[ChildAnswer | ReaderFailed | None]
) -> None:
    """Put every answer into the queue, and None at the end."""
    assert process.stdout is not None
    try:
        while line := process.stdout.readline(MOST_BYTES):
            answers.put(_received(line, process.stdout))
    except (BadJson, KeyError, TypeError, EOFError):  # a hostile file has taken over the process
        process.kill()
    answers.put(None)


def _received(line: bytes, rest: IO[bytes]) -> ChildAnswer | ReaderFailed:
    message = parse_object(line)
    if "memory" in message:
        return OutOfMemory("takes more memory than is given to it")
    if "raised" in message:
        return ReaderFailed(str(message["raised"]))
    blobs = [rest.read(size) for size in message["sizes"]]
    if [len(blob) for blob in blobs] != message["sizes"]:
        raise EOFError
    return ChildAnswer(message["value"], blobs)


def main(function: str, most_bytes: int) -> None:
    """Serve requests from stdin until it is closed."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that output of a library is not taken for an answer
    module, _, name = function.partition(":")
    read = getattr(importlib.import_module(module), name)
    limit_memory(most_bytes)
    _send(pipe, ChildAnswer("ready"))
    for line in sys.stdin.buffer:
        question = json.loads(line)
        _set_alarm(question["seconds"] + 1.0)  # in case the parent is gone
        try:
            answer: ChildAnswer | dict[str, Any] = read(*question["arguments"])
        except MemoryError:
            answer = {"memory": True}
        except Exception as error:  # noqa: BLE001 (the parent reports every error)
            answer = {"raised": f"{type(error).__name__}: {error}"[:200]}
        _send(pipe, answer)
        _set_alarm(0.0)


def _send(pipe: IO[bytes], answer: ChildAnswer | dict[str, Any]) -> None:
    if isinstance(answer, ChildAnswer):
        message: dict[str, Any] = {"value": answer.value, "sizes": [len(blob) for blob in answer.blobs]}
        blobs = answer.blobs
    else:
        message, blobs = answer, ()
    pipe.write(json.dumps(message).encode() + b"\n")
    for blob in blobs:
        pipe.write(blob)
    pipe.flush()


def limit_memory(most_bytes: int) -> None:
    """Limit this process's address space where the system can, and disable core files."""
    if sys.platform == "win32":
        return
    import resource

    for kind, most in ((resource.RLIMIT_AS, most_bytes), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(
            OSError, ValueError
        ):  # macOS cannot limit address space; the time limit remains
            resource.setrlimit(kind, (most, most))


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
