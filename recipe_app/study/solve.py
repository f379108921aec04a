"""The plan that meets most goals, as an integer program for HiGHS; what cannot be met is listed with the reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from kitchensync.recipe_app.study.program import IntegerProgram, Key
from kitchensync.recipe_app.study.time_slots import TimeSlot, slots_of
from kitchensync.recipe_app.study.wanted import NORMAL, Cook, CookedSession, Study, StudyGoal, StudyKitchen

LIMIT_S = 8.0


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """One entry of a plan; `number` counts the sessions of its goal from 1, those that are settled first."""

    goal: StudyGoal
    person: str
    kitchen: str
    slot: TimeSlot
    number: int


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """Sessions in order of time, goals that are not met with how many are missing, and whether no plan has more."""

    sessions: tuple[PlannedSession, ...]
    missing: Mapping[StudyGoal, int]
    is_proven: bool


def plan_study(study: Study, *, limit_s: float = LIMIT_S) -> StudyPlan:
    """Plan a study: as many of its goals as fit, by weight, and early rather than late.

    Kitchens that no goal tells apart are one group: u[recipe, person, group, day] says what is cooked, z[person,
    kitchen, slot] where and when, y[goal, person, group] for which goal. Nothing is lost by that: what a goal asks
    for does not depend on the hour.
    """
    slots = slots_of(study)
    left = goals_left(study)
    groups = _groups(study)
    program = _program(study, slots, left, groups)
    chosen, is_proven = program.solve(limit_s)
    sessions = _sessions(study, slots, left, groups, chosen)
    got = Counter(session.goal for session in sessions)
    missing = {goal: count - got[goal] for goal, count in left.items() if count > got[goal]}
    return StudyPlan(tuple(sessions), missing, is_proven)


def goals_left(study: Study) -> dict[StudyGoal, int]:
    """Return how many of each goal are still wanted."""
    left: Counter[StudyGoal] = Counter()
    for goal in study.goals:
        left[goal] += goal.count
    left.subtract(goal for goal in study.served(study.settled) if goal is not None)
    return dict(left)


def _groups(study: Study) -> list[tuple[StudyKitchen, ...]]:
    """Kitchens that serve the same goals."""
    found: dict[tuple[bool, ...], list[StudyKitchen]] = defaultdict(list)
    for kitchen in study.kitchens:
        found[tuple(study.suits(goal, kitchen) for goal in study.goals)].append(kitchen)
    return [tuple(kitchens) for kitchens in found.values()]


def _overlaps(slot: TimeSlot, done: CookedSession, study: Study) -> bool:
    around = timedelta(minutes=study.changeover_minutes)
    ends = done.start + timedelta(minutes=study.session_minutes)
    return slot.begin < ends + around and done.start < slot.end + around


def _program(
    study: Study, slots: list[TimeSlot], left: Mapping[StudyGoal, int], groups: list[tuple[StudyKitchen, ...]]
) -> IntegerProgram:
    program = IntegerProgram()
    _add_columns(program, study, slots, left, groups)
    by: dict[Key, list[Key]] = defaultdict(list)
    for key in program.column:
        for name in _rows_of(key, study):
            by[name].append(key)
    for name, keys in by.items():
        if (
            name[0] in _TWINS
        ):  # what is cooked for goals is cooked on days; what is cooked on a day has an hour
            program.row(keys, 0, by.get((_TWINS[name[0]], *name[1:]), []), at_least=0)
        elif name[0] in _TWINS.values():
            twin = next(one for one, other in _TWINS.items() if other == name[0])
            if (twin, *name[1:]) not in by:
                program.row(keys, 0)
        else:
            program.row(keys, _limit(name, study, left))
    return program


_TWINS = {"for goals": "on days", "cooked": "hours"}


def _limit(name: Key, study: Study, left: Mapping[StudyGoal, int]) -> float:
    """Report what a row may come to at most; what is settled already counts."""
    kind, *rest = name
    if kind == "goal":
        return left[rest[0]]
    if kind == "limit":
        done = sum((one.person, one.recipe) == tuple(rest) for one in study.settled)
        return max(0, study.rules.per_person_and_recipe - done)
    if kind == "orders":
        wanted = sum(count for goal, count in left.items() if goal.recipe == rest[0])
        return min(study.orders[rest[0]].new, wanted) if rest[0] in study.orders else wanted
    if kind == "day":
        done = sum(one.person == rest[0] and _day(study, one) == rest[1] for one in study.settled)
        return max(0, study.rules.most_a_day - done)
    return 1  # once a day, one place at a time


def _rows_of(key: Key, study: Study) -> list[Key]:
    """The rows that a column stands in, by name."""
    kind, *rest = key
    if kind == "y":
        goal, person, group = rest
        rows: list[Key] = [("goal", goal), ("for goals", goal.recipe, person, group)]
        return [*rows, ("orders", goal.recipe)] if goal.strategy == NORMAL else rows
    if kind == "u":
        recipe, person, group, day = rest
        return [
            ("on days", recipe, person, group),
            ("limit", person, recipe),
            ("once", recipe, person, day),
            ("cooked", person, group, day),
        ]
    person, kitchen, number, group, day = rest
    rig = next(one.rig for one in study.kitchens if one.name == kitchen)
    return [
        ("hours", person, group, day),
        ("person at", person, number),
        ("rig at", rig, number),
        ("day", person, day),
    ]


def _add_columns(
    program: IntegerProgram,
    study: Study,
    slots: list[TimeSlot],
    left: Mapping[StudyGoal, int],
    groups: list[tuple[StudyKitchen, ...]],
) -> None:
    late = 0.2 / max(1, study.days * len(study.cooks) * study.days * study.rules.most_a_day)
    on_day = {(one.person, one.recipe, _day(study, one)) for one in study.settled}
    for cook in study.cooks:
        for group, kitchens in enumerate(groups):
            days = _open_columns(program, study, slots, cook, (group, kitchens), late)
            served = [
                goal
                for goal, count in left.items()
                if count
                and study.is_possible(goal)
                and study.may(goal, cook)
                and study.suits(goal, kitchens[0])
            ]
            for goal in served:
                most = min(left[goal], study.rules.per_person_and_recipe)
                program.add(("y", goal, cook.name, group), gain=float(goal.weight), most=most)
            for recipe in dict.fromkeys(goal.recipe for goal in served):
                for day in days:
                    if (cook.name, recipe, day) not in on_day:
                        program.add(("u", recipe, cook.name, group, day))


def _open_columns(
    program: IntegerProgram,
    study: Study,
    slots: list[TimeSlot],
    cook: Cook,
    group: tuple[int, tuple[StudyKitchen, ...]],
    late: float,
) -> list[int]:
    """Add where and when somebody can cook; return the days."""
    number, kitchens = group
    days: dict[int, None] = {}
    for at, slot in enumerate(slots):
        if not slot.is_open(cook):
            continue
        busy = [one for one in study.settled if _overlaps(slot, one, study)]
        rigs = {kitchen.rig for kitchen in study.kitchens if kitchen.name in {one.kitchen for one in busy}}
        if cook.name in {one.person for one in busy}:
            continue
        for kitchen in kitchens:
            if slot.is_open(kitchen) and kitchen.rig not in rigs:
                program.add(("z", cook.name, kitchen.name, at, number, slot.day), gain=-late * slot.day)
                days[slot.day] = None
    return list(days)


def _day(study: Study, done: CookedSession) -> int:
    return (done.start.astimezone(study.zone).date() - study.begin).days


def _sessions(
    study: Study,
    slots: list[TimeSlot],
    left: Mapping[StudyGoal, int],
    groups: list[tuple[StudyKitchen, ...]],
    chosen: Mapping[Key, int],
) -> list[PlannedSession]:
    """Put the parts of the solution together: hours and recipes of a day in their order, goals by the day."""
    there: dict[Key, list[tuple[int, str]]] = defaultdict(list)
    for kind, *rest in chosen:
        if kind == "z":
            person, kitchen, at, group, day = rest
            there[person, group, day].append((at, kitchen))
    wanted = {key[1:]: count for key, count in chosen.items() if key[0] == "y"}
    sessions = []
    settled = {goal: goal.count - count for goal, count in left.items()}
    for kind, recipe, person, group, day in sorted(key for key in chosen if key[0] == "u"):
        assert kind == "u"
        hours = sorted(there[person, group, day])
        at, kitchen = hours[0]
        there[person, group, day] = hours[1:]
        goal = next(g for g in left if g.recipe == recipe and wanted.get((g, person, group), 0))
        wanted[goal, person, group] -= 1
        sessions.append(PlannedSession(goal, person, kitchen, slots[at], 0))
    sessions.sort(key=lambda one: (one.slot.begin, one.kitchen))
    numbered: list[PlannedSession] = []
    for one in sessions:
        settled[one.goal] += 1
        numbered.append(PlannedSession(one.goal, one.person, one.kitchen, one.slot, settled[one.goal]))
    return numbered
