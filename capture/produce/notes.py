"""The ledger: what happened to a stream besides its packets, queued and stored like packets themselves.

Notes are JSON objects with `note`, `stream`, `host_ns` and facts. `storage.verify` reads them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import redis

from capture.process.log import tell
from capture.queue.stream_queue import QueuedPacket, QueueWriter
from sensors.host_clock import host_ns


class Ledger:
    """Writes the notes of one device's producer; any thread may write."""

    def __init__(self, client: redis.Redis, recording_uuid: str, stream: str, epoch_ms: int) -> None:
        """`stream` is the ledger's own name, such as `ledger/hololens`."""
        self._writer = QueueWriter(client, recording_uuid, stream, epoch_ms)
        self._lock = threading.Lock()
        self._seq = self._writer.next_sequence()
        self._unsaid: list[QueuedPacket] = []

    def note(self, kind: str, stream: str, give_up: Callable[[], bool] = lambda: False, **facts: Any) -> None:
        """Write one note: `connected`, `closed`, `end`, `declared_loss`, `corrupt_packet`, `stalled`.

        One that found no room when `give_up` said so goes with the next.
        """
        now_ns = host_ns()
        tell(kind, stream=stream, **facts)
        text = json.dumps({"note": kind, "stream": stream, "host_ns": now_ns, **facts})
        with self._lock:
            self._unsaid.append(QueuedPacket(self._seq, 0, now_ns, 1, text.encode(), 0))
            self._seq += 1
            del self._unsaid[: self._writer.put(self._unsaid, give_up)]

    def hold(self, limit_s: float) -> None:
        """Stay until the queue server has synced every note, at most so long."""
        with self._lock:
            self._writer.hold(limit_s)
