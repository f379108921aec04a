"""Plan files: entries that people read, edit and lock; locked entries stay when the study is planned again."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Annotated, TypedDict

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from kitchensync.operations.operation_kinds import first_problem
from kitchensync.recipe_app.study.assign import StudyPlan
from kitchensync.recipe_app.study.error_scripts import draw_unused
from kitchensync.recipe_app.study.explain import why_missing, why_session
from kitchensync.recipe_app.study.study_file import BadStudy
from kitchensync.recipe_app.study.wanted import NORMAL, PLANNED, CookedSession, Study
from kitchensync.task_graphs.categories import CATEGORIES, OTHER
from kitchensync.task_graphs.formats.graph_files import read_graph
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.diverse import draw_diverse
from kitchensync.task_graphs.order.orders import Order

SCHEMA = "study-plan/1"
LATE = timedelta(hours=12)
"""Time after its start that a session still counts as coming, and largest distance of its recording from it."""
KINDS_IN_TURN = tuple(category.name for category in CATEGORIES if category.number != OTHER)
"""Kinds of errors, assigned in turn to sessions with planned errors."""


class PlanEntry(BaseModel):
    """A session of a plan file; `order` is the order of its steps, `category` its first kind of error.

    `seed` is for everything drawn when the session begins; `script` is the hash of its error script.
    """

    model_config = ConfigDict(extra="forbid")

    recipe: str
    strategy: str
    display: str
    part: str = ""
    person: str
    kitchen: str
    start: AwareDatetime
    minutes: Annotated[int, Field(ge=1, le=600)]
    order: tuple[int, ...] = ()
    category: str = ""
    seed: Annotated[int, Field(ge=0, le=2**53)] | None = None
    script: str = ""
    why: str = ""
    locked: bool = False

    @property
    def settled(self) -> CookedSession:
        """The entry as a settled session for planning."""
        return CookedSession(
            self.recipe, self.strategy, self.display, self.person, self.kitchen, self.start, self.part
        )


def read_plan(path: Path) -> list[PlanEntry]:
    """Read the entries of a plan file. Raises BadStudy."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return [PlanEntry.model_validate(entry) for entry in document["sessions"]]
    except ValidationError as error:
        raise BadStudy(path.name, f"sessions: {first_problem(error)}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadStudy(path.name, f"is not a plan from `study plan` ({error})") from error


def read_locked(path: Path) -> list[PlanEntry]:
    """Read the locked entries of a plan file. Raises BadStudy, also for two entries in conflict."""
    entries = [earlier for earlier in read_plan(path) if earlier.locked]
    for earlier, later in combinations(entries, 2):
        first, second = sorted((earlier, later), key=lambda entry: entry.start)
        if second.start < first.start + timedelta(minutes=first.minutes) and (
            earlier.person == later.person or earlier.kitchen == later.kitchen
        ):
            who = earlier.person if earlier.person == later.person else earlier.kitchen
            raise BadStudy(
                path.name, f"two locked sessions need {who} at {second.start.isoformat()}; unlock one"
            )
    return entries


def entries_of(
    plan: StudyPlan,
    study: Study,
    graphs: Mapping[str, Graph],
    used: Mapping[str, Sequence[Order]],
    kinds: Counter[str],
    scripts: defaultdict[str, Counter[str]],
    *,
    seed: int,
) -> list[PlanEntry]:
    """Return a plan's entries: those without errors with new valid orders, those with errors with new scripts.

    Planned errors are of the rarest kind by `kinds`. `kinds` and the used `scripts` of each recipe are updated.
    """
    normal = [session.goal.recipe for session in plan.sessions if session.goal.strategy == NORMAL]
    drawn = {
        recipe: iter(
            draw_diverse(
                graphs[recipe], count=normal.count(recipe), seed=seed, recorded=used.get(recipe, ())
            ).orders
        )
        for recipe in dict.fromkeys(normal)
    }
    entries = []
    for session in plan.sessions:
        goal = session.goal
        category = rarest(kinds) if goal.strategy == PLANNED else ""
        kinds[category] += 1
        rng = random.Random(f"session {seed} {goal.name} {session.person} {session.slot.begin.isoformat()}")
        used_scripts = scripts[goal.recipe]
        own_seed, script = draw_unused(
            graphs[goal.recipe], goal.strategy, category, used=used_scripts, rng=rng
        )
        used_scripts[script] += 1
        entries.append(
            PlanEntry(
                recipe=goal.recipe,
                strategy=goal.strategy,
                display=goal.display,
                part=goal.part,
                person=session.person,
                kitchen=session.kitchen,
                start=session.slot.begin,
                minutes=study.session_minutes,
                order=next(drawn[goal.recipe]) if goal.strategy == NORMAL else (),
                category=category,
                seed=own_seed,
                script=script,
                why=why_session(session, plan, study),
            )
        )
    return entries


def rarest(kinds: Mapping[str, int]) -> str:
    """Return the kind of error with the fewest sessions, the first of several."""
    return min(KINDS_IN_TURN, key=lambda name: kinds.get(name, 0))


class UnmetGoal(TypedDict):
    """A goal for which sessions are missing, and the reason."""

    goal: str
    missing: int
    reason: str


def unmet(plan: StudyPlan, study: Study, kinds_seen: Iterable[str]) -> list[UnmetGoal]:
    """Return the unmet goals with the number of missing sessions and the reason."""
    goals: list[UnmetGoal] = [
        {"goal": goal.name, "missing": count, "reason": why_missing(goal, plan, study)}
        for goal, count in plan.missing.items()
    ]
    kinds = len(set(kinds_seen) - {""})
    if kinds < study.rules.categories:
        reason = "a session with planned errors is for one kind first, and there are too few of them"
        lack = study.rules.categories - kinds
        goals.append({"goal": f"{study.rules.categories} kinds of errors", "missing": lack, "reason": reason})
    return goals


def graphs_of(study: Study, recipes: Path) -> dict[str, Graph]:
    """Read the graphs of the recipes in the goals."""
    names = dict.fromkeys(goal.recipe for goal in study.goals)
    return {name: read_graph(recipes / f"{name}.json") for name in names}
