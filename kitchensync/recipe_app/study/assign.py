"""Assign people, kitchens and hours to the sessions of a study, reproducibly by a seed.

Slots are filled in order of time. Each free kitchen gets the best pair of goal and person (see `_preference`) that
the rules of the study allow; goals that do not fit are listed as missing.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import count

from kitchensync.recipe_app.study.wanted import NORMAL, Cook, CookedSession, Study, StudyGoal, StudyKitchen


@dataclass(frozen=True, slots=True)
class TimeSlot:
    """A time slot of a session; `begin` and `end` are local times with their zone."""

    day: int
    begin: datetime
    end: datetime

    def is_open(self, of: Cook | StudyKitchen) -> bool:
        """Return whether a cook or a kitchen is available during the whole slot."""
        return of.hours.covers(self.begin, self.end)


def slots_of(study: Study) -> list[TimeSlot]:
    """Return the slots of every day of a study in which some kitchen is open, in order of time.

    Ends are computed in elapsed time, also across a change of the clocks. A local time that a change of the clocks
    skips starts no session.
    """
    opens = [first for kitchen in study.kitchens for _, first, _ in kitchen.hours.weekly]
    if not opens:
        return []
    slots = []
    for day in range(study.days):
        for begin in _begins(study, study.begin + timedelta(days=day), min(opens)):
            ended = begin.astimezone(UTC) + timedelta(minutes=study.session_minutes)
            slot = TimeSlot(day, begin, ended.astimezone(study.zone))
            if study.not_before is not None and begin < study.not_before:
                continue
            if any(slot.is_open(kitchen) for kitchen in study.kitchens):
                slots.append(slot)
    return slots


def _begins(study: Study, day: date, first: time) -> Iterator[datetime]:
    step = timedelta(minutes=study.session_minutes + study.changeover_minutes)
    for number in count():
        local = datetime.combine(day, first) + number * step
        if local.date() != day:
            return
        aware = local.replace(tzinfo=study.zone)
        if aware.astimezone(UTC).astimezone(study.zone).replace(tzinfo=None) == local:
            yield aware


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """A planned session; `number` counts the sessions of its goal from 1, settled ones first."""

    goal: StudyGoal
    person: str
    kitchen: str
    slot: TimeSlot
    number: int


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """Sessions in order of time, and the number of missing sessions of each unmet goal."""

    sessions: tuple[PlannedSession, ...]
    missing: Mapping[StudyGoal, int]


def plan_study(study: Study, *, seed: int = 0) -> StudyPlan:
    """Plan a study; the same seed gives the same plan."""
    assignment = _Assignment(study, random.Random(f"study {seed}"))
    for slot in slots_of(study):
        assignment.fill(slot)
    return StudyPlan(tuple(assignment.sessions), +assignment.left)


class _Assignment:
    """The sessions assigned so far, and the counts that the rules need."""

    def __init__(self, study: Study, rng: random.Random) -> None:
        self.study, self.rng = study, rng
        self.sessions: list[PlannedSession] = []
        self.left = Counter[StudyGoal]()
        for goal in study.goals:
            self.left[goal] += goal.count
        self.left.subtract(goal for goal in study.served(study.settled) if goal is not None)
        self.orders = {recipe: orders.new for recipe, orders in study.orders.items()}
        self.cooked: dict[str, list[CookedSession]] = defaultdict(list)
        self.choices = {
            goal: sum(study.may(goal, cook) for cook in study.cooks)
            * sum(study.suits(goal, kitchen) for kitchen in study.kitchens)
            for goal in study.goals
        }
        for session in study.settled:
            self.cooked[session.person].append(session)

    def fill(self, slot: TimeSlot) -> None:
        """Assign sessions to the free kitchens of a slot."""
        busy = [session for session in self.study.settled if _overlap(slot, session, self.study)]
        people = {session.person for session in busy}
        busy_kitchens = {session.kitchen for session in busy}
        rigs = {kitchen.rig for kitchen in self.study.kitchens if kitchen.name in busy_kitchens}
        for kitchen in self.rng.sample(self.study.kitchens, len(self.study.kitchens)):
            if not slot.is_open(kitchen) or kitchen.rig in rigs:
                continue
            cooks = [cook for cook in self.study.cooks if cook.name not in people and slot.is_open(cook)]
            options = list(self._options(slot, kitchen, cooks))
            if options:
                goal, cook = min(
                    options, key=lambda option: self._preference(option[0], option[1], kitchen, slot.begin)
                )
                number = goal.count - self.left[goal] + 1
                self.sessions.append(PlannedSession(goal, cook.name, kitchen.name, slot, number))
                self.left[goal] -= 1
                if goal.strategy == NORMAL and goal.recipe in self.orders:
                    self.orders[goal.recipe] -= 1
                done = CookedSession(
                    goal.recipe, goal.strategy, goal.display, cook.name, kitchen.name, slot.begin, goal.part
                )
                self.cooked[cook.name].append(done)
                people.add(cook.name)
                rigs.add(kitchen.rig)

    def _options(
        self, slot: TimeSlot, kitchen: StudyKitchen, cooks: list[Cook]
    ) -> Iterator[tuple[StudyGoal, Cook]]:
        """Yield each pair of goal and person that the rules allow in this slot and kitchen."""
        study, rules = self.study, self.study.rules
        goals = [
            goal
            for goal, count in self.left.items()
            if count > 0
            and study.suits(goal, kitchen)
            and study.is_possible(goal)
            and (goal.strategy != NORMAL or self.orders.get(goal.recipe, 1) > 0)
        ]
        for cook in cooks:
            day = slot.begin.date()
            today = [
                session
                for session in self.cooked[cook.name]
                if session.start.astimezone(self.study.zone).date() == day
            ]
            if len(today) >= rules.most_a_day:
                continue
            times = Counter(session.recipe for session in self.cooked[cook.name])
            excluded = {session.recipe for session in today}
            excluded |= {recipe for recipe, count in times.items() if count >= rules.per_person_and_recipe}
            for goal in goals:
                if goal.recipe not in excluded and study.may(goal, cook):
                    yield goal, cook

    def _preference(
        self, goal: StudyGoal, cook: Cook, kitchen: StudyKitchen, begin: datetime
    ) -> tuple[float, ...]:
        """Return the sort key, best first: no recipe twice in a row, weight, few choices, balance."""
        before = self.cooked[cook.name]
        same_kind = sum((session.strategy == NORMAL) == (goal.strategy == NORMAL) for session in before)
        here = sum((session.recipe, session.kitchen) == (goal.recipe, kitchen.name) for session in before)
        return (
            goal.recipe in neighbours(before, begin),
            -goal.weight,
            self.choices[goal],
            here,
            2 * same_kind > len(before),
            len(before),
            -self.left[goal] / goal.count,
            self.rng.random(),
        )


def neighbours(cooked: list[CookedSession], begin: datetime) -> set[str]:
    """Return the recipes of the sessions directly before and after a time."""
    before = max(
        (session for session in cooked if session.start < begin),
        key=lambda session: session.start,
        default=None,
    )
    after = min(
        (session for session in cooked if session.start > begin),
        key=lambda session: session.start,
        default=None,
    )
    return {session.recipe for session in (before, after) if session is not None}


def _overlap(slot: TimeSlot, done: CookedSession, study: Study) -> bool:
    around = timedelta(minutes=study.changeover_minutes)
    ends = done.start + timedelta(minutes=study.session_minutes)
    return slot.begin < ends + around and done.start < slot.end + around
