"""Where downloaded bytes go: hashed and written on threads of their own, so that the network waits for neither."""

from __future__ import annotations

import hashlib
import os
import queue
import threading
from typing import BinaryIO

QUEUED_BLOCKS = 64
SYNC_BYTES = 64 << 20


class Sink:
    """Appends blocks to a file and to a hash, in order; a context manager. One thread puts."""

    def __init__(self, file: BinaryIO) -> None:
        """`file` is open for appending."""
        self.hash = hashlib.sha256()
        self._file = file
        self._blocks: queue.Queue[bytes | None] = queue.Queue(QUEUED_BLOCKS)
        self._error: OSError | None = None
        self._unsynced = 0
        self._sync_wanted = threading.Event()
        self._ended = threading.Event()
        self._writer = threading.Thread(target=self._write, name="download writer", daemon=True)
        self._syncer = threading.Thread(target=self._sync, name="download sync", daemon=True)

    def __enter__(self) -> Sink:
        """Start the threads."""
        self._writer.start()
        self._syncer.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Write what was put, and end the threads; the file is flushed."""
        self._blocks.put(None)
        self._writer.join()
        self._ended.set()
        self._sync_wanted.set()
        self._syncer.join()
        if exc_info[0] is None:
            self._check()

    def put(self, block: bytes) -> None:
        """Take a block; raises the OSError of an earlier one that could not be written."""
        self._check()
        self._blocks.put(block)

    def drain(self) -> None:
        """Wait until all that was put is written and hashed; raises the OSError of a block that was not."""
        self._blocks.join()
        self._check()
        self._file.flush()

    def restart(self) -> None:
        """Forget everything: the file is empty again."""
        self.drain()
        self._file.seek(0)
        self._file.truncate(0)
        self.hash = hashlib.sha256()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        while (block := self._blocks.get()) is not None:
            try:
                if self._error is None:
                    self._file.write(block)
                    self.hash.update(block)
                    self._unsynced += len(block)
            except OSError as error:
                self._error = error
            finally:
                self._blocks.task_done()
            if self._unsynced >= SYNC_BYTES:
                self._unsynced = 0
                self._sync_wanted.set()

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
