"""The control channel answers each request with the right key once, and no other."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from kitchensync.capture.process.health import HealthBoard
from kitchensync.capture.session.control import FRESH_NS, KEY, ControlServer, ask, signed

STATE = {"recording": "take", "streams": {}}

LIMIT_MS = 60_000


class Answering:
    """A control server polled by a thread, as in the supervisor's loop."""

    def __init__(self, folder: Path) -> None:
        self.endpoint = folder / "control"
        self.server = ControlServer(f"ipc://{self.endpoint}")
        self.heard: list[str] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.01):
            self.heard += self.server.requests(lambda: STATE)

    def send(self, message: bytes) -> dict[str, Any]:
        with zmq.Context() as context, context.socket(zmq.REQ) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(f"ipc://{self.endpoint}")
            socket.send(message)
            assert socket.poll(LIMIT_MS)
            answer: dict[str, Any] = json.loads(socket.recv())
            return answer

    def finished(self) -> list[str]:
        """End the loop and return all requests; an answer is sent before its request is noted here."""
        self._end.set()
        self._thread.join()
        return self.heard

    def close(self) -> None:
        self.finished()
        self.server.close()


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Answering]:
    made = Answering(tmp_path)
    yield made
    made.close()


def test_a_signed_request_is_answered_with_the_state(answering: Answering) -> None:
    assert ask(answering.endpoint, "state", limit_ms=LIMIT_MS) == {"ok": True, **STATE}
    assert ask(answering.endpoint, "stop", limit_ms=LIMIT_MS) is not None
    assert answering.finished() == ["state", "stop"]


def test_the_key_is_private_and_gone_at_the_end(answering: Answering) -> None:
    key = answering.endpoint.with_name(KEY)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    answering.server._key_file.unlink()
    assert ask(answering.endpoint, "state", limit_ms=LIMIT_MS) is None


def test_unsigned_and_foreign_requests_are_refused_without_information(answering: Answering) -> None:
    key = answering.endpoint.with_name(KEY).read_bytes()
    good = json.loads(signed(key, "stop"))
    refused = [
        b"stop",
        b"{}",
        b"[1]",
        signed(bytes(32), "stop"),
        signed(key, "format the disk"),
        json.dumps({**good, "command": "abort"}).encode(),
        json.dumps({**good, "host_ns": good["host_ns"] + 1}).encode(),
        json.dumps({**good, "nonce": "other"}).encode(),
    ]
    for message in refused:
        assert answering.send(message) == {"ok": False, "error": "refused"}
    assert answering.heard == []


def test_a_replayed_request_is_refused(answering: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    message = signed(answering.endpoint.with_name(KEY).read_bytes(), "stop")
    assert answering.send(message)["ok"] is True
    assert answering.send(message)["ok"] is False
    late = signed(answering.endpoint.with_name(KEY).read_bytes(), "stop")
    now = json.loads(late)["host_ns"]
    monkeypatch.setattr("kitchensync.capture.session.control.host_ns", lambda: now + 3 * FRESH_NS)
    assert answering.send(late)["ok"] is False
    assert answering.send(message)["ok"] is False
    assert answering.heard == ["stop"]


ODD = [
    b'{"command": "state", "host_ns": Infinity, "nonce": "n", "signature": "s"}',
    b'{"command": "state", "host_ns": 1e400, "nonce": "n", "signature": "s"}',
    b'{"command": "state", "host_ns": ' + b"9" * 2000 + b', "nonce": "n", "signature": "s"}',
    b"[" * 4000,
    b'{"a":' * 700,
    b"\xff\xfe",
    b"",
    b'{"command": "\\ud800", "host_ns": 1, "nonce": "\\ud800", "signature": "\\ud800"}',
    b'{"command": ["state"], "host_ns": null, "nonce": {}, "signature": 1}',
]


@pytest.mark.parametrize("message", ODD, ids=range(len(ODD)))
def test_an_odd_frame_is_refused_and_the_next_one_answered(answering: Answering, message: bytes) -> None:
    assert answering.send(message) == {"ok": False, "error": "refused"}
    assert ask(answering.endpoint, "state", limit_ms=LIMIT_MS) == {"ok": True, **STATE}


def test_a_multipart_or_oversized_message_does_no_harm(answering: Answering) -> None:
    with zmq.Context() as context:
        for parts in ([b"a", b"b"], [b"x" * 1_000_000], [b""] * 500):
            with context.socket(zmq.DEALER) as socket:
                socket.setsockopt(zmq.LINGER, 0)
                socket.connect(f"ipc://{answering.endpoint}")
                socket.send_multipart([b"", *parts])
                socket.send_multipart(parts)
                socket.poll(200)
    assert ask(answering.endpoint, "state", limit_ms=LIMIT_MS) == {"ok": True, **STATE}


def test_invalid_health_messages_are_ignored(tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/health"
    board = HealthBoard(endpoint)
    with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.connect(endpoint)
        for message in [*ODD, b'{"process": "p", "host_ns": 1, "streams": {"pv": 5}}', b'{"process": "p"}']:
            socket.send(message)
        socket.send_multipart([b"a"] * 300)
        true = {"process": "drainer 0", "host_ns": 5, "streams": {"pv": {"stored": 3}}, "problem": ""}
        socket.send(json.dumps(true).encode())
        while not board.states:
            board.update(1000)
    assert board.states == {"drainer 0": true}
    board.close()
