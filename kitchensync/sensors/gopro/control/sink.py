"""Where downloaded bytes go: hashed and written on threads of their own, so that the network waits for neither."""

from __future__ import annotations

import hashlib
import os
import queue
import threading
from typing import BinaryIO, Protocol

BUFFER_BYTES = 256 << 10
"""Small enough that a block is still in the processor's cache when it is hashed and written."""
BUFFERS = 32
SYNC_BYTES = 64 << 20


class Observer(Protocol):
    """Something else that wants to see every byte once and in order, while it passes."""

    def update(self, block: memoryview, /) -> None:
        """Take the next bytes; they are only lent."""
        ...

    def restart(self) -> None:
        """Forget everything: the file begins anew."""
        ...


class Sink:
    """Appends to a file and to a hash, in order; a context manager for one thread, which fills its buffers.

    A few buffers go round: filled from the network, hashed, written, free again. Nothing is allocated or copied on
    the way, and what they hold is still in the cache at each step.
    """

    def __init__(self, file: BinaryIO, observer: Observer | None = None) -> None:
        """`file` is open for appending, unbuffered."""
        self.hash = hashlib.sha256()
        self._file = file
        self._observer = observer
        self._error: OSError | None = None
        self._free: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
        self._to_hash: queue.SimpleQueue[tuple[memoryview, int] | None] = queue.SimpleQueue()
        self._to_write: queue.SimpleQueue[tuple[memoryview, int] | None] = queue.SimpleQueue()
        self._sync_wanted = threading.Event()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=f"download {work.__name__}", daemon=True)
            for work in (self._hash, self._write, self._sync)
        ]
        for _ in range(BUFFERS):
            self._free.put(memoryview(bytearray(BUFFER_BYTES)))

    def __enter__(self) -> Sink:
        """Start the threads."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Hash and write what was put, and end the threads."""
        self._to_hash.put(None)
        self._ended.set()
        self._sync_wanted.set()
        for thread in self._threads:
            thread.join()
        if exc_info[0] is None:
            self._check()

    def buffer(self) -> memoryview:
        """Lend a free buffer, to be given back by `put`; raises the OSError of a block that could not be written."""
        self._check()
        return self._free.get()

    def put(self, buffer: memoryview, count: int) -> None:
        """Take back a buffer whose first `count` bytes are new."""
        self._to_hash.put((buffer, count))

    def drain(self) -> None:
        """Wait until all that was put is hashed and written; raises the OSError of a block that was not."""
        held = [self._free.get() for _ in range(BUFFERS)]
        for buffer in held:
            self._free.put(buffer)
        self._check()

    def observe(self, block: memoryview) -> None:
        """Hash bytes that lie in the file already."""
        self.hash.update(block)
        if self._observer is not None:
            self._observer.update(block)

    def restart(self) -> None:
        """Forget everything: the file is empty again."""
        self.drain()
        self._file.truncate(0)
        self.hash = hashlib.sha256()
        if self._observer is not None:
            self._observer.restart()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _hash(self) -> None:
        while (item := self._to_hash.get()) is not None:
            buffer, count = item
            self.observe(buffer[:count])
            self._to_write.put(item)
        self._to_write.put(None)

    def _write(self) -> None:
        unsynced = 0
        while (item := self._to_write.get()) is not None:
            buffer, count = item
            try:
                if self._error is None:
                    self._write_all(buffer[:count])
            except OSError as error:
                self._error = error
            finally:
                self._free.put(buffer)
            unsynced += count
            if unsynced >= SYNC_BYTES:
                unsynced = 0
                self._sync_wanted.set()

    def _write_all(self, block: memoryview) -> None:
        while block:
            block = block[self._file.write(block) :]

    def _sync(self) -> None:
        """Let the disk begin early: the last sync then has little left to do."""
        while True:
            self._sync_wanted.wait()
            self._sync_wanted.clear()
            if self._ended.is_set():
                return
            try:
                os.fdatasync(self._file.fileno())
            except OSError as error:
                self._error = error
