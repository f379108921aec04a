"""Request bodies: checked for type, size and speed; large ones are spooled to disk."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.recipe_app.web.door.networks import Lanes
from kitchensync.recipe_app.web.door.strings_apart import NotStrings, strings_in
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.disk.free_space import require_room
from kitchensync.task_graphs.errors import RecipeError

MAX_FORM = 1 << 12
"""Limit for anonymous requests, bytes: a sign-in, a code."""
MAX_BODY = 1 << 18
"""Default limit, bytes: a batch of operations, a recipe."""
WINDOW_NS = 20_000_000_000
LEAST_IN_WINDOW = 1 << 15
"""Bytes a body must bring in every window of 20 s: a stalled body ends within 40 s, a slow one continues."""
TURN_S = 60.0
"""Time a large body waits for those before it, seconds."""


class WrongKind(RecipeError):
    """A body of a media type that the route does not accept."""


class TooLarge(RecipeError):
    """A body larger than the route accepts."""


@dataclass(frozen=True)
class RequestBody:
    """The body that a route accepts: its size limit, media types besides JSON, and concurrency."""

    most: int = MAX_BODY
    media: tuple[str, ...] = ()
    at_once: int | None = None
    "Number of bodies read concurrently; others wait. None for small bodies, without a limit."
    strings: bool = False
    "Large JSON of strings only, which is spooled to disk and parsed in a separate process."

    def check(self, request: Request) -> None:
        """Check the headers. Raises WrongKind, TooLarge, BadOperation."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and kind.partition("/")[0] not in self.media:
            raise WrongKind("send application/json")
        if not request.headers.get("content-length", "0").isdecimal():
            raise BadOperation("the content length is not a number")
        if stated_bytes(request) > self.most:
            raise TooLarge("a request has at most {most} bytes", most=self.most)


def stated_bytes(request: Request) -> int:
    """Return the content length of the headers; 0 without one."""
    return int(request.headers.get("content-length", "0"))


@dataclass
class Turns:
    """Turns of large bodies on a route; each sender has one turn at a time."""

    at_once: int
    free: asyncio.Semaphore = field(init=False)
    own: Lanes = field(default_factory=lambda: Lanes(1))

    def __post_init__(self) -> None:
        self.free = asyncio.Semaphore(self.at_once)

    @contextlib.asynccontextmanager
    async def one(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn. Raises NotNow, TooOften."""
        await self.own.enter(who)
        try:
            try:
                async with asyncio.timeout(TURN_S):
                    await self.free.acquire()
            except TimeoutError as error:
                raise NotNow(
                    "another large file is being taken in; send this one again in a minute"
                ) from error
            try:
                yield
            finally:
                self.free.release()
        finally:
            self.own.leave(who)


def timely(receive: Receive, most: int, pace: Pace | None = None) -> Receive:
    """Wrap `receive` with a limit of `most` bytes and a minimum speed, counted in `pace`.

    Receiving raises fastapi.HTTPException 413 and 408.
    """
    pace = pace or Pace()

    async def receive_in_time() -> Message:
        while True:
            try:
                async with asyncio.timeout(pace.left_s()):
                    message = await receive()
            except TimeoutError:
                continue  # left_s() starts another window or raises
            pace.taken += len(message.get("body", b""))
            if pace.taken > most:
                raise HTTPException(413, f"a request has at most {most} bytes")
            return message

    return receive_in_time


@dataclass
class Pace:
    """Received bytes in total and before this window."""

    taken: int = 0
    before: int = 0
    until_ns: int = field(default_factory=lambda: host_ns() + WINDOW_NS)

    def left_s(self) -> float:
        """Return the remaining seconds; start another window after enough bytes. Raises fastapi.HTTPException."""
        if (left_ns := self.until_ns - host_ns()) > 0:
            return left_ns / 1e9
        if self.taken - self.before < LEAST_IN_WINDOW:
            raise HTTPException(408, "the request was incomplete; send it again")
        self.before, self.until_ns = self.taken, host_ns() + WINDOW_NS
        return WINDOW_NS / 1e9


class SpooledRequest(Request):
    """A request whose JSON is spooled to a file and parsed in a separate process, without blocking the app."""

    def __init__(self, request: Request, folder: Path) -> None:
        super().__init__(request.scope, request.receive)
        self._folder = folder
        self._parsed: Any = None

    async def body(self) -> bytes:
        """Spool and parse the body; the returned bytes only mark that there is one."""
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".upload-") as upload:
            await spool(self, upload, self._folder)
            try:
                self._parsed = await run_in_threadpool(strings_in, Path(upload.name))
            except NotStrings as error:
                raise BadOperation("the request is not JSON of texts, or takes too much memory") from error
        return b"on the disk"

    async def json(self) -> Any:
        """Return the parsed JSON."""
        return self._parsed


async def spool(request: Request, file: Any, folder: Path) -> None:
    """Write a body to a file while the disk has room. Raises OSError."""
    async for part in request.stream():
        require_room(folder, len(part))
        file.write(part)
    file.flush()
