"""How much a tablet or a person may send in a day; in memory, and given back as the day goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.people.accounts import Visitor

DAY_NS = 86_400_000_000_000
OF_A_TABLET = 256 << 20
"""A thousand voice notes; of a participant too."""
OF_THE_DESK = 4 << 30
"""Films of tablets' screens, folders of annotations."""
MOST_KEPT = 10_000


class Quotas:
    """Bytes that were sent, by who sent them."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._level: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def require(self, visitor: Visitor, more: int) -> None:
        """Refuse what would be more than this tablet, or this person, may send. Raises NotNow."""
        most = _most(visitor)
        with self._lock:
            if any(self._now(who, most) + more > most for who in _names(visitor)):
                raise NotNow(
                    "{most} bytes a day may be sent from here, not more; send it again later", most=most
                )

    def take(self, visitor: Visitor, count: int) -> None:
        """Count what was kept."""
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
