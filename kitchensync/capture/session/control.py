"""Control of a running recording by another process of the same user: commands, and a query of its state.

The socket and a key are in the recording's private runtime folder. Every request is signed with the key and carries
a time and a nonce: requests without the key are refused, and a captured request cannot be replayed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import zmq

from kitchensync.capture.errors import CaptureError, NotRunning
from kitchensync.capture.plan import is_running, runtime_root
from kitchensync.shell.host_clock import host_ns
from kitchensync.shell.untrusted_json import parse_object
from kitchensync.storage.errors import StorageError

ANSWER_MS = 3000
FRESH_NS = 5_000_000_000
"""Largest difference between a request's time and ours."""
POLL_S = 0.2
KEY = "control.key"
MAX_REQUEST_BYTES = 4096  # MAX_TEXT_LENGTH characters fit, even as two \u escapes each
MAX_REQUESTS = 20
"""Requests answered in one round of the supervisor, so that a flood of them cannot hold it up."""

COMMANDS = ("stop", "abort", "state", "mark", "pause", "resume", "swap", "swapped", "leave_films")
"""All from `mark` to `swapped` are kept as the operator's events; `leave_films` ends the wait for cameras."""
MAX_TEXT_LENGTH = 300


class Request(NamedTuple):
    """A command with its text, "" for most, and its time in host_ns."""

    command: str
    text: str
    host_ns: int


def _signature(key: bytes, request: Request, nonce: str) -> str:
    return hmac.new(key, json.dumps([*request, nonce]).encode(), hashlib.sha256).hexdigest()


def signed(key: bytes, command: str, text: str = "") -> bytes:
    """Return a signed request that is valid once, for a few seconds."""
    request, nonce = Request(command, text, host_ns()), secrets.token_hex(16)
    fields = request._asdict() | {"nonce": nonce, "signature": _signature(key, request, nonce)}
    return json.dumps(fields).encode()


class ControlServer:
    """The supervisor's end of the control socket."""

    def __init__(self, endpoint: str) -> None:
        """Write the key, then bind the endpoint (`ipc://`, in a private folder)."""
        self._key = secrets.token_bytes(32)
        self._nonces: dict[str, int] = {}
        self._key_file = Path(endpoint.removeprefix("ipc://")).with_name(KEY)
        self._key_file.unlink(missing_ok=True)
        with open(self._key_file, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(self._key)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 500)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_REQUEST_BYTES)
        self._socket.bind(endpoint)

    def requests(
        self, state: Callable[[], dict[str, Any]], handle: Callable[[Request], None] = lambda _: None
    ) -> list[str]:
        """Answer all pending requests with the state; return the valid commands.

        Each request is passed to `handle` before it is answered: an answer means that it was carried out.
        """
        commands: list[str] = []
        for _ in range(MAX_REQUESTS):
            if not self._socket.poll(0):
                break
            parts = self._socket.recv_multipart()
            request = self._checked(parts[0]) if len(parts) == 1 else None
            if request is None:
                self._socket.send(json.dumps({"ok": False, "error": "refused"}).encode())
                continue
            commands.append(request.command)
            try:
                handle(request)
            except (CaptureError, OSError, StorageError) as error:
                answer: dict[str, Any] = {"ok": False, "error": f"it could not be kept ({error})"}
            else:
                answer = {"ok": True, **state()}
            self._socket.send(json.dumps(answer).encode())
        return commands

    def _checked(self, message: bytes) -> Request | None:
        """Return the request of a message; None if it is malformed, wrongly signed, too old or a replay."""
        try:
            fields = parse_object(message, most_bytes=MAX_REQUEST_BYTES)
            request = Request(str(fields["command"]), str(fields["text"]), int(fields["host_ns"]))
            nonce, signature = str(fields["nonce"]), str(fields["signature"]).encode()
        except (ValueError, KeyError, TypeError):
            return None
        now = host_ns()
        self._nonces = {used: at for used, at in self._nonces.items() if now - at <= 2 * FRESH_NS}
        is_signed = hmac.compare_digest(signature, _signature(self._key, request, nonce).encode())
        if not is_signed or abs(now - request.host_ns) > FRESH_NS or nonce in self._nonces:
            return None
        if request.command not in COMMANDS or len(request.text) > MAX_TEXT_LENGTH:
            return None
        self._nonces[nonce] = now
        return request

    def close(self) -> None:
        """Close the endpoint and delete the key."""
        self._context.destroy()
        self._key_file.unlink(missing_ok=True)


def running(data: Path | None = None) -> list[tuple[str, Path]]:
    """Return id and control socket of this user's running recordings, in one data folder or in all."""
    recordings = []
    for endpoint in sorted(runtime_root().glob("*/control")):
        state = ask(endpoint, "state")
        if state is not None and is_in(state["path"], data):
            recordings.append((str(state["recording"]), endpoint))
    return recordings


def is_in(recording: str | Path, data: Path | None) -> bool:
    """Return whether a recording is in a data folder; True if `data` is None."""
    return data is None or Path(recording).resolve().parent == data.resolve()


def ask(endpoint: Path, request: str, text: str = "", *, limit_ms: int = ANSWER_MS) -> dict[str, Any] | None:
    """Send one request; return the answer, or None if it was refused or none came in time."""
    try:
        key = endpoint.with_name(KEY).read_bytes()
    except OSError:
        return None
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(f"ipc://{endpoint}")
        socket.send(signed(key, request, text))
        answer = parse_object(socket.recv()) if socket.poll(limit_ms) else {}
    return answer if answer.get("ok") else None


def find(recording: str | None, data: Path | None = None) -> tuple[str, Path]:
    """Return id and control socket of a recording, or of the only running one. Raises NotRunning."""
    recordings = running(data)
    matches = [(name, endpoint) for name, endpoint in recordings if recording in (None, name)]
    if len(matches) != 1:
        raise NotRunning(recording, [name for name, _ in recordings])
    return matches[0]


def wait_for_ledger(endpoint: Path, *, limit_s: float = inf) -> dict[str, Any] | None:
    """Wait until every packet of an ending recording is accounted for; return its last state.

    Videos may still be copied then. Also returns when the recorder has ended, or after `limit_s`.
    """
    state: dict[str, Any] | None = None
    end_s = time.monotonic() + limit_s
    while is_running(endpoint.parent) and time.monotonic() < end_s:
        state = ask(endpoint, "state", limit_ms=1000) or state
        if state is not None and state["ledger_closed"]:
            break
        time.sleep(POLL_S)
    return state
