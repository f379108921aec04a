"""The data of a study: goals, people, kitchens, hours, rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Literal, get_args
from zoneinfo import ZoneInfo

Strategy = Literal["normal", "impromptu", "disordered", "induced"]
Display = Literal["steps", "paragraph", "hidden"]
NORMAL: Strategy = "normal"
DISORDERED: Strategy = "disordered"
PLANNED: Strategy = "induced"
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
DISPLAYS: tuple[Display, ...] = get_args(Display)


@dataclass(frozen=True, slots=True)
class StudyGoal:
    """A number of recordings of one kind; an empty kitchen, person or part stands for any."""

    recipe: str
    strategy: str
    count: int
    display: str = "steps"
    kitchen: str = ""
    person: str = ""
    part: str = ""
    weight: int = 1

    @property
    def name(self) -> str:
        """The name of the goal in reasons and lists."""
        words = (self.recipe, self.strategy, self.display if self.display != "steps" else "")
        return " · ".join(word for word in (*words, self.part, self.kitchen, self.person) if word)


@dataclass(frozen=True, slots=True)
class OpenHours:
    """Availability: weekday (0 is Monday), from, to; and days of absence."""

    weekly: tuple[tuple[int, time, time], ...]
    away: frozenset[date] = frozenset()

    def covers(self, begin: datetime, end: datetime) -> bool:
        """Return whether a span of local times is within one of the hours."""
        if begin.date() in self.away or begin.date() != end.date():
            return False
        return any(
            day == begin.weekday() and first <= begin.time() and end.time() <= last
            for day, first, last in self.weekly
        )


@dataclass(frozen=True, slots=True)
class Cook:
    """A person who cooks; `avoids` are recipes that allergies or dislikes exclude."""

    name: str
    hours: OpenHours
    avoids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StudyKitchen:
    """A kitchen with its recording rig; kitchens that share a rig have no concurrent sessions."""

    name: str
    hours: OpenHours
    rig: str
    parts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StudyRules:
    """Limits of every plan.

    At most `per_person_and_recipe` sessions of one recipe by one person, `most_a_day` of one person on one day, never
    one recipe twice on a day; at least `categories` kinds of errors over all sessions with planned errors.
    """

    per_person_and_recipe: int = 4
    most_a_day: int = 3
    categories: int = 0


@dataclass(frozen=True, slots=True)
class CookedSession:
    """A settled session: recorded, or locked in the plan. `start` has a time zone."""

    recipe: str
    strategy: str
    display: str
    person: str
    kitchen: str
    start: datetime
    part: str = ""


@dataclass(frozen=True, slots=True)
class OrdersLeft:
    """Number of valid orders of a recipe, and of those not cooked yet."""

    total: int
    new: int


@dataclass(frozen=True, slots=True)
class Study:
    """A study; a recipe that is not in `orders` has more valid orders than can be counted."""

    zone: ZoneInfo
    begin: date
    days: int
    session_minutes: int
    changeover_minutes: int
    goals: tuple[StudyGoal, ...]
    cooks: tuple[Cook, ...]
    kitchens: tuple[StudyKitchen, ...]
    rules: StudyRules = StudyRules()
    orders: Mapping[str, OrdersLeft] = field(default_factory=dict)
    settled: tuple[CookedSession, ...] = ()
    not_before: datetime | None = None
    """Earliest start of new sessions, to plan nothing in the past."""
    as_long_as_past: bool = False
    """Whether session lengths are estimated from recordings; until there are enough, `session_minutes` counts."""
    without_wrong_order: frozenset[str] = frozenset()
    """Recipes without a wrong order that keeps people safe, so without disordered sessions."""

    def is_possible(self, goal: StudyGoal) -> bool:
        """Return whether a goal has the error script that it needs."""
        return goal.strategy != DISORDERED or goal.recipe not in self.without_wrong_order

    def may(self, goal: StudyGoal, cook: Cook) -> bool:
        """Return whether a person may serve a goal."""
        return goal.recipe not in cook.avoids and goal.person in ("", cook.name)

    def suits(self, goal: StudyGoal, kitchen: StudyKitchen) -> bool:
        """Return whether a kitchen may serve a goal, by its name and its part of the split."""
        return goal.kitchen in ("", kitchen.name) and (not goal.part or goal.part in kitchen.parts)

    def counts_for(self, goal: StudyGoal, done: CookedSession) -> bool:
        """Return whether a settled session counts for a goal."""
        same = (done.recipe, done.strategy, done.display) == (goal.recipe, goal.strategy, goal.display)
        kitchen = next((own for own in self.kitchens if own.name == done.kitchen), None)
        place_fits = goal.kitchen in ("", done.kitchen) and (
            not goal.part or goal.part == done.part or bool(kitchen and goal.part in kitchen.parts)
        )
        return same and place_fits and goal.person in ("", done.person)

    def served(self, done: Iterable[CookedSession]) -> list[StudyGoal | None]:
        """Return the goal that each session counts for: the first matching one that needs more, else None."""
        remaining: Counter[StudyGoal] = Counter()
        for goal in self.goals:
            remaining[goal] += goal.count
        goals = []
        for session in done:
            serves = next(
                (goal for goal in remaining if remaining[goal] and self.counts_for(goal, session)), None
            )
            if serves is not None:
                remaining[serves] -= 1
            goals.append(serves)
        return goals
