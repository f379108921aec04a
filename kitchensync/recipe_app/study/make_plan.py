"""Make a plan: recorded sessions count, kept sessions stay, the rest is planned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from math import ceil
from typing import NotRequired, TypedDict

from kitchensync.recipe_app.study.already_cooked import CookedRecording
from kitchensync.recipe_app.study.assign import neighbours, plan_study
from kitchensync.recipe_app.study.error_scripts import script_of
from kitchensync.recipe_app.study.plan_file import (
    KINDS_IN_TURN,
    PlanEntry,
    UnmetGoal,
    entries_of,
    rarest,
    unmet,
)
from kitchensync.recipe_app.study.study_progress import not_recorded
from kitchensync.recipe_app.study.wanted import DISORDERED, NORMAL, PLANNED, OrdersLeft, Study
from kitchensync.task_graphs.categories import OTHER
from kitchensync.task_graphs.errors import TooManyStates
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.orders import Order, count_orders, is_valid_order

FEW, STEP_MINUTES = 5, 5
"""Minimum number of recordings to estimate a session's length, and its rounding in minutes."""


class MadePlan(TypedDict):
    """The object `study-plan/1`."""

    goals: list[dict[str, object]]
    "Fields of `StudyGoal`: recipe, strategy, count, display, kitchen, person, part, weight."
    sessions: list[dict[str, object]]
    "Fields of `PlanEntry`: recipe, strategy, person, kitchen, start, minutes, order, seed, why, locked and others."
    unmet: list[UnmetGoal]
    recorded: int
    "Sessions that were recorded."
    notes: list[str]
    left_out: NotRequired[dict[str, str]]
    "Recording: why it does not count."
    study: NotRequired[str]
    "Text of the study file."


def make_plan(
    study: Study,
    graphs: Mapping[str, Graph],
    cooked: Sequence[CookedRecording],
    kept: Sequence[PlanEntry] = (),
    *,
    seed: int = 0,
) -> MadePlan:
    """Return goals, sessions (including the kept ones), unmet goals with reasons, and notes.

    A kept session that was recorded counts as recorded.
    """
    kept = not_recorded(kept, cooked)
    (used, scripts), notes = _used(cooked, kept), [*_changed_clocks(study), *_changed_recipes(graphs, kept)]
    lengths = sorted(recording.seconds for recording in cooked if recording.seconds)
    if study.as_long_as_past and len(lengths) >= FEW:  # nine in ten recordings were no longer
        minutes = STEP_MINUTES * ceil(lengths[ceil(0.9 * len(lengths)) - 1] / 60 / STEP_MINUTES)
        study = replace(study, session_minutes=minutes)
        notes.append(f"sessions last {minutes} minutes: nine of ten recordings were no longer")
    wrong = {goal.recipe for goal in study.goals if goal.strategy == DISORDERED}
    study = replace(
        study,
        settled=(*(recording.session for recording in cooked), *(entry.settled for entry in kept)),
        orders=_orders(graphs, used),
        without_wrong_order=frozenset(
            name for name in wrong if not script_of(graphs[name], DISORDERED, seed=0)
        ),
    )
    assigned = plan_study(study, seed=seed)
    kinds = _kinds(cooked, kept)
    counted = Counter(kind for kind in kinds if kind)
    for _ in range(kinds.count("")):  # a session of unknown kind is counted as the next kind in turn
        counted[rarest(counted)] += 1
    new = entries_of(assigned, study, graphs, used, counted, scripts, seed=seed)
    entries = sorted([*kept, *new], key=lambda entry: (entry.start, entry.kitchen))
    return {
        "goals": [asdict(goal) for goal in study.goals],
        "sessions": [entry.model_dump(mode="json") for entry in entries],
        "unmet": unmet(assigned, study, [*kinds, *(entry.category for entry in entries)]),
        "recorded": len(cooked),
        "notes": [*notes, *_uneven(study, new)],
    }


