"""Connections to the app: half of a request ends, one visitor takes no place from another. Over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kitchensync.recipe_app.errors import TooOften
from kitchensync.recipe_app.web.app import create_app
from kitchensync.recipe_app.web.door import connections, networks, tls
from kitchensync.recipe_app.web.door.connections import Connections
from kitchensync.recipe_app.web.door.networks import LanePlace, Lanes, network_of

SOON_S = 0.3


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for."""
    for name in ("HEAD_S", "REST_S", "UNREAD_S"):
        monkeypatch.setattr(connections, name, SOON_S)


@contextlib.contextmanager
def connected(url: str, source: str = "127.0.0.1") -> Iterator[socket.socket]:
    host, port = url.partition("//")[2].split(":")
    with socket.create_connection((host, int(port)), 20, (source, 0)) as connection:
        yield connection


def said_before_the_end(connection: socket.socket) -> bytes:
    """Read until the server closes the connection; fail after 20 s."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            said += part
    return said


@contextlib.contextmanager
def dripping(connection: socket.socket, part: bytes) -> Iterator[None]:
    """Send a little now and then until the server has closed the connection."""
    end = threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            while not end.wait(SOON_S / 10):
                connection.sendall(part)

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


HEAD = b"GET /api/v1/time HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("beginning", [b"", b"G", HEAD, HEAD + b"\r\n", HEAD + b"\r\n" + HEAD])
def test_half_a_head_ends_however_slowly_the_rest_comes(kitchen: Any, beginning: bytes) -> None:
    with connected(kitchen.url) as connection:
        connection.sendall(beginning)
        with dripping(connection, b"x: y\r\n" if beginning.startswith(b"GET") else b""):
            said = said_before_the_end(connection)
    assert said.count(b"HTTP/1.1 200 OK") == beginning.count(b"\r\n\r\n")


def test_what_still_comes_after_a_refusal_is_thrown_away_for_a_while(kitchen: Any) -> None:
    head = b"POST /api/v1/ops HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    with connected(kitchen.url) as connection:
        connection.sendall(head + b"content-length: 100000000\r\n\r\n" + b"x" * 5_000_000)
        with dripping(connection, b"x"):
            assert b" 401 " in said_before_the_end(connection)


def test_who_reads_nothing_of_an_answer_is_not_waited_for(kitchen: Any) -> None:
    request = HEAD.replace(b"/api/v1/time", b"/locales/ar.json") + b"\r\n"
    with connected(kitchen.url) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

        def ask_for_ever() -> None:
            while True:
                connection.sendall(request * 100)

        with pytest.raises(ConnectionError):  # not the time-out of this side
            ask_for_ever()


@pytest.mark.slow
def test_too_many_of_one_visitor_end_his_oldest(kitchen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_PER_NETWORK", 3)
    monkeypatch.setattr(connections, "HEAD_S", 600)
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(connected(kitchen.url))
        his = [stack.enter_context(connected(kitchen.url, "127.0.0.2")) for _ in range(8)]
        assert [said_before_the_end(one) for one in his[:5]] == [b""] * 5
        for one in (other, *his[5:]):
            one.sendall(HEAD + b"connection: close\r\n\r\n")
            assert said_before_the_end(one).startswith(b"HTTP/1.1 200 OK")


class Line:
    """A connection that only remembers that it was ended."""

    def __init__(self, network: str, *, idle: bool = True) -> None:
        self.network, self.idle, self.ended = network, idle, False

    def end(self) -> None:
        self.ended = True


def test_whoever_has_the_most_makes_room() -> None:
    known = Connections(most=10, most_per_network=8)
    flood, others = [Line("flood") for _ in range(8)], [Line(f"other {number}") for number in range(3)]
    for line in (*others[:2], *flood, others[2]):
        known.add(line)
    assert [line.ended for line in flood] == [True] + [False] * 7
    assert not any(line.ended for line in others)
    known.remove(flood[0])
    known.remove(flood[0])
    busy = [Line("busy", idle=False) for _ in range(9)]
    alone = Connections(most=100, most_per_network=8)
    for line in busy:
        alone.add(line)
    assert [line.ended for line in busy] == [False] * 8 + [True]  # what is being answered is not cut off


def test_a_visitor_is_an_address_or_what_a_network_gives_one() -> None:
    assert network_of("192.168.1.7") == network_of("::ffff:192.168.1.7") == "192.168.1.7"
    assert (
        network_of("2001:db8:1:2:3::1")
        == network_of("2001:db8:1:2:ffff::9%eth0")
        != network_of("2001:db8:1:3::1")
    )
    assert network_of("testclient") == "testclient"


@pytest.mark.slow
def test_half_a_handshake_ends_and_a_whole_one_is_served(
    kitchen: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 2.0)  # a handshake of a loaded computer
    made = tls.credentials(
        tmp_path / "tls", tls.own_names("127.0.0.1"), now=datetime.datetime.now(datetime.UTC)
    )
    url = kitchen.serve(create_app(kitchen.tools), ssl_certfile=made.certificate, ssl_keyfile=made.key)
    for beginning in (b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"):
        with connected(url) as connection:
            connection.sendall(beginning)
            assert b"HTTP" not in said_before_the_end(connection)
    trusting = ssl.create_default_context(cafile=str(made.authority))
    with httpx.Client(verify=trusting, trust_env=False, base_url=url.replace("http:", "https:")) as client:
        for _ in range(20):
            assert client.get("/api/v1/time").status_code == 200
    with connected(url) as plain, trusting.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
        connection.sendall(HEAD[:9])
        assert said_before_the_end(connection) == b""


def test_a_place_among_the_requests_of_a_network_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "TURN_S", 0.05)

    async def play() -> list[str]:
        lanes, said = Lanes(2), []
        for network in ("a", "a", "b", "a"):
            try:
                await lanes.enter(network)
            except TooOften:
                said.append(network)
        waits = asyncio.create_task(lanes.enter("a"))
        await asyncio.sleep(0)
        lanes.leave("a")
        await waits
        for network in ("a", "a", "b"):
            lanes.leave(network)
        await lanes.enter("a")
        return said

    assert asyncio.run(play()) == ["a"]


def test_networks_take_turns_however_much_one_of_them_asks() -> None:
    async def play() -> list[str]:
        lanes, served = Lanes(2, 3), []

        async def ask(network: str) -> None:
            await lanes.enter(network)
            served.append(network)

        inside = [asyncio.create_task(ask(one)) for one in "aab"]
        flood = [asyncio.create_task(ask(one)) for one in ["b"] * 20 + ["c"] * 20]
        await asyncio.sleep(0)
        newcomer = asyncio.create_task(ask("new"))
        await asyncio.sleep(0)
        for network in "aab":
            lanes.leave(network)
            await asyncio.sleep(0)
        assert newcomer.done()
        for task in (*inside, *flood):
            task.cancel()
        return served

    assert asyncio.run(play()) == ["a", "a", "b", "b", "c", "new"]


def test_who_keeps_a_request_waiting_keeps_no_place() -> None:
    """Half of a body, or an answer that nobody reads, from as many addresses as there are places."""

    async def play() -> None:
        lanes, sender = Lanes(1, 1), asyncio.Event()

        async def receive() -> dict[str, str]:
            await sender.wait()
            return {"type": "http.request"}

        async def send(_: object) -> None:
            await sender.wait()

        receiving, answering = LanePlace(lanes, "a"), LanePlace(lanes, "b")
        await receiving.take()
        body = asyncio.create_task(receiving.receiving(receive)())
        await asyncio.sleep(0)
        await answering.take()
        answer = asyncio.create_task(answering.sending(send)({"type": "http.response.body"}))
        await asyncio.sleep(0)
        await lanes.enter("c")
        sender.set()
        await answer
        await asyncio.sleep(0)
        assert not body.done(), "the work on what came waits for its turn"
        lanes.leave("c")
        await body
        receiving.end()
        await lanes.enter("c")

    asyncio.run(asyncio.wait_for(play(), 10))
