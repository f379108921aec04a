"""Refusals of a queue server that answers and takes no packets: for its own state, whatever is asked of it."""

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
"""Errors that the client library raises without the code that the server began with."""
BEGINNINGS = ("MISCONF", "NOREPLICAS", "BUSY ", "UNBLOCKED force", "max number of clients")
"""How the others begin; UNBLOCKED: a server that became a replica ends the commands that wait."""


class WritesRefused(redis.ConnectionError):
    """A refusal, in the server's words, that leaves open what the server holds: it is asked anew."""


def refusal(error: redis.RedisError) -> str:
    """Return the server's own words where it refuses for its state, "" where it does not answer or for a command."""
    if isinstance(error, WritesRefused):
        return str(error)
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), "")
    if code:
        return f"{getattr(error, 'status_code', None) or code} {error}"
    return str(error) if str(error).startswith(BEGINNINGS) else ""
