"""Floods: large bodies, halves of requests, answers nobody reads, connections and requests without end."""

from __future__ import annotations

import asyncio
import contextlib
import time

from registry import Aim, Seen, attack
from sockets import at_once, connected, head, kept_open, status_of

LARGE = 59 << 20
PART = b'{"a": [' + b"[]," * 21_000
READS = (
    "/",
    "/t/welcome",
    "/doctor",
    "/desk/sign-in",
    "/api/v1/openapi.json",
    "/static/main.js",
    "/api/v1/me",
)
WRITES = ("/api/v1/ops", "/api/v1/desk/dumps", "/api/v1/desk/collections", "/api/v1/desk/sign-in")


@attack("59 MiB of JSON without a session, four at a time, from one address")
async def large_bodies(aim: Aim) -> Seen:
    seen = Seen()

    async def one(number: int) -> None:
        async with connected(aim, "127.1.0.1") as (reader, writer):
            writer.write(head("POST", WRITES[number], LARGE))
            with contextlib.suppress(OSError):
                for _ in range(LARGE // len(PART)):
                    writer.write(PART)
                    await asyncio.wait_for(writer.drain(), 5)
            seen.answer(await status_of(reader, 5))

    await at_once(len(WRITES), time.monotonic() + aim.seconds, one)
    return seen


@attack("300 heads of requests, a byte a second", least_s=25)
async def half_heads(aim: Aim) -> Seen:
    seen = Seen()
    beginnings = (b"", b"G", head("GET", "/")[:-2], b"GET /" + b"a" * 9000)
    await asyncio.gather(
        *(kept_open(aim, f"127.1.1.{n % 3 + 1}", seen, beginnings[n % 4], b"x") for n in range(300))
    )
    return seen


@attack("200 bodies of sign-ins and refused requests, a byte a second", least_s=45)
async def half_bodies(aim: Aim) -> Seen:
    seen = Seen()
    beginnings = (
        head("POST", "/api/v1/desk/sign-in", 4000) + b"{",
        head("POST", "/api/v1/pair", more="content-type: application/json\r\ntransfer-encoding: chunked\r\n"),
        head("POST", "/api/v1/ops", LARGE) + PART,
        head("GET", "/api/v1/time", 100_000),
    )
    await asyncio.gather(
        *(kept_open(aim, f"127.1.2.{n % 2 + 1}", seen, beginnings[n % 4], b"1") for n in range(200))
    )
    return seen


@attack("100 connections that ask and read nothing", least_s=40)
async def unread_answers(aim: Aim) -> Seen:
    seen, began = Seen(), time.monotonic()
    asked = head("GET", "/api/v1/openapi.json") * 50

    async def one(number: int) -> None:
        async with connected(aim, "127.1.3.1") as (_, writer):
            writer.transport.pause_reading()
            with contextlib.suppress(OSError):
                while not writer.is_closing() and time.monotonic() < began + aim.seconds:
                    writer.write(asked)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(writer.drain(), 1)
        seen.tried += 1

    await asyncio.gather(*(one(number) for number in range(100)))
    return seen


@attack("1,000 idle connections from four addresses, opened anew when they end")
async def idle_connections(aim: Aim) -> Seen:
    seen, until = Seen(), time.monotonic() + aim.seconds

    async def one(number: int) -> None:
        async with connected(aim, f"127.1.4.{number % 4 + 1}") as (reader, _):
            seen.tried += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1), max(0.1, until - time.monotonic()))

    await at_once(1000, until, one)
    return seen


@attack("64 connections that ask for public pages as fast as they are answered")
async def requests(aim: Aim) -> Seen:
    return await _asking(aim, 64, lambda number: f"127.1.5.{number // 64 + 1}")


@attack("the same from 16 addresses, 8 each")
async def requests_from_many(aim: Aim) -> Seen:
    return await _asking(aim, 128, lambda number: f"127.1.6.{number // 8 + 1}")


@attack("64 connections with an invented token in each request")
async def invented_tokens(aim: Aim) -> Seen:
    return await _asking(aim, 64, lambda _: "127.1.7.1", token=True)


async def _asking(aim: Aim, many: int, source: object, *, token: bool = False) -> Seen:
    seen, until = Seen(), time.monotonic() + aim.seconds
    assert callable(source)

    async def one(number: int) -> None:
        async with connected(aim, source(number)) as (reader, writer):
            turn = number
            while time.monotonic() < until:
                turn += 1
                invented = f"authorization: Bearer {time.monotonic_ns()}-{number}\r\n" if token else ""
                writer.write(head("GET", READS[turn % len(READS)], more=invented))
                status = await status_of(reader, 20)
                seen.answer(status)
                if not status.isdecimal():
                    return

    await at_once(many, until, one)
    return seen
