"""What a study wants and what it has: goals, people, kitchens, hours, rules; plain values."""

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
    """So many recordings of one kind; an empty kitchen, person or part stands for any."""

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
        """What it is called in reasons and lists."""
        said = (self.recipe, self.strategy, self.display if self.display != "steps" else "")
        return " · ".join(word for word in (*said, self.part, self.kitchen, self.person) if word)


@dataclass(frozen=True, slots=True)
class OpenHours:
    """When somebody or something is there: weekday (0 is Monday), from, to; days on which not at all."""

    weekly: tuple[tuple[int, time, time], ...]
    away: frozenset[date] = frozenset()

    def covers(self, begin: datetime, end: datetime) -> bool:
        """Return whether a span of local times lies in one of the hours."""
        if begin.date() in self.away or begin.date() != end.date():
            return False
        return any(
            day == begin.weekday() and first <= begin.time() and end.time() <= last
            for day, first, last in self.weekly
        )


@dataclass(frozen=True, slots=True)
class Cook:
    """Somebody who cooks; `avoids` are recipes that allergies or dislikes exclude."""

    name: str
    hours: OpenHours
    avoids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StudyKitchen:
    """A kitchen; `rig` is what records in it: kitchens that share one are not cooked in at once."""

    name: str
    hours: OpenHours
    rig: str
    parts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StudyRules:
    """Limits that every plan keeps.

    At most `per_person_and_recipe` sessions of one recipe by one person, `most_a_day` of one person on one day, never
    one recipe twice on a day; at least `categories` kinds of errors over all sessions with planned errors.
    """

    per_person_and_recipe: int = 4
    most_a_day: int = 3
    categories: int = 0


@dataclass(frozen=True, slots=True)
class CookedSession:
    """A session that is settled: recorded already, or locked in the plan. `start` has its zone."""

    recipe: str
    strategy: str
    display: str
    person: str
    kitchen: str
    start: datetime
    part: str = ""


@dataclass(frozen=True, slots=True)
class OrdersLeft:
    """How many valid orders a recipe has, and how many of them nobody has cooked yet."""

    total: int
    new: int


@dataclass(frozen=True, slots=True)
class Study:
    """All of it; a recipe that is not in `orders` has more valid orders than can be counted."""

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
    """No session is planned to begin earlier: what lies behind is not planned any more."""
    as_long_as_past: bool = False
    """Whether past recordings say how long a session is; `session_minutes` holds until there are enough."""
    without_wrong_order: frozenset[str] = frozenset()
    """Recipes of which no disordered session can be: no order of them is wrong and keeps people safe."""

    def is_possible(self, goal: StudyGoal) -> bool:
        """Return whether there is an error script where a goal needs one."""
        return goal.strategy != DISORDERED or goal.recipe not in self.without_wrong_order

    def may(self, goal: StudyGoal, cook: Cook) -> bool:
        """Return whether a person may serve a goal."""
        return goal.recipe not in cook.avoids and goal.person in ("", cook.name)

    def suits(self, goal: StudyGoal, kitchen: StudyKitchen) -> bool:
        """Return whether a kitchen may serve a goal: the one that it names, one of its part of the split."""
        return goal.kitchen in ("", kitchen.name) and (not goal.part or goal.part in kitchen.parts)

    def counts_for(self, goal: StudyGoal, done: CookedSession) -> bool:
        """Return whether a settled session counts for a goal."""
        same = (done.recipe, done.strategy, done.display) == (goal.recipe, goal.strategy, goal.display)
        kitchen = next((one for one in self.kitchens if one.name == done.kitchen), None)
        there = goal.kitchen in ("", done.kitchen) and (
            not goal.part or goal.part == done.part or bool(kitchen and goal.part in kitchen.parts)
        )
        return same and there and goal.person in ("", done.person)

    def served(self, done: Iterable[CookedSession]) -> list[StudyGoal | None]:
        """Return the goal that each session counts for: the first of its kind that wants more; None for none."""
        left: Counter[StudyGoal] = Counter()
        for goal in self.goals:
            left[goal] += goal.count
        found = []
        for one in done:
            serves = next((goal for goal in left if left[goal] and self.counts_for(goal, one)), None)
            if serves is not None:
                left[serves] -= 1
            found.append(serves)
        return found
