"""The virtual kitchen stays for as long as its clients need it, and no longer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from waiting import until

from kitchensync.virtual_kitchen.headset.stream_port import ListeningPort
from kitchensync.virtual_kitchen.simulation import ALONE_S, LATEST_S, wait_for_clients

SECOND = 10**9
IDLE_PORT = 3817


class Clock(threading.Event):
    """A clock that runs on by whatever is waited; `asked_s` is when somebody asks the end."""

    def __init__(self, asked_s: float = 1e9) -> None:
        super().__init__()
        self.now_ns, self._asked_ns = 1000 * SECOND, (1000 + asked_s) * SECOND

    @property
    def passed_s(self) -> float:
        return self.now_ns / SECOND - 1000

    def wait(self, timeout: float | None = None) -> bool:
        self.now_ns += round((timeout or 0) * SECOND)
        return self.now_ns >= self._asked_ns


def stayed_s(
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    left_s: float = 0.0,
    has_all: Callable[[float], bool] = lambda _: True,
) -> float:
    """Return how long it stays for a client that leaves after `left_s`."""
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock.now_ns)
    seen_ns = lambda: min(clock.now_ns, round((1000 + left_s) * SECOND))  # noqa: E731 (two words)
    wait_for_clients(seen_ns, lambda: has_all(clock.passed_s), clock)
    return clock.passed_s


def test_it_stays_for_ten_seconds_after_the_last_client(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ALONE_S == 10.0
    assert stayed_s(monkeypatch, Clock()) == pytest.approx(10, abs=0.2)
    assert stayed_s(monkeypatch, Clock(), left_s=75.0) == pytest.approx(85, abs=0.2)


def test_it_stays_until_every_file_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stayed_s(monkeypatch, Clock(), has_all=lambda s: s > 120) == pytest.approx(120, abs=0.2)


def test_who_never_leaves_or_never_fetches_is_waited_for_five_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert LATEST_S == 300.0
    assert stayed_s(monkeypatch, Clock(), left_s=1e6) == pytest.approx(300, abs=0.2)
    assert stayed_s(monkeypatch, Clock(), has_all=lambda _: False) == pytest.approx(300, abs=0.2)


def test_a_signal_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stayed_s(monkeypatch, Clock(asked_s=3.0), left_s=1e6) == pytest.approx(3, abs=0.2)


class Port(ListeningPort):
    """Lets a client go when it says something."""

    def serve(self, client: socket.socket) -> None:
        client.recv(1)


def test_every_client_that_comes_now_and_then_is_seen_until_it_leaves() -> None:
    port = Port("127.0.0.1", 0, "test")
    port.bind()
    port.listen()
    assert port.client_seen_ns == 0
    for _ in range(3):
        came_ns = time.monotonic_ns()
        with socket.create_connection(port._socket.getsockname()) as client:
            until(lambda now_ns=came_ns: port.client_seen_ns > now_ns, "somebody")
            asked_ns = time.monotonic_ns()
            client.sendall(b"x")
            assert client.recv(1) == b""
        left_ns = time.monotonic_ns()
        assert asked_ns <= port.client_seen_ns <= left_ns
    port.refuse()
    port.finish(60)


@pytest.mark.slow
def test_a_real_client_that_still_talks_is_not_left_alone(start_kitchen: Callable[..., Any]) -> None:
    kitchen = start_kitchen("--seed", "4", "--seconds", "1", "--rings", alone_s=0.2)
    with kitchen.remote() as remote:
        with kitchen.open("accelerometer") as stream:
            assert stream.packets()
        until(lambda: kitchen.refuses(IDLE_PORT), "the end of its streams")
        for _ in range(40):
            remote.send(b"\x00")
            assert remote.read(8)
            time.sleep(0.02)
        assert kitchen.process.poll() is None
    kitchen.process.communicate(timeout=120)
    assert kitchen.process.returncode == 0, "it goes by itself once nobody is there"
    assert kitchen.truth()["streams"]["hololens/accelerometer"]["packets"] > 0
