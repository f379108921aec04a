"""Bodies of requests: none is read before it is known who asks, half a one ends, a large one is parsed elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message

from kitchensync.recipe_app.people import quotas
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.web.app import ROUTES
from kitchensync.recipe_app.web.door import networks, request_bodies, strings_apart
from kitchensync.recipe_app.web.door.request_bodies import MAX_BODY, MAX_FORM, timely
from kitchensync.recipe_app.web.door.strings_apart import NotStrings, strings_in
from kitchensync.storage.disk import free_space as room

WRITES = [route for route in ROUTES if route.method not in ("GET", "HEAD")]
LARGE = 59 << 20


def head_alone(url: str, method: str, path: str, length: int) -> int:
    """Send the head of a request and no byte of its body; return the status of the answer."""
    host, port = url.removeprefix("http://").split(":")
    said = f"{method} {path} HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"{said}content-length: {length}\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            return int(answer.readline().split()[1])


def test_who_asks_is_known_before_the_first_byte_of_a_body(kitchen: Any) -> None:
    """Nobody waits for a body here: the answer comes though none is ever sent."""
    asked = {}
    for route in WRITES:
        path = re.sub(r"\{[a-z]+(:path)?\}", "0" * 64, route.path)
        asked[route.path] = (route.access, head_alone(kitchen.url, route.method, path, LARGE))
    public = {path for path, (access, _) in asked.items() if access is Access.PUBLIC}
    assert {asked[path][1] for path in public} == {413}
    assert {asked[path][1] for path in asked.keys() - public} == {401}
    assert len(asked) == len(WRITES) > 20


def test_anybody_may_send_as_much_as_a_sign_in_takes(kitchen: Any) -> None:
    client, address = kitchen.client(), "/api/v1/desk/sign-in"
    body = {"pseudonym": "a", "password": "x" * 150}
    assert client.post(address, json=body).status_code == 403
    large = json.dumps({**body, "more": "x" * MAX_FORM}).encode()
    said = {"content-type": "application/json"}
    assert client.post(address, content=large, headers=said).status_code == 413
    assert client.post(address, content=iter([large]), headers=said).status_code == 413


def read(parts: list[tuple[float, bytes]]) -> None:
    """Read a body whose parts come after so many seconds, and which has no end."""

    async def come(queue: asyncio.Queue[bytes]) -> None:
        for wait_s, part in parts:
            await asyncio.sleep(wait_s)
            queue.put_nowait(part)

    async def whole() -> None:
        queue: asyncio.Queue[bytes] = asyncio.Queue()

        async def receive() -> Message:
            return {"type": "http.request", "body": await queue.get(), "more_body": True}

        receive_in_time, coming = timely(receive, MAX_BODY), asyncio.create_task(come(queue))
        try:
            while True:
                await receive_in_time()
        finally:
            coming.cancel()

    asyncio.run(asyncio.wait_for(whole(), 60))


@pytest.mark.parametrize("parts", [[], [(0.0, b"{")], [(0.01, b"x")] * 10_000, [(0.0, b"x" * 40_000)]])
def test_half_a_body_ends(parts: list[tuple[float, bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing, a byte, a byte now and then, much and then nothing."""
    monkeypatch.setattr(request_bodies, "WINDOW_NS", 100_000_000)
    with pytest.raises(HTTPException) as refused:
        read(parts)
    assert refused.value.status_code == 408


