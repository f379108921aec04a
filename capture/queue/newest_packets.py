"""A look at the newest packets that wait in the queue: who looks takes none, and no drainer notices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import redis

from kitchensync.capture.queue.queue_reader import packets_of
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.names import stream_key

AT_ONCE = 8
MOST = 300
"""Packets that are looked at, at most: ten seconds of a camera."""


def newest_first(client: redis.Redis, recording_uuid: str, stream: str) -> Iterator[Packet]:
    """Yield what waits of a stream, the newest first. Raises redis.RedisError, and what `packets_of` raises."""
    key, before = stream_key(recording_uuid, stream), "+"
    for _ in range(0, MOST, AT_ONCE):
        found = cast(list[Any], client.xrevrange(key, max=before, min="-", count=AT_ONCE))
        if not found:
            return
        yield from packets_of([(name, (b"m", said[b"m"], b"b", said[b"b"])) for name, said in found])
        before = f"({found[-1][0].decode()}"
