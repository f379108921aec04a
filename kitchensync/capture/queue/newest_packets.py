"""A look at the newest packets that wait in the queue: who looks takes none, and no drainer notices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, cast

import redis

from kitchensync.capture.queue.queue_reader import packets_of
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.names import stream_key

AT_ONCE = 8
MOST, MOST_BYTES = 300, 32 << 20
"""Packets that are looked at, at most: ten seconds of a camera."""


def packets_in(entries: list[tuple[bytes, dict[bytes, bytes]]]) -> list[Packet]:
    """Read entries as XRANGE gives them. Raises what `packets_of` raises."""
    return packets_of([(name, tuple(chain(*said.items()))) for name, said in entries])


def in_order(client: redis.Redis, recording_uuid: str, stream: str) -> Iterator[Packet]:
    """Yield all that waits of a stream, the oldest first. Raises redis.RedisError, and what `packets_of` raises."""
    key, after = stream_key(recording_uuid, stream), "-"
    while found := cast(Any, client.xrange(key, min=after, count=AT_ONCE)):
        yield from packets_in(found)
        after = f"({found[-1][0].decode()}"


def newest_first(client: redis.Redis, recording_uuid: str, stream: str) -> Iterator[Packet]:
    """Yield what waits of a stream, the newest first. Raises redis.RedisError, and what `packets_of` raises."""
    key, before, count, size = stream_key(recording_uuid, stream), "+", 0, 0
    while count < MOST and size < MOST_BYTES:
        many = AT_ONCE if count else 1  # of a raw camera the newest is enough
        found = cast(Any, client.xrevrange(key, max=before, min="-", count=many))
        if not found:
            return
        for name, said in found:
            packets = packets_in([(name, said)])
            yield from reversed(packets)
            count, size = count + len(packets), size + len(said[b"b"])
        before = f"({found[-1][0].decode()}"