def test_a_slow_network_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 KiB in 15 s, by a clock that goes on while it is waited."""
    now = [0]
    monkeypatch.setattr(request_bodies, "host_ns", lambda: now[0])

    async def receive() -> Message:
        now[0] += 15_000_000_000
        return {"type": "http.request", "body": b"x" * 32_768, "more_body": True}

    async def whole() -> int:
        receive_in_time = timely(receive, MAX_BODY)
        return sum([len((await receive_in_time())["body"]) for _ in range(8)])

    assert asyncio.run(whole()) == MAX_BODY


def strings(path: Path, content: bytes) -> dict[str, Any]:
    path.write_bytes(content)
    return strings_in(path)


def test_strings_come_out_of_the_other_process_as_they_are(tmp_path: Path) -> None:
    document = {"name": "ä\n\x00", "files": {"a/b.json": "{}", "": '"\ud800"', "x": "é" * 100_000}, "no": {}}
    assert strings(tmp_path / "x", json.dumps(document).encode()) == document
    assert strings(tmp_path / "x", b"{}") == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"a": 1}',
        b'{"a": ["b"]}',
        b'{"a": {"b": {}}}',
        b"\xff",
        b'{"a": "',
        b"[" * 100_000,
        json.dumps({str(number): "" for number in range(501)}).encode(),
        json.dumps({"x" * strings_apart.MOST_NAMES: ""}).encode(),
    ],
)
def test_what_is_not_strings_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(NotStrings):
        strings(tmp_path / "x", content)


@pytest.mark.slow
def test_small_values_without_end_cost_the_app_nothing(tmp_path: Path) -> None:
    """59 MiB of empty lists are 1.7 GB when they are parsed."""
    with pytest.raises(NotStrings):
        strings(tmp_path / "x", b'{"a": [' + b"[]," * ((59 << 20) // 3) + b"[]]}")


def test_a_parser_that_is_killed_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(OSError, match="does not start"):
        strings(tmp_path / "x", b"{}")


def test_uploads_leave_the_room_that_recordings_need(kitchen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, content = kitchen.choose()["recording"], b"sound"
    address = f"/api/v1/voice/{recording}/{hashlib.sha256(content).hexdigest()}"
    sound = {"content-type": "audio/webm"}
    desk, full = kitchen.desk("researcher"), shutil.disk_usage(kitchen.data)._replace(free=room.KEPT_FREE)
    monkeypatch.setattr(room.shutil, "disk_usage", lambda _: full)
    refused = [
        kitchen.tablet.put(address, content=content, headers=sound),
        kitchen.tablet.put(address, content=iter([content]), headers=sound),
        desk.post("/api/v1/desk/dumps", json={"text": "x"}),
        desk.post("/api/v1/desk/collections", json={"name": "x", "files": {}}),
    ]
    assert [answer.status_code for answer in refused] == [507] * 4
    assert os.strerror(28) in refused[0].json()["error"]
    kitchen.post(kitchen.operation(recording, "note", {"text": "still taken"}))
    monkeypatch.undo()
    assert kitchen.tablet.put(address, content=content, headers=sound).status_code == 200
    assert [path.name for path in kitchen.data.iterdir() if path.name.startswith(".")] == []


def test_a_tablet_and_a_person_send_so_much_a_day_and_more_on_the_next(
    kitchen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "OF_A_TABLET", 3000)
    monkeypatch.setattr(quotas, "OF_THE_DESK", 3000)
    recording = kitchen.choose()["recording"]

    def send(client: httpx.Client, number: int, *, chunked: bool = False) -> int:
        content = bytes([number]) * 1000
        address = f"/api/v1/voice/{recording}/{hashlib.sha256(content).hexdigest()}"
        body: Any = iter([content]) if chunked else content
        return client.put(address, content=body, headers={"content-type": "audio/webm"}).status_code

    assert [send(kitchen.tablet, number) for number in range(5)] == [200, 200, 200, 409, 409]
    other = kitchen.client(authorization=f"Bearer {kitchen.pair('Other')[1]}")
    assert send(other, 6) == 422  # nobody is signed in on it, and it has no part in this recording
    signed = other.post("/api/v1/sign-in", json={"person": kitchen.basil, "pin": "482916", "program": True})
    other.headers["x-kitchensync-login"] = signed.json()["token"]
    assert send(other, 7) == 409  # the same person, on another tablet
    kitchen.now_ns += 8 * 3600 * 1_000_000_000
    assert [send(kitchen.tablet, number) for number in (8, 9)] == [200, 409]
    kitchen.now_ns += 24 * 3600 * 1_000_000_000
    assert send(kitchen.tablet, 9, chunked=True) == 409  # it may be 8 MiB, as far as anybody knows
    assert send(kitchen.tablet, 9) == 200
    desk = kitchen.desk("researcher")
    dumps = [desk.post("/api/v1/desk/dumps", json={"text": "x" * 2000}).status_code for _ in range(2)]
    assert dumps == [422, 422]  # what is not kept counts for nothing


@pytest.mark.slow
def test_a_tablet_that_sends_half_of_its_sounds_keeps_no_other_waiting(
    kitchen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, token = kitchen.choose()["recording"], kitchen.pair("Slow")[1]
    host, port = kitchen.url.removeprefix("http://").split(":")
    said = f"PUT /api/v1/voice/{recording}/{'0' * 64} HTTP/1.1\r\nhost: {host}:{port}\r\n"
    said += f"authorization: Bearer {token}\r\ncontent-type: audio/webm\r\ncontent-length: 8000000\r\n\r\nx"
    content = b"sound"
    address = f"/api/v1/voice/{recording}/{hashlib.sha256(content).hexdigest()}"
    monkeypatch.setattr(networks, "TURN_S", 0.2)
    with contextlib.ExitStack() as stack:
        waiting = []
        for _ in range(6):
            waiting.append(stack.enter_context(socket.create_connection((host, int(port)), timeout=30)))
            waiting[-1].sendall(said.encode())
        # One has the turn, not always the first; the others of the same tablet are refused.
        assert any(b" 429 " in connection.recv(4096) for connection in reversed(waiting))
        answer = kitchen.tablet.put(address, content=content, headers={"content-type": "audio/webm"})
        assert answer.status_code == 200