def _kinds(cooked: Sequence[CookedRecording], kept: Sequence[PlanEntry]) -> list[str]:
    """Return the kinds of errors of recorded and kept sessions; an empty name if unknown."""
    names = [
        KINDS_IN_TURN[number] for recording in cooked for number in recording.categories if number < OTHER
    ]
    without_kind = sum(
        recording.session.strategy == PLANNED and not recording.categories for recording in cooked
    )
    return [*names, *(entry.category for entry in kept if entry.category), *[""] * without_kind]


def _used(
    cooked: Sequence[CookedRecording], kept: Sequence[PlanEntry]
) -> tuple[dict[str, list[Order]], defaultdict[str, Counter[str]]]:
    """Return the orders of recorded and kept sessions by recipe, and counts of their error scripts."""
    orders: dict[str, list[Order]] = defaultdict(list)
    scripts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    sessions = [(done.session.recipe, done.session.strategy, done.order, done.script) for done in cooked]
    sessions += [(entry.recipe, entry.strategy, entry.order, entry.script) for entry in kept]
    for place, (recipe, strategy, order, script) in enumerate(sessions):
        scripts[recipe][script] += 1
        if strategy == NORMAL and (order or place < len(cooked)):
            orders[recipe].append(order)
    return orders, scripts


def _orders(graphs: Mapping[str, Graph], used: Mapping[str, Sequence[Order]]) -> dict[str, OrdersLeft]:
    orders = {}
    for name, graph in graphs.items():
        try:
            total = count_orders(graph)
        except TooManyStates:
            continue
        valid = {order for order in used.get(name, ()) if is_valid_order(graph, order)}
        orders[name] = OrdersLeft(total, total - len(valid))
    return orders


def _uneven(study: Study, new: Sequence[PlanEntry]) -> list[str]:
    """Return notes on recipes twice in a row, uneven numbers of sessions with errors, repeated scripts."""
    notes, sessions = [], [*study.settled, *(entry.settled for entry in new)]
    for entry in new:
        own = [other for other in sessions if other.person == entry.person]
        if entry.recipe in neighbours(own, entry.start):
            notes.append(f"{entry.person} cooks {entry.recipe} twice in a row on {entry.start:%Y-%m-%d}")
    for person in dict.fromkeys(entry.person for entry in new):
        normal = [entry.strategy == NORMAL for entry in sessions if entry.person == person]
        if abs(2 * sum(normal) - len(normal)) > 1:
            notes.append(f"{person} cooks {sum(normal)} of {len(normal)} sessions without errors")
    scripts = Counter((entry.recipe, entry.script) for entry in new if entry.script)
    notes += [
        f"{recipe}: an error script is planned {n} times" for (recipe, _), n in scripts.items() if n > 1
    ]
    return notes


def _changed_clocks(study: Study) -> list[str]:
    """Return notes on the days with a change of the clocks: hours of people and kitchens stay local."""
    midnights = [
        datetime.combine(study.begin + timedelta(days=number), time(0), study.zone)
        for number in range(study.days + 1)
    ]
    return [
        f"clocks change on {midnight:%Y-%m-%d} in {study.zone}: hours stay local, sessions last as long"
        for midnight, after in pairwise(midnights)
        if midnight.utcoffset() != after.utcoffset()
    ]


def _changed_recipes(graphs: Mapping[str, Graph], kept: Sequence[PlanEntry]) -> list[str]:
    """Return notes on kept sessions whose recipe, order or script has changed."""
    notes = []
    for entry in kept:
        session = f"{entry.person}'s session of {entry.start.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        if entry.recipe not in graphs:
            notes.append(f"{session} stays, but no goal wants {entry.recipe}")
        elif entry.order and not is_valid_order(graphs[entry.recipe], entry.order):
            notes.append(f"{entry.recipe} has a new version: {session} gets another order when it begins")
        elif entry.script and entry.script != script_of(
            graphs[entry.recipe], entry.strategy, seed=entry.seed or 0, category=entry.category
        ):
            changed = f"{entry.recipe}, the seed or the kind of errors is another now"
            notes.append(f"{changed}: {session} gets another error script when it begins")
    return notes
