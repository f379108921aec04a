"""A plan from what there is now: what was recorded counts, what was kept stays, the rest is planned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, time, timedelta
from math import ceil
from typing import Any

from kitchensync.recipe_app.study.already_cooked import CookedRecording
from kitchensync.recipe_app.study.assign import neighbours, plan_study
from kitchensync.recipe_app.study.error_scripts import script_of
from kitchensync.recipe_app.study.plan_file import KINDS_IN_TURN, PlanEntry, entries_of, rarest, unmet
from kitchensync.recipe_app.study.study_progress import not_recorded
from kitchensync.recipe_app.study.wanted import DISORDERED, NORMAL, PLANNED, OrdersLeft, Study
from kitchensync.task_graphs.categories import OTHER
from kitchensync.task_graphs.errors import TooManyStates
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.orders import Order, count_orders, is_valid_order

FEW, STEP_MINUTES = 5, 5
"""So many recordings tell how long a session is, and to so many minutes."""


def make_plan(
    study: Study,
    graphs: Mapping[str, Graph],
    cooked: Sequence[CookedRecording],
    kept: Sequence[PlanEntry] = (),
    *,
    seed: int = 0,
) -> dict[str, Any]:
    """Return goals, sessions (the kept ones among them), what is not met and why, and what else is to be known.

    A kept session that was recorded counts as that.
    """
    kept = not_recorded(kept, cooked)
    used, minutes = _used(cooked, kept), _minutes(study, cooked)
    study = replace(
        study,
        session_minutes=minutes or study.session_minutes,
        settled=(*(one.session for one in cooked), *(one.settled for one in kept)),
        orders=_orders(graphs, used),
        without_wrong_order=_without_wrong_order(study, graphs),
    )
    made = plan_study(study, seed=seed)
    # The kinds of errors that sessions were for, or will be; an empty name where nobody knows.
    names = [KINDS_IN_TURN[number] for one in cooked for number in one.categories if number < OTHER]
    unknown = [one for one in cooked if one.session.strategy == PLANNED and not one.categories]
    known = [*names, *(one.category for one in kept if one.category), *("" for _ in unknown)]
    # A session whose kind nobody knows had the next one in turn.
    found = Counter(kind for kind in known if kind)
    for _ in range(known.count("")):
        found[rarest(found)] += 1
    new = entries_of(made, study, graphs, used, found, _used_scripts(cooked, kept), seed=seed)
    entries = sorted([*kept, *new], key=lambda one: (one.start, one.kitchen))
    return {
        "goals": [asdict(goal) for goal in study.goals],
        "sessions": [one.model_dump(mode="json") for one in entries],
        "unmet": unmet(made, study, [*known, *(one.category for one in entries)]),
        "recorded": len(cooked),
        "notes": [
            *_changed_clocks(study),
            *_changed_recipes(graphs, kept),
            *([f"sessions last {minutes} minutes: nine of ten recordings were no longer"] if minutes else []),
            *_uneven(study, new),
        ],
    }


def _minutes(study: Study, cooked: Sequence[CookedRecording]) -> int | None:
    """Return how long a session is by past recordings, nine in ten of which were no longer; None where unasked."""
    lengths = sorted(one.seconds for one in cooked if one.seconds)
    if not study.as_long_as_past or len(lengths) < FEW:
        return None
    nine_of_ten_s = lengths[ceil(0.9 * len(lengths)) - 1]
    return STEP_MINUTES * ceil(nine_of_ten_s / 60 / STEP_MINUTES)


def _used(cooked: Sequence[CookedRecording], kept: Sequence[PlanEntry]) -> dict[str, list[Order]]:
    """Return the orders that recipes were cooked in, or will be."""
    used: dict[str, list[Order]] = defaultdict(list)
    for one in cooked:
        if one.session.strategy == NORMAL:
            used[one.session.recipe].append(one.order)
    for entry in kept:
        if entry.strategy == NORMAL and entry.order:
            used[entry.recipe].append(entry.order)
    return used


def _used_scripts(
    cooked: Sequence[CookedRecording], kept: Sequence[PlanEntry]
) -> defaultdict[str, Counter[str]]:
    """Count the error scripts that recipes were cooked by, or will be."""
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in cooked:
        used[one.session.recipe][one.script] += 1
    for entry in kept:
        used[entry.recipe][entry.script] += 1
    return used


def _orders(graphs: Mapping[str, Graph], used: Mapping[str, Sequence[Order]]) -> dict[str, OrdersLeft]:
    found = {}
    for name, graph in graphs.items():
        try:
            total = count_orders(graph)
        except TooManyStates:
            continue
        valid = {order for order in used.get(name, ()) if is_valid_order(graph, order)}
        found[name] = OrdersLeft(total, total - len(valid))
    return found


def _without_wrong_order(study: Study, graphs: Mapping[str, Graph]) -> frozenset[str]:
    wanted = {goal.recipe for goal in study.goals if goal.strategy == DISORDERED}
    return frozenset(name for name in wanted if not script_of(graphs[name], DISORDERED, seed=0))


def _uneven(study: Study, new: Sequence[PlanEntry]) -> list[str]:
    """Name what could not be assigned evenly: recipes twice in a row, uneven numbers of errors, repeated scripts."""
    found, sessions = [], [*study.settled, *(one.settled for one in new)]
    for one in new:
        own = [other for other in sessions if other.person == one.person]
        if one.recipe in neighbours(own, one.start):
            found.append(f"{one.person} cooks {one.recipe} twice in a row on {one.start:%Y-%m-%d}")
    for person in dict.fromkeys(one.person for one in new):
        normal = [one.strategy == NORMAL for one in sessions if one.person == person]
        if abs(2 * sum(normal) - len(normal)) > 1:
            found.append(f"{person} cooks {sum(normal)} of {len(normal)} sessions without errors")
    scripts = Counter((one.recipe, one.script) for one in new if one.script)
    found += [
        f"{recipe}: an error script is planned {n} times" for (recipe, _), n in scripts.items() if n > 1
    ]
    return found


def _changed_clocks(study: Study) -> list[str]:
    """Name the days on which the zone's clocks change: hours of people and kitchens stay local."""
    days = [study.begin + timedelta(days=number) for number in range(study.days)]
    changed = [
        day
        for day in days
        if datetime.combine(day, time(0), study.zone).utcoffset()
        != datetime.combine(day + timedelta(days=1), time(0), study.zone).utcoffset()
    ]
    return [
        f"clocks change on {day} in {study.zone}: hours stay local, sessions last as long" for day in changed
    ]


def _changed_recipes(graphs: Mapping[str, Graph], kept: Sequence[PlanEntry]) -> list[str]:
    """Name the sessions that stay though their recipe, or what was drawn from it, is another now."""
    found = []
    for one in kept:
        session = f"{one.person}'s session of {one.start.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        if one.recipe not in graphs:
            found.append(f"{session} stays, but no goal wants {one.recipe}")
        elif one.order and not is_valid_order(graphs[one.recipe], one.order):
            found.append(f"{one.recipe} has a new version: {session} gets another order when it begins")
        elif one.script and one.script != script_of(
            graphs[one.recipe], one.strategy, seed=one.seed or 0, category=one.category
        ):
            changed = f"{one.recipe}, the seed or the kind of errors is another now"
            found.append(f"{changed}: {session} gets another error script when it begins")
    return found
