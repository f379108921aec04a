"""Who a token belongs to, remembered for a moment: a tablet that posts every second is not looked up every second."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from kitchensync.recipe_app.people import secrets
from kitchensync.recipe_app.people.accounts import Accounts, Visitor

REMEMBERED_S = 5.0
"""Whatever another process changes (a tablet removed, a role taken away) holds here after this time at the latest."""
KEPT = 512


@dataclass(frozen=True)
class Tokens:
    """What a request shows: the tablet's token and the sign-in's, or nothing."""

    device: str = ""
    login: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Their hashes: the tokens themselves are not kept."""
        return secrets.fast_hash(self.device), secrets.fast_hash(self.login)


@dataclass(frozen=True)
class _Known:
    visitor: Visitor
    changes: int
    at_s: float


class Visitors:
    """A memory over `Accounts.visitor`. What this process changes holds at once, what expires ends in time."""

    def __init__(self, accounts: Accounts, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._accounts, self._clock_s = accounts, clock_s
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    def known(self, tokens: Tokens) -> Visitor | None:
        """Return whom the tokens stood for a moment ago, if nothing was changed since; never waits."""
        found = self._known.get(tokens.key)
        if found is None or found.changes != self._accounts.records.changes:
            return None
        fresh = self._clock_s() - found.at_s < REMEMBERED_S
        still = found.visitor.until_utc_ns >= self._accounts.records.utc_ns()
        return found.visitor if fresh and still else None

    def look_up(self, tokens: Tokens) -> Visitor:
        """Ask the database, and remember the answer."""
        # Before asking: a change meanwhile counts.
        changes, at_s = self._accounts.records.changes, self._clock_s()
        visitor = self._accounts.visitor(device_token=tokens.device, login_token=tokens.login)
        self._known[tokens.key] = _Known(visitor, changes, at_s)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return visitor
