"""A plan from what there is now: what was recorded counts, what was kept stays, the rest is planned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
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
    (used, scripts), notes = _used(cooked, kept), [*_changed_clocks(study), *_changed_recipes(graphs, kept)]
    lengths = sorted(one.seconds for one in cooked if one.seconds)
    if study.as_long_as_past and len(lengths) >= FEW:  # nine in ten recordings were no longer
        minutes = STEP_MINUTES * ceil(lengths[ceil(0.9 * len(lengths)) - 1] / 60 / STEP_MINUTES)
        study = replace(study, session_minutes=minutes)
        notes.append(f"sessions last {minutes} minutes: nine of ten recordings were no longer")
    wrong = {goal.recipe for goal in study.goals if goal.strategy == DISORDERED}
    study = replace(
        study,
        settled=(*(one.session for one in cooked), *(one.settled for one in kept)),
        orders=_orders(graphs, used),
        without_wrong_order=frozenset(
            name for name in wrong if not script_of(graphs[name], DISORDERED, seed=0)
        ),
    )
    made = plan_study(study, seed=seed)
    kinds = _kinds(cooked, kept)
    counted = Counter(kind for kind in kinds if kind)
    for _ in range(kinds.count("")):  # one whose kind nobody knows had the next one in turn
        counted[rarest(counted)] += 1
    new = entries_of(made, study, graphs, used, counted, scripts, seed=seed)
    entries = sorted([*kept, *new], key=lambda one: (one.start, one.kitchen))
    return {
        "goals": [asdict(goal) for goal in study.goals],
        "sessions": [one.model_dump(mode="json") for one in entries],
        "unmet": unmet(made, study, [*kinds, *(one.category for one in entries)]),
        "recorded": len(cooked),
        "notes": [*notes, *_uneven(study, new)],
    }


def _kinds(cooked: Sequence[CookedRecording], kept: Sequence[PlanEntry]) -> list[str]:
    """Return the kinds of errors that sessions were for, or will be; an empty name where nobody knows."""
    names = [KINDS_IN_TURN[number] for one in cooked for number in one.categories if number < OTHER]
    unknown = [one for one in cooked if one.session.strategy == PLANNED and not one.categories]
    return [*names, *(one.category for one in kept if one.category), *("" for _ in unknown)]


def _used(
    cooked: Sequence[CookedRecording], kept: Sequence[PlanEntry]
) -> tuple[dict[str, list[Order]], defaultdict[str, Counter[str]]]:
    """Return the orders that recipes were cooked in, or will be; and count the error scripts."""
    orders: dict[str, list[Order]] = defaultdict(list)
    scripts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    known = [(one.session.recipe, one.session.strategy, one.order, one.script) for one in cooked]
    known += [(one.recipe, one.strategy, one.order, one.script) for one in kept]
    for place, (recipe, strategy, order, script) in enumerate(known):
        scripts[recipe][script] += 1
        if strategy == NORMAL and (order or place < len(cooked)):
            orders[recipe].append(order)
    return orders, scripts


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
    midnights = [
        datetime.combine(study.begin + timedelta(days=number), time(0), study.zone)
        for number in range(study.days + 1)
    ]
    return [
        f"clocks change on {one:%Y-%m-%d} in {study.zone}: hours stay local, sessions last as long"
        for one, after in pairwise(midnights)
        if one.utcoffset() != after.utcoffset()
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
