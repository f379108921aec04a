"""Requests to a running recording from another process of the same user: stop, and how it is.

The socket and a key lie in the recording's private runtime folder. Every request is signed with the key and carries
the time and a number used once: without the key nobody is answered, and what was overheard works no second time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq

from capture.errors import NotRunning
from capture.plan import runtime_root
from sensors.host_clock import host_ns
from sensors.untrusted_json import parse_object

ANSWER_MS = 3000
FRESH_NS = 5_000_000_000
"""A request that is older or younger than this is no request."""
KEY = "control.key"
MOST_BYTES, MOST_AT_ONCE = 4096, 20
"""Of one request, and of all between two looks at the recording: whoever floods is answered more slowly."""

COMMANDS = ("stop", "abort", "state")


def _signature(key: bytes, command: str, at_ns: int, nonce: str) -> str:
    return hmac.new(key, json.dumps([command, at_ns, nonce]).encode(), hashlib.sha256).hexdigest()


def signed(key: bytes, command: str) -> bytes:
    """Write a request that is valid once, for a few seconds."""
    at_ns, nonce = host_ns(), secrets.token_hex(16)
    fields = {"command": command, "host_ns": at_ns, "nonce": nonce}
    return json.dumps({**fields, "signature": _signature(key, command, at_ns, nonce)}).encode()


class ControlServer:
    """The supervisor's side of control."""

    def __init__(self, endpoint: str) -> None:
        """Make the key, then bind the endpoint (`ipc://`, in a private folder)."""
        self._key = secrets.token_bytes(32)
        self._used: dict[str, int] = {}
        self._key_file = Path(endpoint.removeprefix("ipc://")).with_name(KEY)
        self._key_file.unlink(missing_ok=True)
        descriptor = os.open(self._key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._key)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 500)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
        self._socket.bind(endpoint)

    def requests(self, state: Callable[[], dict[str, Any]]) -> list[str]:
        """Answer what was asked since the last call with the state; return the requests that were understood."""
        understood: list[str] = []
        for _ in range(MOST_AT_ONCE):
            if not self._socket.poll(0):
                break
            parts = self._socket.recv_multipart()
            command = self._checked(parts[0]) if len(parts) == 1 else None
            if command is None:
                self._socket.send(json.dumps({"ok": False, "error": "refused"}).encode())
                continue
            understood.append(command)
            self._socket.send(json.dumps({"ok": True, **state()}).encode())
        return understood

    def _checked(self, message: bytes) -> str | None:
        """Return the command of a request that is signed, fresh and new."""
        try:
            request = parse_object(message, most_bytes=MOST_BYTES)
            command, at_ns, nonce = str(request["command"]), int(request["host_ns"]), str(request["nonce"])
            given = str(request["signature"]).encode()
        except (ValueError, KeyError, TypeError):
            return None
        now = host_ns()
        self._used = {used: at for used, at in self._used.items() if now - at <= 2 * FRESH_NS}
        right = hmac.compare_digest(given, _signature(self._key, command, at_ns, nonce).encode())
        if not right or abs(now - at_ns) > FRESH_NS or nonce in self._used or command not in COMMANDS:
            return None
        self._used[nonce] = now
        return command

    def close(self) -> None:
        """Close the endpoint; the key is of no use any more."""
        self._socket.close()
        self._context.term()
        self._key_file.unlink(missing_ok=True)


def running() -> list[tuple[str, Path]]:
    """Return id and control socket of the recordings that this user is making."""
    found = []
    for endpoint in sorted(runtime_root().glob("*/control")):
        state = ask(endpoint, "state")
        if state is not None:
            found.append((str(state["recording"]), endpoint))
    return found


def ask(endpoint: Path, request: str, *, limit_ms: int = ANSWER_MS) -> dict[str, Any] | None:
    """Send one request; return the answer, or None when nobody answers in time or the key is not ours."""
    try:
        key = endpoint.with_name(KEY).read_bytes()
    except OSError:
        return None
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(f"ipc://{endpoint}")
        socket.send(signed(key, request))
        answer = parse_object(socket.recv()) if socket.poll(limit_ms) else {}
    return answer if answer.get("ok") else None


def stop(recording: str | None) -> str:
    """Ask a recording to stop; without an id the only one that runs. Raises NotRunning."""
    found = running()
    wanted = [(name, endpoint) for name, endpoint in found if recording in (None, name)]
    if len(wanted) != 1 or ask(wanted[0][1], "stop") is None:
        raise NotRunning(recording, [name for name, _ in found])
    return wanted[0][0]
