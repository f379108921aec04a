"""Recognize refusals of a queue server that answers but accepts no writes because of its own state."""

from __future__ import annotations

import redis
from redis import exceptions

CODES: dict[type[redis.RedisError], str] = {
    exceptions.AuthenticationError: "NOAUTH",
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.MasterDownError: "MASTERDOWN",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.OutOfMemoryError: "OOM",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.TryAgainError: "TRYAGAIN",
}
"""Errors that the client library raises without the error code of the server."""
PREFIXES = ("MISCONF", "NOREPLICAS", "BUSY ", "UNBLOCKED force", "max number of clients")
"""Prefixes of the other refusals; UNBLOCKED comes from a server that became a replica."""


class WritesRefused(redis.ConnectionError):
    """A refusal with the server's message; what the server holds is unknown then and has to be read again."""


def refusal(error: redis.RedisError) -> str:
    """Return the server's message if it refuses because of its state, "" for other errors."""
    if isinstance(error, WritesRefused):
        return str(error)
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), "")
    if code:
        return f"{getattr(error, 'status_code', None) or code} {error}"
    return str(error) if str(error).startswith(PREFIXES) else ""
