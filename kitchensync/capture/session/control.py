"""Requests to a running recording from another process of the same user: steer it, and ask how it is.

The socket and a key lie in the recording's private runtime folder. Every request is signed with the key and carries
the time and a number used once: without the key nobody is answered, and what was overheard works no second time.
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
"""A request that is older or younger than this is no request."""
LOOK_S = 0.2
KEY = "control.key"
MOST_BYTES, MOST_AT_ONCE = 4096, 20
"""Of one request, and of all between two looks at the recording: whoever floods is answered more slowly."""

COMMANDS = ("stop", "abort", "state", "mark", "pause", "resume", "swap", "swapped", "leave_films")
"""All from `mark` to `swapped` are kept as the operator's events; `leave_films` ends the wait for cameras."""
LONGEST_TEXT = 300


class Request(NamedTuple):
    """What was asked, with words where they belong to it, and when (host_ns)."""

    command: str
    text: str
    host_ns: int


def _signature(key: bytes, request: Request, nonce: str) -> str:
    return hmac.new(key, json.dumps([*request, nonce]).encode(), hashlib.sha256).hexdigest()


def signed(key: bytes, command: str, text: str = "") -> bytes:
    """Write a request that is valid once, for a few seconds."""
    request, nonce = Request(command, text, host_ns()), secrets.token_hex(16)
    fields = request._asdict() | {"nonce": nonce, "signature": _signature(key, request, nonce)}
    return json.dumps(fields).encode()


class ControlServer:
    """The supervisor's side of control."""

    def __init__(self, endpoint: str) -> None:
        """Make the key, then bind the endpoint (`ipc://`, in a private folder)."""
        self._key = secrets.token_bytes(32)
        self._used: dict[str, int] = {}
        self._key_file = Path(endpoint.removeprefix("ipc://")).with_name(KEY)
        self._key_file.unlink(missing_ok=True)
        with open(self._key_file, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(self._key)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 500)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
        self._socket.bind(endpoint)

    def requests(
        self, state: Callable[[], dict[str, Any]], heed: Callable[[Request], None] = lambda _: None
    ) -> list[str]:
        """Answer what was asked since the last call with the state; return the requests that were understood.

        Each is heeded before it is answered: who is answered knows that it is done.
        """
        understood: list[str] = []
        for _ in range(MOST_AT_ONCE):
            if not self._socket.poll(0):
                break
            parts = self._socket.recv_multipart()
            request = self._checked(parts[0]) if len(parts) == 1 else None
            if request is None:
                self._socket.send(json.dumps({"ok": False, "error": "refused"}).encode())
                continue
            understood.append(request.command)
            try:
                heed(request)
            except (CaptureError, OSError, StorageError) as error:
                answer: dict[str, Any] = {"ok": False, "error": f"it could not be kept ({error})"}
            else:
                answer = {"ok": True, **state()}
            self._socket.send(json.dumps(answer).encode())
        return understood

    def _checked(self, message: bytes) -> Request | None:
        """Return a request that is signed, fresh and new."""
        try:
            said = parse_object(message, most_bytes=MOST_BYTES)
            request = Request(str(said["command"]), str(said["text"]), int(said["host_ns"]))
            nonce, given = str(said["nonce"]), str(said["signature"]).encode()
        except (ValueError, KeyError, TypeError):
            return None
        now = host_ns()
        self._used = {used: at for used, at in self._used.items() if now - at <= 2 * FRESH_NS}
        right = hmac.compare_digest(given, _signature(self._key, request, nonce).encode())
        if not right or abs(now - request.host_ns) > FRESH_NS or nonce in self._used:
            return None
        if request.command not in COMMANDS or len(request.text) > LONGEST_TEXT:
            return None
        self._used[nonce] = now
        return request

    def close(self) -> None:
        """Close the endpoint; the key is of no use any more."""
        self._context.destroy()
        self._key_file.unlink(missing_ok=True)


def running(data: Path | None = None) -> list[tuple[str, Path]]:
    """Return id and control socket of the recordings that this user is making, in a data folder or in any."""
    found = []
    for endpoint in sorted(runtime_root().glob("*/control")):
        state = ask(endpoint, "state")
        if state is not None and is_in(state["path"], data):
            found.append((str(state["recording"]), endpoint))
    return found


def is_in(recording: str | Path, data: Path | None) -> bool:
    """Return whether a recording is made in a data folder; None stands for any."""
    return data is None or Path(recording).resolve().parent == data.resolve()


def ask(endpoint: Path, request: str, text: str = "", *, limit_ms: int = ANSWER_MS) -> dict[str, Any] | None:
    """Send one request; return the answer, or None when nobody does it in time or the key is not ours."""
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
    """Return id and control socket of a recording; without an id of the only one that runs. Raises NotRunning."""
    found = running(data)
    wanted = [(name, endpoint) for name, endpoint in found if recording in (None, name)]
    if len(wanted) != 1:
        raise NotRunning(recording, [name for name, _ in found])
    return wanted[0]


def wait_for_ledger(endpoint: Path, *, limit_s: float = inf) -> dict[str, Any] | None:
    """Wait until every packet of a recording that ends is accounted for; return what it told last.

    Films may still be on their way then. Ends when the recorder has gone, or after `limit_s`.
    """
    told: dict[str, Any] | None = None
    end_s = time.monotonic() + limit_s
    while is_running(endpoint.parent) and time.monotonic() < end_s:
        told = ask(endpoint, "state", limit_ms=1000) or told
        if told is not None and told["ledger_closed"]:
            break
        time.sleep(LOOK_S)
    return told
