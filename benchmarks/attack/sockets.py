"""Connections of somebody who means harm: from an address of their own choice, with any bytes, read or not."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from registry import Aim, Seen

PATIENCE_S = 75.0
"""Half of a request that is kept longer than this is said to be kept for ever."""


def head(method: str, path: str, length: int | None = None, more: str = "") -> bytes:
    """Return the head of a request with JSON."""
    size = "" if length is None else f"content-length: {length}\r\ncontent-type: application/json\r\n"
    return f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{size}{more}\r\n".encode()


@contextlib.asynccontextmanager
async def connected(
    aim: Aim, source: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect from an address."""
    reader, writer = await asyncio.open_connection(aim.host, aim.port, local_addr=(source, 0))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def status_of(reader: asyncio.StreamReader, seconds: float = PATIENCE_S) -> str:
    """Read an answer whole, so that the connection can be used again; return its status."""
    try:
        async with asyncio.timeout(seconds):
            first = await reader.readuntil(b"\r\n\r\n")
            fields = first.lower().split(b"\r\n")
            length = next((int(one[15:]) for one in fields if one.startswith(b"content-length:")), 0)
            await reader.readexactly(length)
            return first.split(b" ", 2)[1].decode()
    except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError) as error:
        return type(error).__name__


async def at_once(many: int, until: float, one: Callable[[int], Awaitable[None]]) -> None:
    """Do something over and over, so many at the same time, until the time is over."""

    async def again(number: int) -> None:
        while time.monotonic() < until:
            try:
                await one(number)
            except OSError:
                await asyncio.sleep(0.05)  # refused or cut off: the next one

    await asyncio.gather(*(again(number) for number in range(many)))


async def kept_open(aim: Aim, source: str, seen: Seen, beginning: bytes, drip: bytes) -> None:
    """Send half of a request, then a little each second; note how long that is put up with."""
    began = time.monotonic()
    with contextlib.suppress(OSError, EOFError):
        async with connected(aim, source) as (reader, writer):
            writer.write(beginning)
            while time.monotonic() - began < PATIENCE_S:
                with contextlib.suppress(TimeoutError):
                    if not await asyncio.wait_for(reader.read(65536), 1.0):
                        break
                writer.write(drip)
                await asyncio.wait_for(writer.drain(), 1.0)
    seen.tried += 1
    seen.longest_half_s = max(seen.longest_half_s, time.monotonic() - began)
