"""The queue between sensors and disk: one Redis stream a sensor, explicit ids, acknowledged after sealing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import redis

from kitchensync.capture.errors import QueueUnavailable
from kitchensync.capture.queue.pipe import LACKS_ROOM, OUTCOME_UNKNOWN, Batch, QueuePipe
from kitchensync.capture.queue.reader import QueueReader
from kitchensync.capture.queue.stream_entries import QueuedPacket, StreamEntries
from kitchensync.storage.names import files_key

__all__ = [
    "OUTCOME_UNKNOWN",
    "RUNNING_READY_S",
    "QueuePipe",
    "QueueReader",
    "QueueWriter",
    "QueuedPacket",
    "connect",
    "lacks_room",
    "reached",
    "sealed_files",
    "share_of_memory",
    "wait_until_ready",
]

RUNNING_READY_S = 5.0
"""So long a server that somebody else started may take to answer at all."""
LOADING_S = 120.0
"""A server that was killed reads its append-only file before it answers."""


def connect(url: str) -> redis.Redis:
    """Open a client. `url` is `unix:///path`, `redis://` or `rediss://`."""
    return redis.Redis.from_url(url, decode_responses=False, socket_timeout=10)


@contextlib.contextmanager
def reached(url: str) -> Iterator[redis.Redis]:
    """Open a client for a block. Raises QueueUnavailable when the server does not do what it is asked there."""
    try:
        with connect(url) as client:
            yield client
    except redis.RedisError as error:
        raise QueueUnavailable(url, f"does not answer ({error})") from error


def lacks_room(error: redis.RedisError) -> bool:
    """Return whether the server refuses because its disk is full: then it does not even hand packets out."""
    return str(error).startswith(LACKS_ROOM)


def share_of_memory(client: redis.Redis) -> float:
    """Return how much of its memory the server has used, 0 to 1; 0 where it knows no bound."""
    memory = client.info("memory")
    return float(memory["used_memory"]) / memory["maxmemory"] if memory["maxmemory"] else 0.0


def wait_until_ready(client: redis.Redis, where: str, limit_s: float = 15.0) -> None:
    """Wait for the first answer; a server that reads its file again is given more time. Raises QueueUnavailable."""
    end = time.monotonic() + limit_s
    last = end + LOADING_S
    while True:
        try:
            client.ping()
        except redis.RedisError as error:
            if isinstance(error, redis.BusyLoadingError):
                end = min(time.monotonic() + limit_s, last)
            if time.monotonic() > end:
                raise QueueUnavailable(where, f"does not answer ({error})") from error
            time.sleep(0.02)
        else:
            return


class QueueWriter(StreamEntries):
    """Puts one stream into the queue, over a pipe that several streams may share."""

    def __init__(
        self,
        client: redis.Redis,
        recording_uuid: str,
        stream: str,
        epoch_ms: int,
        on_loss: Callable[[int, int], None] = lambda first, last: None,
        pipe: QueuePipe | None = None,
    ) -> None:
        """Use the connection of a `pipe`, else one of its own; the rest is as of `StreamEntries`."""
        self._pipe = pipe or QueuePipe(client)
        super().__init__(client, recording_uuid, stream, epoch_ms, on_loss, self._pipe.connections)

    def next_sequence(self) -> int:
        """Return the number after the last one that an earlier run of the producer queued, else 0.

        Waits for a server that is just being started again. Raises QueueUnavailable when it does not come.
        """
        wait_until_ready(self._client, self._key)
        last = self._last_id()
        self._next_seq = last[1] + 1 if last else 0
        if last and self._epoch_ms <= last[0]:
            self._epoch_ms = last[0] + 1  # the wall clock was set back: the server takes rising ids only
        return self._next_seq

    def put(self, packets: Sequence[QueuedPacket], give_up: Callable[[], bool]) -> int:
        """Queue packets in order; return how many, fewer than given when `give_up` said so before."""
        batch = Batch(self, list(packets))
        self._pipe.put([batch], give_up)
        return batch.done

    def hold(self, limit_s: float) -> None:
        """Stay until the server has synced what it took, at most so long; see `QueuePipe.hold`."""
        self._pipe.hold(limit_s)

    def close(self) -> None:
        """Give the connection back."""
        self._pipe.close()


def sealed_files(client: redis.Redis, recording_uuid: str, stream: str) -> dict[str, dict[str, Any]]:
    """Return name -> {bytes, sha256} of the chunks that were sealed."""
    stored = cast(dict[bytes, bytes], client.hgetall(files_key(recording_uuid, stream)))
    files = {}
    for name, value in stored.items():
        size, sha256 = value.decode().split()
        files[name.decode()] = {"bytes": int(size), "sha256": sha256}
    return files
