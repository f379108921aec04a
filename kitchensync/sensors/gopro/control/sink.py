"""Sink of downloaded bytes: hashes and writes them on separate threads, so that the network does not wait."""

from __future__ import annotations

import hashlib
import os
import queue
import threading
from typing import BinaryIO, Protocol

BUFFER_BYTES = 256 << 10
"""Size of a buffer: small enough that it is still in the processor's cache when it is hashed and written."""
BUFFERS = 32  # a slow write stops the network only after 8 MiB
SYNC_BYTES = 64 << 20  # bounds what the sync at the end of the download has left to write


class Observer(Protocol):
    """Receives every byte once and in order during the download."""

    def update(self, block: memoryview, /) -> None:
        """Process the next bytes; the buffer is reused afterwards."""
        ...

    def restart(self) -> None:
        """Discard everything: the file starts again from its beginning."""
        ...


class Sink:
    """Appends to a file and to a hash, in order; a context manager for one thread, which fills its buffers.

    A few buffers circulate: filled from the network, hashed, written, free again. Nothing is allocated or copied, and
    the data of a buffer are still in the processor's cache at each step.
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
        """Hash and write the remaining buffers, and end the threads."""
        self._to_hash.put(None)
        self._ended.set()
        self._sync_wanted.set()
        for thread in self._threads:
            thread.join()
        if exc_info[0] is None:
            self._check()

    def buffer(self) -> memoryview:
        """Return a free buffer, to be returned by `put`. Raises the OSError of an earlier write."""
        self._check()
        return self._free.get()

    def put(self, buffer: memoryview, count: int) -> None:
        """Return a buffer with `count` new bytes."""
        self._to_hash.put((buffer, count))

    def drain(self) -> None:
        """Wait until all buffers are hashed and written. Raises the OSError of an earlier write."""
        buffers = [self._free.get() for _ in range(BUFFERS)]
        for buffer in buffers:
            self._free.put(buffer)
        self._check()

    def observe(self, block: memoryview) -> None:
        """Hash bytes that are in the file already."""
        self.hash.update(block)
        if self._observer is not None:
            self._observer.update(block)

    def restart(self) -> None:
        """Empty the file, and start the hash again."""
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
                    block = buffer[:count]
                    while block:
                        block = block[self._file.write(block) :]
            except OSError as error:
                self._error = error
            finally:
                self._free.put(buffer)
            unsynced += count
            if unsynced >= SYNC_BYTES:
                unsynced = 0
                self._sync_wanted.set()

    def _sync(self) -> None:
        """Sync the file during the download, so that the last sync is short."""
        while True:
            self._sync_wanted.wait()
            self._sync_wanted.clear()
            if self._ended.is_set():
                return
            try:
                os.fdatasync(self._file.fileno())
            except OSError as error:
                self._error = error
