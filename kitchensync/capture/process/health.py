"""How our processes tell the supervisor how they are: small JSON messages over ZeroMQ, newest wins."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import zmq

from kitchensync.shell.host_clock import host_ns
from kitchensync.shell.untrusted_json import BadJson, parse_object

Health = dict[str, Any]
"""{"process", "host_ns", "streams": {name: {...}}, ...}"""

FORMS: dict[str, type] = {
    "process": str,
    "host_ns": int,
    "streams": dict,
    "aside": dict,
    "problem": str,
    "refused": str,
    "vanished_ns": int,
}
"""What a message says, and as what; the first two always."""


LINGER_MS = 1000
"""So long a process that ends waits for somebody who takes its last words."""


def _is_state(message: Health) -> bool:
    told = message.keys() & FORMS.keys()
    return (
        {"process", "host_ns"} <= told
        and all(isinstance(message[name], FORMS[name]) for name in told)
        and all(isinstance(facts, dict) for facts in message.get("streams", {}).values())
    )


class HealthSender:
    """Sends the state of one process; never waits, a lost message is replaced by the next."""

    def __init__(self, endpoint: str, process: str) -> None:
        """Connect to the supervisor; it need not listen yet."""
        self._process = process
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUSH)
        self._socket.setsockopt(zmq.LINGER, LINGER_MS)
        self._socket.setsockopt(zmq.SNDHWM, 100)
        self._socket.connect(endpoint)

    def send(self, **state: Any) -> None:
        """Send the whole state of this process."""
        message = {"process": self._process, "host_ns": host_ns(), **state}
        try:
            self._socket.send(json.dumps(message).encode(), zmq.NOBLOCK)
        except zmq.Again:
            return  # the supervisor is gone or busy: the next message says it all again

    def close(self) -> None:
        """Send what waits, for LINGER_MS at most, and close."""
        self._context.destroy()


class HealthBoard:
    """The supervisor's side: the newest state of every process."""

    def __init__(self, endpoint: str) -> None:
        """Bind the endpoint."""
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PULL)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(endpoint)
        self.states: dict[str, Health] = {}
        self.vanished_ns = 0
        """When a stream vanished last from the queue server, 0 for never: who saw it may have been restarted."""

    def update(self, wait_ms: int) -> None:
        """Take in what has come, waiting up to `wait_ms` for the first message."""
        while self._socket.poll(wait_ms):
            parts = self._socket.recv_multipart()
            wait_ms = 0
            with suppress(BadJson):  # not from one of ours: the next true message says it all
                message = parse_object(b"".join(parts))
                if _is_state(message):
                    self.states[message["process"]] = message
                    self.vanished_ns = max(self.vanished_ns, message.get("vanished_ns", 0))

    def heard(self) -> dict[str, Health]:
        """Report of each process when it told last how it is, whether it ended, and what its clock probes brought."""
        told = ("host_ns", "probes", "answered_host_ns")
        return {
            name: {key: state.get(key) for key in told} | {"done": bool(state.get("done"))}
            for name, state in self.states.items()
        }

    def close(self) -> None:
        """Close the endpoint."""
        self._context.destroy()
