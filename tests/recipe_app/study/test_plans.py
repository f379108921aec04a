"""Plans judged by a checker of their own: no rule is broken, nothing that fits is left out."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from kitchensync.recipe_app.study.assign import StudyPlan, TimeSlot, plan_study, slots_of
from kitchensync.recipe_app.study.explain import why_missing, why_session
from kitchensync.recipe_app.study.plan_file import PlanEntry
from kitchensync.recipe_app.study.study_progress import to_come
from kitchensync.recipe_app.study.wanted import (
    Cook,
    CookedSession,
    OpenHours,
    OrdersLeft,
    Study,
    StudyGoal,
    StudyKitchen,
    StudyRules,
)
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.order.orders import count_orders

ZONE = ZoneInfo("Europe/Berlin")
WEEK = tuple((day, time(9), time(18)) for day in range(5))
MONDAY = date(2027, 3, 1)


def study(
    goals: list[StudyGoal],
    cooks: list[Cook],
    kitchens: list[StudyKitchen],
    *,
    days: int = 5,
    rules: StudyRules | None = None,
    orders: dict[str, OrdersLeft] | None = None,
    settled: tuple[CookedSession, ...] = (),
) -> Study:
    return Study(
        ZONE, MONDAY, days, 60, 15, tuple(goals), tuple(cooks), tuple(kitchens), rules or StudyRules(),
        orders or {}, settled,
    )  # fmt: skip


def broken_rules(wanted: Study, sessions: list[tuple[StudyGoal, str, str, datetime]]) -> list[str]:
    """What a plan must not do, from its sessions alone: (goal, person, kitchen, begin)."""
    found = []
    length, around = timedelta(minutes=wanted.session_minutes), timedelta(minutes=wanted.changeover_minutes)
    cooks = {cook.name: cook for cook in wanted.cooks}
    kitchens = {kitchen.name: kitchen for kitchen in wanted.kitchens}
    spans = [
        (begin, who) for _, person, kitchen, begin in sessions for who in (person, kitchens[kitchen].rig)
    ]
    spans += [(one.start, who) for one in wanted.settled for who in (one.person, kitchens[one.kitchen].rig)]
    for (first, one), (second, other) in itertools.combinations(spans, 2):
        if one == other and abs(first - second) < length + around:
            found.append(f"{one} twice at {first}")
    for goal, person, kitchen, begin in sessions:
        end = (begin.astimezone(UTC) + length).astimezone(ZONE)
        for hours in (cooks[person].hours, kitchens[kitchen].hours):
            inside = any(
                day == begin.weekday() and a <= begin.time() and end.time() <= b for day, a, b in hours.weekly
            )
            if not inside or begin.date() in hours.away:
                found.append(f"nobody there at {begin}")
        wrong_place = goal.kitchen not in ("", kitchen) or (
            goal.part and goal.part not in kitchens[kitchen].parts
        )
        if goal.recipe in cooks[person].avoids or goal.person not in ("", person) or wrong_place:
            found.append(f"{goal.name} is not for {person} in {kitchen}")
    done = [(one.person, one.recipe, one.start.astimezone(ZONE).date()) for one in wanted.settled]
    done += [(person, goal.recipe, begin.date()) for goal, person, _, begin in sessions]
    found += [f"alike: {key}" for key, times in Counter(done).items() if times > 1]
    many = Counter((person, recipe) for person, recipe, _ in done)
    found += [
        f"too often: {key}" for key, times in many.items() if times > wanted.rules.per_person_and_recipe
    ]
    a_day = Counter((person, day) for person, _, day in done)
    found += [f"too much: {key}" for key, times in a_day.items() if times > wanted.rules.most_a_day]
    goals = Counter(goal for goal, *_ in sessions)
    found += [f"too many: {goal.name}" for goal, times in goals.items() if times > goal.count]
    normal = Counter(goal.recipe for goal, *_ in sessions if goal.strategy == "normal")
    found += [f"orders: {name}" for name, left in wanted.orders.items() if normal[name] > left.new]
    return found


def flat(plan: StudyPlan) -> list[tuple[StudyGoal, str, str, datetime]]:
    return [(one.goal, one.person, one.kitchen, one.slot.begin) for one in plan.sessions]


def anything(seed: int, *, most: int) -> Study:
    """A small study at random: people with hours, kitchens that share rigs, goals of parts and persons."""
    rng = random.Random(seed)
    recipes = [f"r{n}" for n in range(rng.randint(1, 4))]
    cooks = [
        Cook(
            f"p{n}",
            OpenHours(tuple(rng.sample(WEEK[:most], rng.randint(1, most)))),
            frozenset(rng.sample(recipes, rng.choice((0, 0, 1)))),
        )
        for n in range(rng.randint(1, 3))
    ]  # fmt: skip
    short = tuple((day, time(9), time(rng.choice((11, 13)))) for day in range(most))
    kitchens = [
        StudyKitchen(f"k{n}", OpenHours(short), f"rig{rng.randint(0, n)}", frozenset({rng.choice(["train", "test"])}))
        for n in range(rng.randint(1, 2))
    ]  # fmt: skip
    goals = [
        StudyGoal(
            recipe, strategy, rng.randint(1, 3), weight=rng.randint(1, 3),
            part=rng.choice(("", "", "train", "test")), person=rng.choice(("", "", "p0")),
        )
        for recipe in recipes
        for strategy in rng.sample(["normal", "induced"], rng.randint(1, 2))
    ]  # fmt: skip
    orders = {recipe: OrdersLeft(9, rng.randint(0, 3)) for recipe in recipes if rng.random() < 0.5}
    rules = StudyRules(per_person_and_recipe=rng.randint(1, 3), most_a_day=rng.randint(1, 2))
    return study(goals, cooks, kitchens, days=most, rules=rules, orders=orders)


@pytest.mark.parametrize("seed", range(50))
def test_no_plan_breaks_a_rule_or_leaves_out_what_would_still_fit(seed: int) -> None:
    wanted = anything(seed, most=4)
    made = plan_study(wanted, seed=seed)
    sessions = flat(made)
    assert broken_rules(wanted, sessions) == []
    assert plan_study(wanted, seed=seed) == made
    places = list(itertools.product(slots_of(wanted), wanted.cooks, wanted.kitchens))
    for goal, count in made.missing.items():
        assert count == goal.count - sum(one.goal == goal for one in made.sessions)
        assert why_missing(goal, made, wanted)
        more = ([*sessions, (goal, cook.name, one.name, slot.begin)] for slot, cook, one in places)
        assert all(broken_rules(wanted, tried) for tried in more)
    for one in made.sessions:
        assert f"{one.number} of {one.goal.count} wanted" in why_session(one, made, wanted)


@pytest.mark.parametrize("seed", range(8))
def test_each_person_gets_each_recipe_in_each_kitchen_and_half_with_errors(seed: int) -> None:
    cooks = [Cook(f"p{n}", OpenHours(WEEK)) for n in range(3)]
    kitchens = [StudyKitchen(f"k{n}", OpenHours(WEEK), f"rig{n}") for n in range(2)]
    goals = [StudyGoal(f"r{n}", strategy, 3) for n in range(4) for strategy in ("normal", "induced")]
    made = plan_study(study(goals, cooks, kitchens, days=12), seed=seed)
    assert (len(made.sessions), made.missing) == (24, {})
    for cook in cooks:
        own = [one for one in made.sessions if one.person == cook.name]
        assert abs(len(own) - 8) <= 1
        assert abs(2 * sum(one.goal.strategy == "normal" for one in own) - len(own)) <= 2
        assert len({(one.goal.recipe, one.kitchen) for one in own}) >= 7
        assert all(one.goal.recipe != other.goal.recipe for one, other in itertools.pairwise(own))


@pytest.mark.slow
def test_eight_people_ten_kitchens_and_twenty_four_recipes() -> None:
    cooks = [Cook(f"p{n}", OpenHours(WEEK), frozenset({f"r{n}"})) for n in range(8)]
    kitchens = [
        StudyKitchen(f"k{n}", OpenHours(WEEK), f"rig{n % 4}", frozenset({"test" if n > 7 else "train"}))
        for n in range(10)
    ]
    goals = [
        StudyGoal(f"r{n}", strategy, count, part=part)
        for n in range(24)
        for strategy, count, part in (("normal", 6, "train"), ("normal", 2, "test"), ("induced", 8, ""))
    ]
    wanted = study(goals, cooks, kitchens, days=32)
    made = plan_study(wanted)
    assert broken_rules(wanted, flat(made)) == []
    assert (len(made.sessions), made.missing) == (384, {})


def test_pinwheels_has_nine_orders_for_twelve_recordings(shared_data: Callable[[str], Path]) -> None:
    graph = read_graph(shared_data("captaincook4d/task_graphs/pinwheels.json"))
    total = count_orders(graph)
    goal = StudyGoal("pinwheels", "normal", 12)
    cooks = [Cook(f"p{n}", OpenHours(WEEK)) for n in range(3)]
    wanted = study(
        [goal],
        cooks,
        [StudyKitchen("k", OpenHours(WEEK), "rig")],
        orders={"pinwheels": OrdersLeft(total, total)},
    )
    made = plan_study(wanted)
    assert (total, len(made.sessions), made.missing) == (9, 9, {goal: 3})
    assert why_missing(goal, made, wanted) == "pinwheels has 9 orders, all used"


def at(day: int, hour: int) -> datetime:
    return datetime.combine(MONDAY + timedelta(days=day), time(hour), ZONE)


def test_what_is_settled_counts_and_is_planned_around() -> None:
    goal = StudyGoal("tea", "normal", 3)
    cook, kitchen = Cook("Basil", OpenHours(WEEK)), StudyKitchen("north", OpenHours(WEEK), "rig")
    settled = (CookedSession("tea", "normal", "steps", "Basil", "north", at(0, 9)),)
    wanted = study([goal], [cook], [kitchen], settled=settled)
    made = plan_study(wanted)
    assert broken_rules(wanted, flat(made)) == []
    assert [(one.slot.day, one.number) for one in made.sessions] == [
        (1, 2),
        (2, 3),
    ]  # not twice on a day, early


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"person": "Nobody"}, "there is no person Nobody"),
        ({"kitchen": "west"}, "there is no kitchen west"),
        ({"part": "val"}, "no kitchen belongs to the part val"),
        ({"recipe": "nuts"}, "nobody may cook nuts: everybody who could avoids it"),
        ({"count": 9}, "everybody who may cooks tea 4 times already"),
    ],
)
def test_why_a_goal_is_not_met(more: dict[str, str | int], said: str) -> None:
    goal = StudyGoal(**{"recipe": "tea", "strategy": "normal", "count": 1, **more})  # type: ignore[arg-type]
    cook = Cook("Basil", OpenHours(WEEK), frozenset({"nuts"}))
    wanted = study([goal], [cook], [StudyKitchen("north", OpenHours(WEEK), "rig")], days=12)
    made = plan_study(wanted)
    assert why_missing(goal, made, wanted) == said


def test_hours_that_never_meet_and_hours_that_are_all_taken() -> None:
    goal = StudyGoal("tea", "normal", 5)
    early = OpenHours(((0, time(9), time(11)),))
    late = OpenHours(((1, time(9), time(11)),))
    apart = study([goal], [Cook("Basil", early)], [StudyKitchen("north", late, "rig")])
    assert "never there at the same time" in why_missing(goal, plan_study(apart), apart)
    full = study([goal], [Cook("Basil", early), Cook("Dill", early)], [StudyKitchen("north", early, "rig")])
    made = plan_study(full)
    assert len(made.sessions) == 1
    assert "is taken" in why_missing(goal, made, full)


def test_sessions_last_as_long_when_clocks_change_and_none_begins_in_the_hour_left_out() -> None:
    night = OpenHours(tuple((day, time(0, 30), time(6)) for day in range(7)))
    wanted = Study(
        ZONE, date(2027, 3, 28), 1, 60, 0, (StudyGoal("tea", "normal", 1),), (Cook("Basil", night),),
        (StudyKitchen("north", night, "rig"),),
    )  # fmt: skip
    slots: list[TimeSlot] = slots_of(wanted)
    assert [f"{slot.begin:%H:%M}" for slot in slots] == [
        "00:30",
        "01:30",
        "03:30",
        "04:30",
    ]  # 02:30 does not exist
    assert {(slot.end.astimezone(UTC) - slot.begin.astimezone(UTC)) for slot in slots} == {timedelta(hours=1)}
    assert f"{slots[1].end:%H:%M}" == "03:30"


@pytest.mark.parametrize(("late", "is_to_come"), [(-24, True), (1, True), (11, True), (13, False)])
def test_a_session_is_still_to_come_some_hours_after_its_time(late: int, is_to_come: bool) -> None:
    entry = PlanEntry(
        recipe="tea",
        strategy="normal",
        display="steps",
        person="Basil",
        kitchen="north",
        start=at(0, 9),
        minutes=60,
    )
    found = to_come([entry], [], at(0, 9) + timedelta(hours=late))
    assert found == ([entry.settled] if is_to_come else [])
