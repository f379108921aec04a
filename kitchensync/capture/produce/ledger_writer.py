"""The ledger: what happened to a stream besides its packets, queued and stored like packets themselves.

`kitchensync.storage.ledger` says what they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import redis

from kitchensync.capture.process.log import tell
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
        self._unsaid: list[QueuedPacket] = []

    def note(self, note: Note, stream: str, give_up: Callable[[], bool] = lambda: False) -> None:
        """Write one note about a stream. One that found no room when `give_up` said so goes with the next."""
        now_ns = host_ns()
        tell(note.kind, stream=stream, **note.facts())
        text = written(note, stream, now_ns).line()
        with self._lock:
            self._unsaid.append(QueuedPacket(self._seq, 0, now_ns, 1, text.encode(), 0))
            self._seq += 1
            # One by one: the server may have taken one whose outcome is unknown, and refuses its number again.
            while self._unsaid and self._writer.put(self._unsaid[:1], give_up):
                del self._unsaid[0]

    def hold(self, limit_s: float) -> None:
        """Stay until the queue server has synced every note, at most so long."""
        with self._lock:
            self._writer.pipe.hold(limit_s)
