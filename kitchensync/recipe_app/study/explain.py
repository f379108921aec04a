"""Explanations of a plan: why a session is planned, and why a goal is not met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, product

from kitchensync.recipe_app.study.assign import PlannedSession, StudyPlan, slots_of
from kitchensync.recipe_app.study.wanted import NORMAL, Cook, Study, StudyGoal, StudyKitchen


def why_session(session: PlannedSession, plan: StudyPlan, study: Study) -> str:
    """Return the goal of a session and its number among the sessions of that goal, in words."""
    goal = session.goal
    number = 1 + sum(
        (other.person, other.goal.recipe) == (session.person, goal.recipe)
        and other.slot.begin < session.slot.begin
        for other in plan.sessions
    )
    number += sum((other.person, other.recipe) == (session.person, goal.recipe) for other in study.settled)
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return (
        f"{goal.name}: {session.number} of {goal.count} wanted; {session.person} cooks {goal.recipe} for the "
        f"{number}{ending} of {study.rules.per_person_and_recipe} times"
    )


def why_missing(goal: StudyGoal, plan: StudyPlan, study: Study) -> str:
    """Return the first limit that prevents an unmet goal, in words."""
    cooks = [cook for cook in study.cooks if study.may(goal, cook)]
    kitchens = [kitchen for kitchen in study.kitchens if study.suits(goal, kitchen)]
    reasons = chain(
        _reasons(goal, cooks, kitchens, plan, study), _no_hour(goal, cooks, kitchens, plan, study)
    )
    return next(reasons, "a rule or other goals leave no room")


def _reasons(
    goal: StudyGoal, cooks: list[Cook], kitchens: list[StudyKitchen], plan: StudyPlan, study: Study
) -> Iterator[str]:
    if not cooks and goal.person and goal.person not in {cook.name for cook in study.cooks}:
        yield f"there is no person {goal.person}"
    if not cooks:
        yield f"nobody may cook {goal.recipe}: everybody who could avoids it"
    if not kitchens:
        named = f"there is no kitchen {goal.kitchen}" if goal.kitchen else ""
        yield named or f"no kitchen belongs to the part {goal.part}"
    if not study.is_possible(goal):
        yield f"{goal.recipe} has no wrong order that leaves the steps in place that keep people safe"
    orders = study.orders.get(goal.recipe)
    if goal.strategy == NORMAL and orders is not None:
        used = sum(
            session.goal.recipe == goal.recipe and session.goal.strategy == NORMAL
            for session in plan.sessions
        )
        if used >= orders.new:
            yield f"{goal.recipe} has {orders.total} orders, all used"
    times = Counter(session.person for session in plan.sessions if session.goal.recipe == goal.recipe)
    times.update(session.person for session in study.settled if session.recipe == goal.recipe)
    most = study.rules.per_person_and_recipe
    if all(times[cook.name] >= most for cook in cooks):
        yield f"everybody who may cooks {goal.recipe} {most} times already"


def _no_hour(
    goal: StudyGoal, cooks: list[Cook], kitchens: list[StudyKitchen], plan: StudyPlan, study: Study
) -> Iterator[str]:
    """Narrow down the slots with a cook and a kitchen available; yield the limit that excludes the last ones."""
    slots = slots_of(study)
    if not slots and study.not_before is not None:
        yield f"no hour of the study is left after {study.not_before:%Y-%m-%d %H:%M}; set begin or days anew"
    both = [
        (slot, cook, session)
        for slot, cook, session in product(slots, cooks, kitchens)
        if slot.is_open(cook) and slot.is_open(session)
    ]
    if not both:
        yield "whoever may cook it and a kitchen that suits are never there at the same time"
    taken = {
        (session.slot.begin, who) for session in plan.sessions for who in (session.person, session.kitchen)
    }
    free = [at for at in both if not taken & {(at[0].begin, at[1].name), (at[0].begin, at[2].name)}]
    if not free:
        yield "every hour in which somebody and a kitchen are free is taken"
    days = Counter((session.person, session.slot.day) for session in plan.sessions)
    alike = {
        (session.person, session.slot.day) for session in plan.sessions if session.goal.recipe == goal.recipe
    }
    fresh = [at for at in free if (at[1].name, at[0].day) not in alike]
    if not fresh:
        yield f"on every day that is left whoever may cooks {goal.recipe} already; never twice on a day"
    most = study.rules.most_a_day
    if all(days[cook.name, slot.day] >= most for slot, cook, _ in fresh):
        yield f"on every day that is left whoever may cooks {most} times already"
