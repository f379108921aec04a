"""A queue of work, done in order by a thread that lives only while something is queued."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class OneWorker(Generic[T]):
    """Does queued work in order; `lock` guards what the work shares with callers."""

    def __init__(self, name: str, work: Callable[[T], None]) -> None:
        self.lock = threading.RLock()
        self.end = threading.Event()
        "Set when closed."
        self._name, self._work = name, work
        self._waiting: deque[T] = deque()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[str] | None = None

    def add(self, item: T) -> None:
        """Queue an item, unless closed."""
        with self.lock:
            if self.end.is_set():
                return
            self._waiting.append(item)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def forget(self) -> list[T]:
        """Drop queued items and return them."""
        with self.lock:
            waiting = list(self._waiting)
            self._waiting.clear()
        return waiting

    @contextlib.contextmanager
    def running(self, command: list[str], stdout: int, stderr: int) -> Iterator[subprocess.Popen[str]]:
        """Run the process that does the work; `close` ends it. Raises OSError."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
        with self.lock:
            self._process = process
            # `close` may have looked for the process before it was set here.
            if self.end.is_set():
                process.terminate()
        try:
            yield process
        finally:
            with self.lock:
                self._process = None

    def close(self, wait_s: float | None = None) -> None:
        """Drop queued items, end the process, and wait for the work, at most `wait_s` seconds if given."""
        self.end.set()
        with self.lock:
            process, thread = self._process, self._thread
        if process is not None:
            process.terminate()
        self.forget()
        if thread is not None:
            thread.join(wait_s)

    def _run(self) -> None:
        while True:
            with self.lock:
                if not self._waiting or self.end.is_set():
                    self._thread = None
                    return
                item = self._waiting.popleft()
            self._work(item)
