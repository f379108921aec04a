"""Write the ledger: notes about a stream, queued and stored like packets; `kitchensync.storage.ledger` lists them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import redis

from kitchensync.capture.process.log import log_event
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.ledger import Note, written


class Ledger:
    """Writes the notes of one device's producer; any thread may write."""

    def __init__(self, client: redis.Redis, recording_uuid: str, stream: str, epoch_ms: int) -> None:
        """`stream` is the ledger's own name, such as `ledger/hololens`."""
        self._writer = QueueWriter(client, recording_uuid, stream, epoch_ms)
        self._lock = threading.Lock()
        self._seq = self._writer.next_sequence()
        self._pending: list[QueuedPacket] = []

    def note(self, note: Note, stream: str, give_up: Callable[[], bool] = lambda: False) -> None:
        """Write one note about a stream; if the queue has no room until `give_up`, write it with the next note."""
        now_ns = host_ns()
        log_event(note.kind, stream=stream, **note.facts())
        text = written(note, stream, now_ns).line()
        with self._lock:
            self._pending.append(QueuedPacket(self._seq, 0, now_ns, 1, text.encode(), 0))
            self._seq += 1
            # One by one: the server may have accepted a note whose answer was lost, and then refuses its number.
            while self._pending and self._writer.put(self._pending[:1], give_up):
                del self._pending[0]

    def wait_for_sync(self, limit_s: float) -> None:
        """Wait until the queue server has synced every note, at most `limit_s`."""
        with self._lock:
            self._writer.pipe.wait_for_sync(limit_s)
