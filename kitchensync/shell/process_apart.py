"""Read what strangers made in a process of its own, within bounds of memory and time.

A parser written in C may crash, hang or take all memory over a file that somebody made up. The process apart is
started when it is first asked, serves one question after another, and is started again after a file has ended it.

A question is a line of JSON; an answer too, followed by the blobs whose sizes stand in it.
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

from kitchensync.shell.untrusted_json import MOST_BYTES as MOST_SAID
from kitchensync.shell.untrusted_json import BadJson, parse_object

START_S = 60.0
"""A computer under load may take long to start a process; one that takes longer is in trouble."""
PROGRAM = "import sys; from kitchensync.shell.process_apart import main; main(sys.argv[1], int(sys.argv[2]))"
ONE_THREAD = dict.fromkeys(("OPENCV_FOR_THREADS_NUM", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
"""Each thread of a library takes address space of its own."""


@dataclass(frozen=True)
class Bounds:
    """What one question may cost."""

    seconds: float
    most_bytes: int
    "Of address space, the program itself included (about 0.3 GB with NumPy and OpenCV)."
    environment: dict[str, str] = field(default_factory=dict)
    "More variables for the process."


class ChildAnswer(NamedTuple):
    """An answer: what can be said in JSON, and bytes."""

    said: Any
    blobs: Sequence[bytes] = ()


class ReaderFailed(Exception):
    """What was to be read ended the process, or its reader raised; says by what, in words."""


class OutOfTime(ReaderFailed):
    """Reading it takes longer than the time given."""


class OutOfMemory(ReaderFailed):
    """Reading it takes more memory than there is for it."""


class ProcessApart:
    """Asks one function of ours, `module:function`, in the process apart; a context manager, for one thread.

    The function takes what `ask` was given and returns `ChildAnswer`. What it raises comes back as `ReaderFailed`.
    """

    def __init__(self, function: str, bounds: Bounds) -> None:
        self._function, self._bounds = function, bounds
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[ChildAnswer | ReaderFailed | None] = queue.Queue()
        self._listener = threading.Thread()

    def __enter__(self) -> ProcessApart:
        """Return itself; nothing is started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.end()

    def ask(self, *arguments: Any, more_s: float = 0.0) -> ChildAnswer:
        """Ask once; `more_s` is added to the time. Raises ReaderFailed; OSError where the computer is in trouble."""
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
            self._await_start()
        return self._process

    def _await_start(self) -> None:
        try:
            ready = self._answers.get(timeout=START_S)
        except queue.Empty:
            ready = None
        if not isinstance(ready, ChildAnswer):
            self.end()
            raise OSError("the process that reads files of others does not start")

    def end(self) -> None:
        """End the process, where there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        self._listener.join()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what it did not take any more
                pipe.close()


def ask_once(function: str, bounds: Bounds, *arguments: Any) -> ChildAnswer:
    """Ask in a process of its own, that ends with the answer. Raises ReaderFailed, OSError."""
    with ProcessApart(function, bounds) as process:
        return process.ask(*arguments)


def _listen(
    process: subprocess.Popen[bytes], answers: queue.Queue[ChildAnswer | ReaderFailed | None]
) -> None:
    """Hand over every answer, and None at the end."""
    assert process.stdout is not None
    try:
        while line := process.stdout.readline(MOST_SAID):
            answers.put(_heard(line, process.stdout))
    except (BadJson, KeyError, TypeError, EOFError):  # it does not speak as our program does any more
        process.kill()
    answers.put(None)


def _heard(line: bytes, rest: IO[bytes]) -> ChildAnswer | ReaderFailed:
    found = parse_object(line)
    if "memory" in found:
        return OutOfMemory("takes more memory than is given to it")
    if "raised" in found:
        return ReaderFailed(str(found["raised"]))
    blobs = [rest.read(size) for size in found["sizes"]]
    if [len(blob) for blob in blobs] != found["sizes"]:
        raise EOFError
    return ChildAnswer(found["said"], blobs)


def main(function: str, most_bytes: int) -> None:
    """Answer one question after another until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    module, _, name = function.partition(":")
    asked = getattr(importlib.import_module(module), name)
    limit_memory(most_bytes)
    _tell(answers, ChildAnswer("ready"))
    for line in sys.stdin.buffer:
        question = json.loads(line)
        _set_alarm(question["seconds"] + 1.0)  # whoever asked may be gone
        _tell(answers, _answer(asked, question["arguments"]))
        _set_alarm(0.0)


def _answer(asked: Any, arguments: list[Any]) -> ChildAnswer | dict[str, Any]:
    try:
        told: ChildAnswer = asked(*arguments)
    except MemoryError:
        return {"memory": True}
    except Exception as error:  # noqa: BLE001 (a fault of ours too: whoever asked is told)
        return {"raised": f"{type(error).__name__}: {error}"[:200]}
    return told


def _tell(pipe: IO[bytes], told: ChildAnswer | dict[str, Any]) -> None:
    blobs = told.blobs if isinstance(told, ChildAnswer) else ()
    said = (
        {"said": told.said, "sizes": [len(blob) for blob in blobs]} if isinstance(told, ChildAnswer) else told
    )
    pipe.write(json.dumps(said).encode() + b"\n")
    for blob in blobs:
        pipe.write(blob)
    pipe.flush()


def limit_memory(most_bytes: int) -> None:
    """Bound this process's address space, where the system can; it leaves no core file."""
    if sys.platform == "win32":
        return
    import resource

    for kind, most in ((resource.RLIMIT_AS, most_bytes), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(
            OSError, ValueError
        ):  # macOS bounds no address space; the time stays bounded
            resource.setrlimit(kind, (most, most))


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
