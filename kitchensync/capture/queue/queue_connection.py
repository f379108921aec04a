"""The connection to the queue server: opened, waited for, asked how full it is."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import redis

from kitchensync.capture.errors import QueueUnavailable
from kitchensync.capture.queue.refusal import refusal

RUNNING_READY_S = 5.0
"""So long a server that somebody else started may take to answer at all."""
NO_ROOM = ("No space left", "Disk quota")
EVICTS = "allkeys"
"""How a policy begins that takes keys without an expiry, as ours are."""
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
        raise QueueUnavailable(url, _why(error)) from error


def lacks_room(error: redis.RedisError | str) -> bool:
    """Return whether a server refuses because its file finds no room: then it hands nothing out either."""
    return str(error).startswith("MISCONF") and any(words in str(error) for words in NO_ROOM)


def _why(error: redis.RedisError) -> str:
    """Return what keeps a server from doing what it is asked."""
    words = refusal(error)
    return f"refuses: {words}" if words else f"does not answer ({error})"


def share_of_memory(client: redis.Redis) -> float:
    """Return how much of its memory the server has used, 0 to 1; 0 where it knows no bound."""
    memory = client.info("memory")
    return float(memory["used_memory"]) / memory["maxmemory"] if memory["maxmemory"] else 0.0


def evicting_policy(memory: Mapping[str, Any]) -> str:
    """Return the rule by which a server throws packets away when its memory is full, "" where it keeps them.

    `memory` is what the server tells of it (INFO).
    """
    policy = str(memory.get("maxmemory_policy", ""))
    return policy if memory.get("maxmemory") and policy.startswith(EVICTS) else ""


def wait_until_ready(client: redis.Redis, where: str, limit_s: float = 15.0) -> None:
    """Wait for the first answer; a server that reads its file again is given more time. Raises QueueUnavailable.

    A server that cannot save refuses even PING, and still tells what it holds: that is an answer.
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
