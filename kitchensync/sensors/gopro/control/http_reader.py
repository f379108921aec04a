"""HTTP with a camera that may be slow, broken or hostile: answers have a time limit and a size limit.

Nothing is decompressed, no redirect is followed, and no proxy is used. Single bytes, endless headers or endless
`100 Continue` end at the time limit, like silence.
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
"""Largest answer."""
MOST_INTERIM = 8
"""Largest number of 1xx answers before the final one."""
TROUBLE = (OSError, http.client.HTTPException, ValueError)
"""Errors of a request without a valid answer: timeout, network, TLS, or invalid HTTP (a negative length)."""

_LONGEST_REASON = 120  # the camera may choose the text, and a message is one line


class HttpAnswer(NamedTuple):
    """Status, body, and the Content-Length header."""

    status: int
    body: bytes
    stated_length: str


class TimeLimit:
    """Deadline of reads; set again for each request."""

    def __init__(self) -> None:
        self._deadline_ns, self._silence_s = 0, 0.0

    def give(self, seconds: float, *, silence_s: float | None = None) -> None:
        """Set the deadline in `seconds`; a single read waits at most `silence_s`."""
        self._deadline_ns = time.monotonic_ns() + int(seconds * 1e9)
        self._silence_s = seconds if silence_s is None else silence_s

    def remaining_s(self) -> float:
        """Return how long a read may wait. Raises TimeoutError after the deadline."""
        remaining_ns = self._deadline_ns - time.monotonic_ns()
        if remaining_ns <= 0:
            raise TimeoutError("timed out")
        return min(remaining_ns / 1e9, self._silence_s)


class _LimitedReader(io.RawIOBase):
    """A socket's bytes; each read waits at most for the rest of the time limit."""

    def __init__(self, sock: socket.socket, limit: TimeLimit) -> None:
        self._sock, self._limit = sock, limit
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read the available bytes. Raises TimeoutError."""
        self._sock.settimeout(self._limit.remaining_s())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close the reader."""
        self._raw.close()
        super().close()


class _LimitedResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *, limit: TimeLimit, **more: Any) -> None:
        super().__init__(sock, **more)
        self.fp.close()
        self.fp = io.BufferedReader(_LimitedReader(sock, limit), 1 << 16)
        self._interim = 0

    def _read_status(self) -> tuple[str, int, str]:
        """Count the interim answers, which http.client would skip without a limit."""
        self._interim += 1
        if self._interim > MOST_INTERIM:
            raise http.client.HTTPException("too many interim answers")
        return super()._read_status()  # type: ignore[misc, no-any-return]


def limited(connection: http.client.HTTPConnection, limit: TimeLimit) -> http.client.HTTPConnection:
    """Make all reads of a connection end at a limit."""
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
    """Send one request. Raises the errors in `TROUBLE`, CameraTalk for an answer that is too large."""
    connection.request(method, path, headers=headers | {"Accept-Encoding": "identity", "Connection": "close"})
    limit.remaining_s()
    with connection.getresponse() as response:
        body = response.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise CameraTalk(address, f"an answer of over {MOST_BYTES} bytes")
    return HttpAnswer(response.status, body, response.getheader("Content-Length") or "")


def reason(error: Exception) -> str:
    """Return a short text for an error of a request; the camera may have chosen its characters."""
    if isinstance(error, TimeoutError):
        return "timed out"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.split())[:_LONGEST_REASON].lower()
