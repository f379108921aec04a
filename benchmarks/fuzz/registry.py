"""The parsers that are fuzzed: a name, inputs that are right, a function that reads one, and what it may raise.

Another parser is one more function with `@parser` in one of the files that `__main__.py` names.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutations import mutated, mutated_json

Make = Callable[[random.Random], bytes]
Read = Callable[[bytes], object]
KEPT = Path(__file__).with_name("kept")


@dataclass(frozen=True)
class Parser:
    """One parser."""

    name: str
    what: str
    make: Make
    "Makes one input, often a wrong one."
    read: Read
    refusals: tuple[type[Exception], ...]
    "Its own named errors; whatever else it raises is a crash."
    apart: bool
    "Runs in a child process or over a socket, so that fewer inputs are asked for."

    def kept(self) -> list[tuple[str, bytes]]:
        """Return the inputs that did harm once, by file name."""
        return [(path.name, path.read_bytes()) for path in sorted((KEPT / self.name).glob("*"))]


PARSERS: dict[str, Parser] = {}
OPENED = contextlib.ExitStack()
"""What parsers started, for the end of the process."""


def parser(
    what: str,
    *refusals: type[Exception],
    seeds: Callable[[], Sequence[bytes]] | None = None,
    make: Make | None = None,
    seal: Callable[[bytes], bytes] | None = None,
    apart: bool = False,
) -> Callable[[Read], Read]:
    """Register a parser under its function's name.

    `seeds` gives inputs that are right, `seal` puts the checksum of a changed one right, every other time.
    """

    def register(read: Read) -> Read:
        name = read.__name__.strip("_").replace("_", "-")
        made = make or _maker(seeds or (lambda: [b""]), seal)
        PARSERS[name] = Parser(name, what, made, read, refusals, apart)
        return read

    return register


def _maker(seeds: Callable[[], Sequence[bytes]], seal: Callable[[bytes], bytes] | None) -> Make:
    known: list[bytes] = []
    documents: list[bool] = []

    def make(rng: random.Random) -> bytes:
        if not known:
            known.extend(seeds())
            documents.extend(_is_json(one) for one in known)
        which = rng.randrange(len(known))
        if documents[which] and rng.random() < 0.5:
            made = mutated_json(known[which], rng)
        else:
            made = mutated(known[which], rng, rng.choice(known))
        return seal(made) if seal is not None and rng.random() < 0.5 else made

    return make


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True
