"""Limits on the bytes that a tablet or a person may send per day; in memory, recovering continuously."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.people.accounts import Visitor

DAY_NS = 86_400_000_000_000
OF_A_TABLET = 256 << 20
"""Bytes a day of a tablet or participant: a thousand voice notes."""
OF_THE_DESK = 4 << 30
"""Bytes a day of a person at the desk: folders of annotations."""
MOST_KEPT = 10_000


class Quotas:
    """Sent bytes by sender."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._level: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def require(self, visitor: Visitor, more: int) -> None:
        """Check that this tablet or person may send more bytes. Raises NotNow."""
        most = _most(visitor)
        with self._lock:
            if any(self._now(who, most) + more > most for who in _names(visitor)):
                raise NotNow(
                    "{most} bytes a day may be sent from here, not more; send it again later", most=most
                )

    def take(self, visitor: Visitor, count: int) -> None:
        """Count bytes that were accepted."""
        most = _most(visitor)
        with self._lock:
            for who in _names(visitor):
                if len(self._level) >= MOST_KEPT:
                    self._level.pop(next(iter(self._level)))
                self._level[who] = (self._now(who, most) + count, self._now_ns())

    def _now(self, who: str, most: int) -> float:
        level, at_ns = self._level.get(who, (0.0, 0))
        return max(0.0, level - (self._now_ns() - at_ns) / DAY_NS * most)


def _most(visitor: Visitor) -> int:
    return OF_THE_DESK if visitor.desk else OF_A_TABLET


def _names(visitor: Visitor) -> Iterable[str]:
    if visitor.device:
        yield f"tablet {visitor.device['id']}"
    if visitor.person:
        yield f"{'desk' if visitor.desk else 'person'} {visitor.actor}"
