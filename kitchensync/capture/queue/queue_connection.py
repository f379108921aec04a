"""Connect to the queue server, wait for it, and query its memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import redis

from kitchensync.capture.errors import QueueUnavailable
from kitchensync.capture.queue.refusal import refusal

RUNNING_READY_S = 5.0
"""Time for a running external server to answer."""
NO_ROOM = ("No space left", "Disk quota")
EVICTS = "allkeys"
"""Prefix of the policies that evict keys without an expiry, such as ours."""
LOADING_S = 120.0
"""Time for a server that was killed to load its append-only file."""


def connect(url: str) -> redis.Redis:
    """Open a client. `url` is `unix:///path`, `redis://` or `rediss://`."""
    return redis.Redis.from_url(url, decode_responses=False, socket_timeout=10)


@contextlib.contextmanager
def connected(url: str) -> Iterator[redis.Redis]:
    """Open a client for a block. Raises QueueUnavailable for any error of the server in the block."""
    try:
        with connect(url) as client:
            yield client
    except redis.RedisError as error:
        raise QueueUnavailable(url, _why(error)) from error


def lacks_room(error: redis.RedisError | str) -> bool:
    """Return whether a server refuses because the disk of its file is full; then it delivers nothing either."""
    return str(error).startswith("MISCONF") and any(text in str(error) for text in NO_ROOM)


def _why(error: redis.RedisError) -> str:
    message = refusal(error)
    return f"refuses: {message}" if message else f"does not answer ({error})"


def share_of_memory(client: redis.Redis) -> float:
    """Return the used share of the server's memory, 0 to 1; 0 if the memory is not limited."""
    memory = client.info("memory")
    return float(memory["used_memory"]) / memory["maxmemory"] if memory["maxmemory"] else 0.0


def evicting_policy(memory: Mapping[str, Any]) -> str:
    """Return the policy by which a server evicts packets when its memory is full, "" if it keeps them.

    `memory` is the server's answer to INFO.
    """
    policy = str(memory.get("maxmemory_policy", ""))
    return policy if memory.get("maxmemory") and policy.startswith(EVICTS) else ""


def wait_until_ready(client: redis.Redis, where: str, limit_s: float = 15.0) -> None:
    """Wait for the first answer, longer for a server that is loading its file. Raises QueueUnavailable.

    A refusal counts as an answer: a server that cannot save refuses even PING but still returns its data.
    """
    end = time.monotonic() + limit_s
    last = end + LOADING_S
    while True:
        try:
            client.ping()
        except redis.RedisError as error:
            if isinstance(error, redis.ResponseError) and refusal(error):
                return
            if isinstance(error, redis.BusyLoadingError):
                end = min(time.monotonic() + limit_s, last)
            if time.monotonic() > end:
                raise QueueUnavailable(where, _why(error)) from error
            time.sleep(0.02)
        else:
            return
