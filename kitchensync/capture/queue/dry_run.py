"""Test an external queue server before a recording: write, read, acknowledge and delete like a recording."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import redis

from kitchensync.capture.errors import QueueUnavailable
from kitchensync.capture.queue.queue_connection import (
    RUNNING_READY_S,
    connect,
    evicting_policy,
    wait_until_ready,
)
from kitchensync.capture.queue.queue_reader import QueueReader, sealed_files
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.refusal import WritesRefused, refusal
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.storage.chunks.chunk_writer import Sealed
from kitchensync.storage.names import files_key, stream_key

STREAMS = ("try/one", "try/two")
"""Two streams, because a drainer reads several in one command, which a cluster refuses."""
BODIES = [b"0", b"1", b"2"]
MIN_FREE_BYTES = 128 << 20
"""Free memory that a recording needs for the packets that drainers hold and those that are queued."""
ONE_SERVER = "name one server that is no cluster, on this computer for choice"

FOREIGN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of the client library for well-formed answers that are not those of Redis."""


def check_server(url: str) -> None:
    """Run every operation of a recording once on a server, and clean up. Raises QueueUnavailable."""
    with connect(url) as client:
        try:
            wait_until_ready(client, url, limit_s=RUNNING_READY_S)
            _check_kind(client, url)
            _try_streams(client, url)
        except redis.RedisError as error:
            if (message := refusal(error)) and not _is_of_cluster(error):
                raise QueueUnavailable(url, f"refuses writes: {message}") from error
            problem = "is part of a cluster" if _is_of_cluster(error) else "cannot be used"
            raise QueueUnavailable(url, f"{problem} ({error}); {ONE_SERVER}") from error
        except FOREIGN as error:
            raise QueueUnavailable(url, f"does not answer as Redis does; {ONE_SERVER}") from error


def _check_kind(client: redis.Redis, url: str) -> None:
    try:
        facts = client.info("everything")
    except redis.ResponseError:
        return  # the server hides its settings; the test of the streams shows whether it works
    if facts.get("cluster_enabled"):
        raise QueueUnavailable(url, f"is part of a cluster; {ONE_SERVER}")
    bound = int(facts.get("maxmemory", 0))
    if policy := evicting_policy(facts):
        raise QueueUnavailable(url, f"throws packets away (maxmemory-policy {policy}); set it to noeviction")
    if bound and bound - int(facts["used_memory"]) < MIN_FREE_BYTES:
        raise QueueUnavailable(
            url,
            f"has {(bound - int(facts['used_memory'])) / 1e6:.0f} MB of memory left,"
            f" a recording needs {MIN_FREE_BYTES / 1e6:.0f} MB; raise its maxmemory",
        )


def _try_streams(client: redis.Redis, url: str) -> None:
    name = f"try-{uuid.uuid4()}"
    writers = [QueueWriter(client, name, stream, time.time_ns() // 1_000_000) for stream in STREAMS]
    reader = QueueReader(client, name, STREAMS, "try")
    try:
        for writer in writers:
            first = writer.next_sequence()
            packets = [QueuedPacket(first + n, n, n, 1, body, 0) for n, body in enumerate(BODIES)]
            if writer.put(packets, lambda: True) != len(BODIES):
                message = writer.pipe.refusal
                raise WritesRefused(message) if message else redis.ResponseError("it accepts no packets")
        received = reader.fresh(count=len(BODIES), block_ms=None)
        for stream in STREAMS:
            if [bytes(packet.payload) for packet in received.get(stream, [])] != BODIES:
                raise redis.ResponseError("it does not return the packets that were written")
            sealed = Sealed(Path("try"), 0, len(BODIES) - 1, len(BODIES), 0, "none")
            reader.acknowledge(stream, received[stream], sealed)
        if reader.waiting() or any(not sealed_files(client, name, stream) for stream in STREAMS):
            raise redis.ResponseError("it does not delete acknowledged packets")
    finally:
        reader.close()
        for writer in writers:
            writer.pipe.close()
        for stream in STREAMS:
            client.delete(stream_key(name, stream), files_key(name, stream))


def _is_of_cluster(error: redis.RedisError) -> bool:
    return isinstance(error, redis.exceptions.ClusterError | redis.exceptions.AskError) or any(
        word in str(error) for word in ("CROSSSLOT", "CLUSTERDOWN", "MOVED", "same slot")
    )
