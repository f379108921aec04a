"""The body of a request: of a kind and size that its route takes, in time, and a large one on the disk first."""

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
"""What anybody may send: a sign-in, a code."""
MAX_BODY = 1 << 18
"""A batch of operations, a recipe."""
WINDOW_NS = 20_000_000_000
LEAST_IN_WINDOW = 1 << 15
"""A body brings as much in every 20 s until it is whole: half a body ends within 40 s, a slow one goes on."""
TURN_S = 60.0
"""How long a large body waits for those before it."""


class WrongKind(RecipeError):
    """A body of a kind that the route does not take."""


class TooLarge(RecipeError):
    """A body of more bytes than the route takes."""


@dataclass(frozen=True)
class RequestBody:
    """What a route takes: at most so many bytes, JSON or media of these kinds, so many at once, on the disk first."""

    most: int = MAX_BODY
    media: tuple[str, ...] = ()
    at_once: int | None = None
    "Not more than these are read at the same time; the others wait. None for small ones."
    strings: bool = False
    "JSON of strings alone, so large that it is kept on the disk and parsed in a process of its own."

    def check(self, request: Request) -> None:
        """Refuse by the headers alone. Raises WrongKind, TooLarge, BadOperation."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and kind.partition("/")[0] not in self.media:
            raise WrongKind("send application/json")
        if not request.headers.get("content-length", "0").isdecimal():
            raise BadOperation("the content length is not a number")
        if stated_bytes(request) > self.most:
            raise TooLarge("a request has at most {most} bytes", most=self.most)


def stated_bytes(request: Request) -> int:
    """Return how much the headers announce; 0 where they do not say."""
    return int(request.headers.get("content-length", "0"))


@dataclass
class Turns:
    """Whose turn it is where bodies are large: a route's own, of one app; one turn at a time for each who sends."""

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
    """Give the parts of a body as they come: not more than `most` bytes, and not slower than a network is.

    `pace` counts them. The reading raises fastapi.HTTPException 413 and 408.
    """
    pace = pace or Pace()

    async def receive_in_time() -> Message:
        while True:
            try:
                async with asyncio.timeout(pace.left_s()):
                    message = await receive()
            except TimeoutError:
                continue  # left_s() says whether there is one more window
            pace.taken += len(message.get("body", b""))
            if pace.taken > most:
                raise HTTPException(413, f"a request has at most {most} bytes")
            return message

    return receive_in_time


@dataclass
class Pace:
    """How much came, and how much of it before this window."""

    taken: int = 0
    before: int = 0
    until_ns: int = field(default_factory=lambda: host_ns() + WINDOW_NS)

    def left_s(self) -> float:
        """Return how long the window lasts; begin another when one brought enough. Raises fastapi.HTTPException."""
        if (left_ns := self.until_ns - host_ns()) > 0:
            return left_ns / 1e9
        if self.taken - self.before < LEAST_IN_WINDOW:
            raise HTTPException(408, "the request did not come to its end; send it again")
        self.before, self.until_ns = self.taken, host_ns() + WINDOW_NS
        return WINDOW_NS / 1e9


class SpooledRequest(Request):
    """A request whose JSON goes to a file and is parsed in a process of its own: the app stays free meanwhile."""

    def __init__(self, request: Request, folder: Path) -> None:
        super().__init__(request.scope, request.receive)
        self._folder = folder
        self._parsed: Any = None

    async def body(self) -> bytes:
        """Take the body in; what is returned only says that there is one."""
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".upload-") as kept:
            await spool(self, kept, self._folder)
            try:
                self._parsed = await run_in_threadpool(strings_in, Path(kept.name))
            except NotStrings as error:
                raise BadOperation("the request is not JSON of texts, or takes too much memory") from error
        return b"on the disk"

    async def json(self) -> Any:
        """Return what was parsed."""
        return self._parsed


async def spool(request: Request, kept: Any, folder: Path) -> None:
    """Write the parts of a body to a file while there is room. Raises OSError."""
    async for part in request.stream():
        require_room(folder, len(part))
        kept.write(part)
    kept.flush()
