"""A study as a TOML file: goals, people, kitchens, hours and rules."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, time
from itertools import product
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kitchensync.operations.operation_kinds import first_problem
from kitchensync.recipe_app.study.wanted import (
    STRATEGIES,
    Cook,
    Display,
    OpenHours,
    Study,
    StudyGoal,
    StudyKitchen,
    StudyRules,
)
from kitchensync.shell.files_on_disk import matching
from kitchensync.task_graphs.errors import RecipeError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(r"([a-z]{3})(?:-([a-z]{3}))? (\d\d:\d\d)-(\d\d:\d\d)")
Text = Annotated[str, Field(min_length=1, max_length=80)]
UNKNOWN_MINUTES = 60
"""Length of a session if the file does not state it and too few were recorded."""
OneOrMore = Text | Annotated[list[Text], Field(min_length=1)]


class BadStudy(RecipeError):
    """A study file that cannot be planned."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Frame(_Table):
    zone: str
    begin: date
    days: Annotated[int, Field(ge=1, le=400)]
    session_minutes: Annotated[int, Field(ge=5, le=600)] | None = None
    changeover_minutes: Annotated[int, Field(ge=0, le=600)] = 15
    recipes: str = "recipes"


class _Rules(_Table):
    per_person_and_recipe: Annotated[int, Field(ge=1)] = 4
    most_a_day: Annotated[int, Field(ge=1)] = 3
    categories: Annotated[int, Field(ge=0, le=7)] = 0


class _Person(_Table):
    hours: list[str]
    away: list[date] = []
    avoids: list[str] = []


class _Kitchen(_Table):
    hours: list[str]
    away: list[date] = []
    rig: str = ""
    parts: list[str] = []


class _Goal(_Table):
    recipe: OneOrMore
    strategy: OneOrMore
    count: Annotated[int, Field(ge=1, le=10_000)]
    display: Display = "steps"
    kitchen: str = ""
    person: str = ""
    part: str = ""
    weight: Annotated[int, Field(ge=1, le=1000)] = 1


class _File(_Table):
    study: _Frame
    rules: _Rules = _Rules()
    people: dict[str, _Person]
    kitchens: dict[str, _Kitchen]
    goals: list[_Goal]


def read_study(path: Path) -> tuple[Study, Path]:
    """Read a study file; return the study without recordings, and the folder of its recipes. Raises BadStudy."""
    try:
        file = _parsed(path.read_text(encoding="utf-8"), path.name)
        folder = (path.parent / file.study.recipes).resolve()
        names = [path.stem for path in matching(folder, "*.json")]
    except (OSError, ValueError) as error:
        raise BadStudy(path.name, f"cannot be read ({error})") from error
    return _study(file, names, path.name), folder


def parse_study(text: str, recipes: Sequence[str]) -> Study:
    """Parse the text of a study file; `recipes` are the known names. Raises BadStudy."""
    return _study(_parsed(text, "study"), recipes, "study")


def _parsed(text: str, name: str) -> _File:
    try:
        return _File(**tomllib.loads(text))
    except ValidationError as error:
        raise BadStudy(name, first_problem(error)) from error
    except (ValueError, RecursionError, TypeError) as error:
        raise BadStudy(name, f"cannot be read ({error})") from error


def _study(file: _File, recipes: Sequence[str], name: str) -> Study:
    try:
        zone = ZoneInfo(file.study.zone)
    except (KeyError, ValueError, OSError) as error:
        why = f"study.zone: there is no time zone {file.study.zone!r}; one is Europe/Berlin"
        raise BadStudy(name, why) from error
    study = Study(
        zone,
        file.study.begin,
        file.study.days,
        file.study.session_minutes or UNKNOWN_MINUTES,
        file.study.changeover_minutes,
        tuple(table for goal in file.goals for table in _goals(goal, recipes, name)),
        tuple(
            Cook(cook, _open(table.hours, table.away, f"people.{cook}", name), frozenset(table.avoids))
            for cook, table in file.people.items()
        ),
        tuple(_kitchen(kitchen, table, name) for kitchen, table in file.kitchens.items()),
        StudyRules(**file.rules.model_dump()),
        as_long_as_past=file.study.session_minutes is None,
    )
    # Refuse contradictions; goals that cannot be met are reported with the plan.
    if not study.cooks or not study.kitchens or not study.goals:
        raise BadStudy(name, "a study needs people, kitchens and goals")
    twice = {goal.name for goal in study.goals if sum(table.name == goal.name for table in study.goals) > 1}
    if twice:
        raise BadStudy(name, f"goals: {min(twice)} occurs twice; give one count")
    parts = {part for kitchen in study.kitchens for part in kitchen.parts}
    for goal in study.goals:
        home = next((table for table in study.kitchens if table.name == goal.kitchen), None)
        if home and goal.part and goal.part in parts and goal.part not in home.parts:
            raise BadStudy(
                name, f"goals: {goal.name}: kitchen {home.name} does not belong to the part {goal.part}"
            )
    return study


def _kitchen(name: str, table: _Kitchen, file: str) -> StudyKitchen:
    hours = _open(table.hours, table.away, f"kitchens.{name}", file)
    return StudyKitchen(name, hours, table.rig or f"rig of {name}", frozenset(table.parts))


def _open(lines: list[str], away: list[date], place: str, file: str) -> OpenHours:
    weekly = []
    for line in lines:
        match = _HOURS.fullmatch(line.strip().lower())
        days = [day for day in (match.groups()[:2] if match else ()) if day]
        if not match or not set(days) <= set(DAYS):
            raise BadStudy(file, f"{place}.hours: {line!r} is not a time such as 'mon-fri 09:00-17:00'")
        first, last = _clock(match[3], place, file), _clock(match[4], place, file)
        numbers = [DAYS.index(day) for day in days]
        if numbers[-1] < numbers[0] or last <= first:
            raise BadStudy(file, f"{place}.hours: {line!r} ends before it begins")
        weekly += [(day, first, last) for day in range(numbers[0], numbers[-1] + 1)]
    return OpenHours(tuple(weekly), frozenset(away))


def _clock(text: str, place: str, file: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError as error:
        raise BadStudy(file, f"{place}.hours: there is no time {text}") from error


def _goals(goal: _Goal, names: Sequence[str], file: str) -> list[StudyGoal]:
    """Return a goal for each recipe and strategy that a table names; `*` is every recipe of the folder."""
    recipes = [goal.recipe] if isinstance(goal.recipe, str) else goal.recipe
    strategies = [goal.strategy] if isinstance(goal.strategy, str) else goal.strategy
    chosen = [name for recipe in recipes for name in (names if recipe == "*" else [recipe])]
    for name in chosen:
        if name not in names:
            raise BadStudy(
                file, f"goals: there is no recipe {name!r}; there are {', '.join(names) or 'none'}"
            )
    for name in strategies:
        if name not in STRATEGIES:
            raise BadStudy(file, f"goals: there is no strategy {name!r}")
    rest: Mapping[str, object] = goal.model_dump(exclude={"recipe", "strategy"})
    return [StudyGoal(recipe, strategy, **rest) for recipe, strategy in product(chosen, strategies)]  # type: ignore[arg-type]
