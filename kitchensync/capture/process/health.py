"""Health of the processes: each sends its state to the supervisor as JSON over ZeroMQ; the newest counts."""

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
"""Types of the fields of a message; the first two fields are required."""


LINGER_MS = 1000
"""Time that an ending process waits until its last message is sent."""


def _is_state(message: Health) -> bool:
    names = message.keys() & FORMS.keys()
    return (
        {"process", "host_ns"} <= names
        and all(isinstance(message[name], FORMS[name]) for name in names)
        and all(isinstance(facts, dict) for facts in message.get("streams", {}).values())
    )


class HealthSender:
    """Sends the state of one process without waiting; a lost message is replaced by the next."""

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
            return  # the supervisor is gone or busy: the next message contains the whole state again

    def close(self) -> None:
        """Send pending messages, for LINGER_MS at most, and close."""
        self._context.destroy()


class HealthBoard:
    """The newest state of every process, received by the supervisor."""

    def __init__(self, endpoint: str) -> None:
        """Bind the endpoint."""
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PULL)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(endpoint)
        self.states: dict[str, Health] = {}
        self.vanished_ns = 0
        """When a stream last vanished from the queue server, 0 for never; kept because processes restart."""

    def update(self, wait_ms: int) -> None:
        """Receive all messages, waiting up to `wait_ms` for the first."""
        while self._socket.poll(wait_ms):
            parts = self._socket.recv_multipart()
            wait_ms = 0
            with suppress(BadJson):  # not from one of our processes
                message = parse_object(b"".join(parts))
                if _is_state(message):
                    self.states[message["process"]] = message
                    self.vanished_ns = max(self.vanished_ns, message.get("vanished_ns", 0))

    def reports(self) -> dict[str, Health]:
        """Return for each process the time of its last message, its clock probes, and whether it has ended."""
        keys = ("host_ns", "probes", "answered_host_ns")
        return {
            name: {key: state.get(key) for key in keys} | {"done": bool(state.get("done"))}
            for name, state in self.states.items()
        }

    def close(self) -> None:
        """Close the endpoint."""
        self._context.destroy()
