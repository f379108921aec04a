"""Write one sensor stream into the queue, as a Redis stream with explicit ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import redis

from kitchensync.capture.queue.pipe import Batch, QueuePipe
from kitchensync.capture.queue.queue_connection import wait_until_ready
from kitchensync.capture.queue.stream_entries import ENTRY_PACKETS, QueuedPacket, StreamEntries


class QueueWriter(StreamEntries):
    """Writes one stream into the queue, over a pipe that several streams may share."""

    def __init__(
        self,
        client: redis.Redis,
        recording_uuid: str,
        stream: str,
        epoch_ms: int,
        on_loss: Callable[[int, int], None] = lambda first, last: None,
        pipe: QueuePipe | None = None,
        entry_packets: int = ENTRY_PACKETS,
    ) -> None:
        """Use the connection of a `pipe`, else an own one; `StreamEntries` describes the other parameters."""
        self.pipe = pipe or QueuePipe(client)
        super().__init__(client, recording_uuid, stream, epoch_ms, on_loss, entry_packets)

    def next_sequence(self) -> int:
        """Return the number after the last packet that an earlier run of the producer queued, else 0.

        Waits for a server that is being restarted. Raises QueueUnavailable.
        """
        wait_until_ready(self._client, self._key)
        last = self._last_id()
        self._next_seq = last[1] + 1 if last else 0
        if last and self._epoch_ms <= last[0]:
            # The wall clock was set back, but the server accepts only rising ids.
            self._epoch_ms = last[0] + 1
        return self._next_seq

    def put(self, packets: Sequence[QueuedPacket], give_up: Callable[[], bool]) -> int:
        """Queue packets in order, retrying until `give_up` returns True; return how many are settled."""
        batch = Batch(self, list(packets))
        self.pipe.put([batch], give_up)
        return batch.done
