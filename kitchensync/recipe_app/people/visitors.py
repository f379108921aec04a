"""A short cache of visitors by token, so that a tablet that posts every second is not looked up every time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from kitchensync.recipe_app.people import secrets
from kitchensync.recipe_app.people.accounts import Accounts, Visitor

REMEMBERED_S = 5.0
"""Lifetime of a cached visitor, seconds: changes by other processes, such as a revoked role, take effect by then."""
KEPT = 512


@dataclass(frozen=True)
class Tokens:
    """A request's tokens of tablet and sign-in, or empty."""

    device: str = ""
    login: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The hashes of the tokens, since the tokens themselves are not stored."""
        return secrets.fast_hash(self.device), secrets.fast_hash(self.login)


@dataclass(frozen=True)
class _Known:
    visitor: Visitor
    changes: int
    at_s: float


class Visitors:
    """A cache of `Accounts.visitor`, which honours changes by this process immediately, and expiry."""

    def __init__(self, accounts: Accounts, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._accounts, self._clock_s = accounts, clock_s
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    def known(self, tokens: Tokens) -> Visitor | None:
        """Return the cached visitor of some tokens, if nothing changed since; never waits."""
        remembered = self._known.get(tokens.key)
        if remembered is None or remembered.changes != self._accounts.records.changes:
            return None
        fresh = self._clock_s() - remembered.at_s < REMEMBERED_S
        still = remembered.visitor.until_utc_ns >= self._accounts.records.utc_ns()
        return remembered.visitor if fresh and still else None

    def look_up(self, tokens: Tokens) -> Visitor:
        """Look the visitor up in the database and cache it."""
        # Read the change count first, so that a change during the query invalidates the entry.
        changes, at_s = self._accounts.records.changes, self._clock_s()
        visitor = self._accounts.visitor(device_token=tokens.device, login_token=tokens.login)
        self._known[tokens.key] = _Known(visitor, changes, at_s)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return visitor
