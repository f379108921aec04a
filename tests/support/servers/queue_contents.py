"""What waits in a queue, read without the reader."""

from __future__ import annotations

import redis

from kitchensync.storage.names import stream_key

META_BYTES = 28


def numbers_in_queue(client: redis.Redis, recording_uuid: str, stream: str) -> list[int]:
    """Return the numbers of the packets that wait, in order."""
    numbers: list[int] = []
    for entry_id, said in client.xrange(stream_key(recording_uuid, stream)):
        end = int(entry_id.partition(b"-")[2]) + 1
        numbers += range(end - len(said[b"n"]) // META_BYTES, end)
    return numbers
