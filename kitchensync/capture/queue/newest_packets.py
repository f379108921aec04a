"""Read queued packets without consuming them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, cast

import redis

from kitchensync.capture.queue.queue_reader import packets_of
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.names import stream_key

PAGE_ENTRIES = 8
MAX_PACKETS, MAX_BYTES = 300, 32 << 20
"""Limits of `newest_first`: ten seconds of a camera."""


def packets_in(entries: list[tuple[bytes, dict[bytes, bytes]]]) -> list[Packet]:
    """Decode entries of XRANGE. Raises the errors of `packets_of`."""
    return packets_of([(name, tuple(chain(*fields.items()))) for name, fields in entries])


def in_order(client: redis.Redis, recording_uuid: str, stream: str) -> Iterator[Packet]:
    """Yield all queued packets of a stream, oldest first. Raises redis.RedisError and the errors of `packets_of`."""
    key, after = stream_key(recording_uuid, stream), "-"
    while entries := cast(Any, client.xrange(key, min=after, count=PAGE_ENTRIES)):
        yield from packets_in(entries)
        after = f"({entries[-1][0].decode()}"


def newest_first(client: redis.Redis, recording_uuid: str, stream: str) -> Iterator[Packet]:
    """Yield queued packets of a stream, newest first. Raises redis.RedisError and the errors of `packets_of`."""
    key, before, count, size = stream_key(recording_uuid, stream), "+", 0, 0
    while count < MAX_PACKETS and size < MAX_BYTES:
        many = PAGE_ENTRIES if count else 1  # the newest packet of a raw camera is enough
        entries = cast(Any, client.xrevrange(key, max=before, min="-", count=many))
        if not entries:
            return
        for name, fields in entries:
            packets = packets_in([(name, fields)])
            yield from reversed(packets)
            count, size = count + len(packets), size + len(fields[b"b"])
        before = f"({entries[-1][0].decode()}"
