"""The hours of a study cut into slots: sessions begin on one grid, so that two either coincide or do not meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import count

from kitchensync.recipe_app.study.wanted import Cook, Study, StudyKitchen


@dataclass(frozen=True, slots=True)
class TimeSlot:
    """A time at which a session can begin; `begin` and `end` are local times with their zone."""

    day: int
    begin: datetime
    end: datetime

    def is_open(self, of: Cook | StudyKitchen) -> bool:
        """Return whether somebody, or a kitchen, is there for all of it."""
        return of.hours.covers(self.begin, self.end)


def slots_of(study: Study) -> list[TimeSlot]:
    """Return the slots of every day of a study in which some kitchen is open, in order of time.

    Sessions last as long as they last where clocks change: ends are reckoned in elapsed time. A local time that a
    change of the clock leaves out begins no session.
    """
    opens = [first for kitchen in study.kitchens for _, first, _ in kitchen.hours.weekly]
    if not opens:
        return []
    found = []
    for day in range(study.days):
        for begin in _begins(study, study.begin + timedelta(days=day), min(opens)):
            ended = begin.astimezone(UTC) + timedelta(minutes=study.session_minutes)
            slot = TimeSlot(day, begin, ended.astimezone(study.zone))
            if study.not_before is not None and begin < study.not_before:
                continue
            if any(slot.is_open(kitchen) for kitchen in study.kitchens):
                found.append(slot)
    return found


def _begins(study: Study, day: date, first: time) -> Iterator[datetime]:
    step = timedelta(minutes=study.session_minutes + study.changeover_minutes)
    for number in count():
        local = datetime.combine(day, first) + number * step
        if local.date() != day:
            return
        aware = local.replace(tzinfo=study.zone)
        if aware.astimezone(UTC).astimezone(study.zone).replace(tzinfo=None) == local:
            yield aware
