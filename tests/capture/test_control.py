"""The control channel: who has the key is answered, once a request; nobody else is."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from capture.session.control import FRESH_NS, KEY, ControlServer, ask, signed

STATE = {"recording": "take", "streams": {}}


class Answering:
    """A control server that a thread asks for requests, as the supervisor's loop does."""

    def __init__(self, folder: Path) -> None:
        self.endpoint = folder / "control"
        self.server = ControlServer(f"ipc://{self.endpoint}")
        self.heard: list[str] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.01):
            self.heard += self.server.requests(STATE)

    def send(self, message: bytes) -> dict[str, Any]:
        with zmq.Context() as context, context.socket(zmq.REQ) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(f"ipc://{self.endpoint}")
            socket.send(message)
            assert socket.poll(5000)
            answer: dict[str, Any] = json.loads(socket.recv())
            return answer

    def finished(self) -> list[str]:
        """End the loop and return all that it heard: an answer is out before its request is noted here."""
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
    assert ask(answering.endpoint, "state") == {"ok": True, **STATE}
    assert ask(answering.endpoint, "stop") is not None
    assert answering.finished() == ["state", "stop"]


def test_the_key_is_private_and_gone_at_the_end(answering: Answering) -> None:
    key = answering.endpoint.with_name(KEY)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    answering.server._key_file.unlink()
    assert ask(answering.endpoint, "state") is None


def test_unsigned_and_foreign_requests_are_refused_and_learn_nothing(answering: Answering) -> None:
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


def test_a_request_that_was_overheard_works_no_second_time(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = signed(answering.endpoint.with_name(KEY).read_bytes(), "stop")
    assert answering.send(message)["ok"] is True
    assert answering.send(message)["ok"] is False
    late = signed(answering.endpoint.with_name(KEY).read_bytes(), "stop")
    now = json.loads(late)["host_ns"]
    monkeypatch.setattr("capture.session.control.host_ns", lambda: now + 3 * FRESH_NS)
    assert answering.send(late)["ok"] is False
    assert answering.send(message)["ok"] is False
    assert answering.heard == ["stop"]
