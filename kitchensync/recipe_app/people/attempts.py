"""Limits on guessing secrets: five attempts, then a wait that doubles; in the database, to survive a restart.

Attempts are counted by name and origin, so that nobody can lock somebody else out from elsewhere. The key is stored
as a hash, for a day: somebody may have typed a real name, or a PIN into the wrong field.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from sqlalchemy import Connection, delete, insert, select, update

from kitchensync.recipe_app.errors import TooOften
from kitchensync.recipe_app.people.secrets import fast_hash
from kitchensync.recipe_app.store.tables import attempt

TRIES = 5
FIRST_WAIT_S = 30
LONGEST_WAIT_S = 900  # the doubling ends here; a longer wait shows that the clock was set back
KEPT_NS = 86_400_000_000_000
AT_ONCE = 4  # two threads hash, and as many attempts wait for them
TURN_S = 10.0


def count(connection: Connection, key: str, *, utc_ns: int) -> int:
    """Count an attempt as a failure before its secret is checked; return the remaining ones. Raises TooOften.

    From the fifth failure on there is a wait, during which attempts are refused. The transaction writes, so that
    concurrent attempts are counted one after the other.
    """
    mine = attempt.c.key == fast_hash(key)
    blocked = connection.execute(select(attempt.c.blocked_until_utc_ns).where(mine)).scalar()
    longest_ns = LONGEST_WAIT_S * 1_000_000_000  # a longer wait means that the clock was set back since
    if blocked is not None and utc_ns < blocked <= utc_ns + longest_ns:
        raise TooOften(-(-(blocked - utc_ns) // 1_000_000_000))
    connection.execute(delete(attempt).where(attempt.c.blocked_until_utc_ns < utc_ns - KEPT_NS))
    failures = 1 + (connection.execute(select(attempt.c.failures).where(mine)).scalar() or 0)
    wait_s = min(FIRST_WAIT_S * 2 ** (failures - TRIES), LONGEST_WAIT_S) if failures >= TRIES else 0
    values = {"failures": failures, "blocked_until_utc_ns": utc_ns + int(wait_s * 1_000_000_000)}
    if connection.execute(update(attempt).where(mine).values(values)).rowcount == 0:
        connection.execute(insert(attempt).values(key=fast_hash(key), **values))
    return max(TRIES - failures, 0)


def succeeded(connection: Connection, key: str) -> None:
    """Reset the failures."""
    connection.execute(delete(attempt).where(attempt.c.key == fast_hash(key)))


class Bucket:
    """Limits attempts per minute and origin, in bursts of as many, and concurrent ones; in memory.

    A hash of a password costs 19 MiB and 40 ms. A paired tablet waits for its turn, others are refused.
    """

    def __init__(self, per_minute: int, now_ns: Callable[[], int]) -> None:
        self.per_minute, self._now_ns = per_minute, now_ns
        self._level: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()
        self._places = threading.Semaphore(AT_ONCE)
        self._inside: set[str] = set()

    @contextlib.contextmanager
    def attempt(self, origin: str, *, waits: bool = False) -> Iterator[None]:
        """Count one attempt and hold a place during it. Raises TooOften."""
        now = self._now_ns()
        with self._lock:
            level, at = self._level.get(origin, (0.0, now))
            level = max(0.0, level - (now - at) / 60e9 * self.per_minute)
            if level + 1 > self.per_minute:
                raise TooOften(-(-60 // self.per_minute))
            if len(self._level) > 10_000:
                self._level.clear()
            self._level[origin] = (level + 1, now)
        if waits:
            if not self._places.acquire(timeout=TURN_S):
                raise TooOften(1)
        elif origin in self._inside or not self._places.acquire(blocking=False):
            raise TooOften(1)
        self._inside.add(origin)
        try:
            yield
        finally:
            self._inside.discard(origin)
            self._places.release()
