"""Requests to the app over HTTP: bodies of whoever has a right to send them, and heads of anybody."""

from __future__ import annotations

import contextlib
import functools
import json
import random
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from mutations import mutated, mutated_json
from registry import OPENED, parser

sys.path.append(str(Path(__file__).parents[1] / "attack"))

from target import app, let_in

ROOM = 16_000
NO_ROOM = 507
"""The disk of this computer leaves no room: said, and no fault of the app."""


@functools.cache
def _served() -> tuple[str, dict[str, str], dict[str, str]]:
    """Serve an app until this process ends; return its address, and the headers of a tablet and of the admin."""
    folder = OPENED.enter_context(tempfile.TemporaryDirectory(prefix="fuzz-app-"))
    url, invite, _ = OPENED.enter_context(app(Path(folder)))
    _, tablet, desk = let_in(url, invite)
    return url, tablet, desk


@functools.cache
def _client() -> httpx.Client:
    return httpx.Client(base_url=_served()[0], trust_env=False, timeout=60)


@functools.cache
def _routes() -> tuple[list[tuple[str, str, Any]], list[tuple[str, str, Any]]]:
    """Return what a tablet and the desk may send: method, path, and an example of the body."""
    said = _client().get("/api/v1/openapi.json").json()
    tablet: list[tuple[str, str, Any]] = []
    desk: list[tuple[str, str, Any]] = []
    for path, methods in sorted(said["paths"].items()):
        for method, about in sorted(methods.items()):
            content = about.get("requestBody", {}).get("content", {})
            if "sign-out" in path or not content:
                continue
            schema = next(iter(content.values())).get("schema", {})
            row = (method.upper(), path, _example(schema, said.get("components", {}).get("schemas", {}), 0))
            (desk if "/desk/" in path else tablet).append(row)
    return tablet, desk


def _example(schema: dict[str, Any], known: dict[str, Any], depth: int) -> Any:
    """Make a body that a schema allows, or one that is near to it."""
    if "$ref" in schema:
        schema = known.get(schema["$ref"].rpartition("/")[2], {})
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return _example(schema[word][0], known, depth)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if schema.get("type") == "object" or "properties" in schema:
        if depth > 6:
            return {}
        return {name: _example(one, known, depth + 1) for name, one in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [_example(schema.get("items", {}), known, depth + 1)] if depth < 6 else []
    if "pattern" in schema:
        return "01890a5d-ac96-774b-bcce-b302099a8057"
    return {"integer": 1, "number": 1.5, "boolean": True, "string": "a"}.get(schema.get("type", ""))


def _body_of(which: int) -> Any:
    def make(rng: random.Random) -> bytes:
        method, path, body = rng.choice(_routes()[which])
        for name in ("{", "}"):
            path = path.replace(name, "")
        right = json.dumps(body).encode()
        wrong = mutated_json(right, rng) if rng.random() < 0.7 else mutated(right, rng)
        return f"{method} {path}\n".encode() + wrong[: 1 << 17]

    return make


def _send(content: bytes, headers: dict[str, str]) -> None:
    head, _, body = content.partition(b"\n")
    method, _, path = head.decode().partition(" ")
    length = {"content-type": "application/json"}
    status = _client().request(method, path, content=body, headers=headers | length).status_code
    assert status < 500 or status == NO_ROOM, f"{status} to {method} {path}"


@parser("bodies that a paired tablet sends", make=_body_of(0), apart=True)
def tablet_bodies(content: bytes) -> None:
    _send(content, _served()[1])


@parser("bodies that the admin sends from the desk", make=_body_of(1), apart=True)
def desk_bodies(content: bytes) -> None:
    _send(content, _served()[2])


_HEADS = (
    b"POST /api/v1/desk/sign-in HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b'content-length: 34\r\n\r\n{"pseudonym": "a", "password": "b"}',
    b"GET /t/welcome HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: ks_device=a; ks_login=b\r\n"
    b"accept-language: de;q=0.5, ar\r\n\r\n",
    b"POST /api/v1/pair HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"
    b'5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n',
    b'GET /static/main.js?v=1 HTTP/1.1\r\nhost: 127.0.0.1\r\nrange: bytes=0-10\r\nif-none-match: "a"\r\n\r\n',
)


@parser("requests of anybody, heads and all", seeds=lambda: list(_HEADS), apart=True)
def raw_requests(content: bytes) -> None:
    place = urlsplit(_served()[0])
    with socket.create_connection((place.hostname, place.port), 20) as sock, contextlib.suppress(OSError):
        sock.sendall(content[:ROOM])
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while part := sock.recv(65536):
            answer += part
        status = answer.split(b" ", 2)[1:2]
        assert not status or status[0] < b"500", status
    if len(content) % 50 == 0:  # and others are still answered
        assert _client().get("/api/v1/time").status_code == 200
