"""The kinds of attack: a name, what it does, and a function that attacks for a while and says what it saw.

Another kind is one more file with `@attack` on its functions, and its name in `__main__.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Aim:
    """What is attacked: a host, a port, for how long, and what an insider would know."""

    host: str
    port: int
    seconds: float
    knows: dict[str, str] = field(default_factory=dict)
    "`admin` and `password`, for what must still work while others guess."


@dataclass
class Seen:
    """What an attack saw: how often it tried, what was wrong, how long half of a request was kept."""

    tried: int = 0
    answered: dict[str, int] = field(default_factory=dict)
    longest_half_s: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def answer(self, status: str) -> None:
        """Count one answer, or one end without any."""
        self.tried += 1
        self.answered[status] = self.answered.get(status, 0) + 1


Act = Callable[[Aim], Awaitable[Seen]]


@dataclass(frozen=True)
class Attack:
    """One kind."""

    name: str
    what: str
    act: Act
    least_s: float
    "Shorter it would show nothing."


KINDS: dict[str, Attack] = {}


def attack(what: str, *, least_s: float = 0.0) -> Callable[[Act], Act]:
    """Register a kind under its function's name."""

    def register(act: Act) -> Act:
        name = act.__name__.replace("_", "-")
        KINDS[name] = Attack(name, what, act, least_s)
        return act

    return register


def as_json(seen: Seen) -> dict[str, Any]:
    """Return what was seen, for the process that judges."""
    return vars(seen)
