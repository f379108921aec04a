"""Requests to a running recording from another process of the same user: stop, and how it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import zmq

from capture.errors import NotRunning
from capture.plan import runtime_root

ANSWER_MS = 3000


class ControlServer:
    """The supervisor's side of control; the socket's folder is private, so only its user can ask."""

    def __init__(self, endpoint: str) -> None:
        """Bind the endpoint."""
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 500)
        self._socket.bind(endpoint)

    def requests(self, state: dict[str, Any]) -> list[str]:
        """Answer what was asked since the last call; return the requests that were understood."""
        understood = []
        while self._socket.poll(0):
            request = self._socket.recv()
            known = request in (b"stop", b"state")
            if known:
                understood.append(request.decode())
            self._socket.send(json.dumps({"ok": known, **state}).encode())
        return understood

    def close(self) -> None:
        """Close the endpoint."""
        self._socket.close()
        self._context.term()


def running() -> list[tuple[str, Path]]:
    """Return id and control socket of the recordings that this user is making."""
    found = []
    for endpoint in sorted(runtime_root().glob("*/control")):
        state = ask(endpoint, "state")
        if state is not None:
            found.append((str(state["recording"]), endpoint))
    return found


def ask(endpoint: Path, request: str) -> dict[str, Any] | None:
    """Send one request; return the answer, or None when nobody answers in time."""
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(f"ipc://{endpoint}")
        socket.send(request.encode())
        return json.loads(socket.recv()) if socket.poll(ANSWER_MS) else None


def stop(recording: str | None) -> str:
    """Ask a recording to stop; without an id the only one that runs. Raises NotRunning."""
    found = running()
    wanted = [(name, endpoint) for name, endpoint in found if recording in (None, name)]
    if len(wanted) != 1 or ask(wanted[0][1], "stop") is None:
        raise NotRunning(recording, [name for name, _ in found])
    return wanted[0][0]
