"""HTTP with a camera that may be slow, broken or hostile: one limit in time for the whole answer, one in bytes.

Nothing is decompressed, no redirect is followed, and no proxy stands between. A stream of single bytes, endless
headers or endless `100 Continue` end at the limit like silence.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from functools import partial
from typing import Any, NamedTuple

from kitchensync.sensors.errors import CameraTalk

MOST_BYTES = 16 << 20
MOST_INTERIM = 8
"""Answers of status 1xx before the real one."""
TROUBLE = (OSError, http.client.HTTPException, ValueError)
"""What a request raises when the camera cannot be heard: time, network, TLS, or no HTTP (a length below zero)."""

_MOST_SAID = 120


class HttpAnswer(NamedTuple):
    """Status, what came, and the length as the camera stated it."""

    status: int
    body: bytes
    stated_length: str


class TimeLimit:
    """Until when reads may take; set anew for each request."""

    def __init__(self) -> None:
        self._deadline_ns, self._silence_s = 0, 0.0

    def give(self, seconds: float, *, silence_s: float | None = None) -> None:
        """Begin anew; nothing may come for `silence_s` at most."""
        self._deadline_ns = time.monotonic_ns() + int(seconds * 1e9)
        self._silence_s = seconds if silence_s is None else silence_s

    def left_s(self) -> float:
        """Return how long a read may wait. Raises TimeoutError when nothing is left."""
        left_ns = self._deadline_ns - time.monotonic_ns()
        if left_ns <= 0:
            raise TimeoutError("timed out")
        return min(left_ns / 1e9, self._silence_s)


class _LimitedReader(io.RawIOBase):
    """The socket's bytes; each read waits for what is left of the limit, at most."""

    def __init__(self, sock: socket.socket, limit: TimeLimit) -> None:
        self._sock, self._limit = sock, limit
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what is there. Raises TimeoutError."""
        self._sock.settimeout(self._limit.left_s())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Let go of the socket."""
        self._raw.close()
        super().close()


class _LimitedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *, limit: TimeLimit, **more: Any) -> None:
        super().__init__(sock, **more)
        self.fp.close()
        self.fp = io.BufferedReader(_LimitedReader(sock, limit), 1 << 16)
        self._interim = 0

    def _read_status(self) -> tuple[str, int, str]:
        """Count the interim answers, which the library would skip for ever."""
        self._interim += 1
        if self._interim > MOST_INTERIM:
            raise http.client.HTTPException("no answer behind its interim ones")
        return super()._read_status()  # type: ignore[misc, no-any-return]


def limited(connection: http.client.HTTPConnection, limit: TimeLimit) -> http.client.HTTPConnection:
    """Make all reads of a connection end with a limit."""
    connection.response_class = partial(_LimitedResponse, limit=limit)  # type: ignore[assignment]
    return connection


def fetch(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    headers: dict[str, str],
    *,
    limit: TimeLimit,
    address: str,
) -> HttpAnswer:
    """Ask once. Raises what `TROUBLE` names, CameraTalk for an answer that is too long."""
    connection.request(method, path, headers=headers | {"Accept-Encoding": "identity", "Connection": "close"})
    limit.left_s()
    with connection.getresponse() as response:
        body = response.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise CameraTalk(address, f"an answer of over {MOST_BYTES} bytes")
    return HttpAnswer(response.status, body, response.getheader("Content-Length") or "")


def reason(error: Exception) -> str:
    """Say in a few words why a camera was not heard."""
    if isinstance(error, TimeoutError):
        return "timed out"
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    printable = "".join(letter if letter.isprintable() else " " for letter in said)
    return " ".join(printable.split())[:_MOST_SAID].lower()
