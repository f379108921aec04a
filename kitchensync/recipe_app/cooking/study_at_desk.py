"""The study at the desk: its saved plan, and planning it again from recordings, people and the shelf."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.exchange.stated_facts import PERSON, RECIPE, latest
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.study.already_cooked import CookedRecording, cooked_below
from kitchensync.recipe_app.study.as_cooked import as_cooked
from kitchensync.recipe_app.study.make_plan import make_plan
from kitchensync.recipe_app.study.next_sessions import kept_plan, name_of, sessions_of, taken
from kitchensync.recipe_app.study.plan_file import PlanEntry
from kitchensync.recipe_app.study.study_file import parse_study
from kitchensync.recipe_app.study.study_progress import to_come
from kitchensync.recipe_app.study.wanted import Cook, CookedSession, Study
from kitchensync.task_graphs.model import Graph


@dataclass(frozen=True)
class StudySoFar:
    """The saved study, the recordings that count, those that do not and why, and the coming sessions."""

    study: Study
    cooked: list[CookedRecording]
    left_out: dict[str, str]
    coming: list[CookedSession]
    now: datetime


def study_so_far(tools: Collaborators) -> StudySoFar | None:
    """Return the progress of the saved study; None without one. Raises BadStudy."""
    if not (text := kept_plan(tools.records)[1].get("study", "")):
        return None
    cooked, left_out = cooked_below(tools.folders.data)
    study, now = parse_study(text, _names(tools)), _now(tools)
    entries = [entry for entry, gone in _entries(tools) if not gone]
    return StudySoFar(study, cooked, left_out, to_come(entries, cooked, now), now)


def zone_of(tools: Collaborators) -> ZoneInfo:
    """Return the time zone of the saved study, UTC without one. Raises BadStudy."""
    text = kept_plan(tools.records)[1].get("study", "")
    return parse_study(text, _names(tools)).zone if text else ZoneInfo("UTC")


def plan_anew(tools: Collaborators, text: str, *, locked: Collection[str]) -> dict[str, Any]:
    """Plan a study from now on: recorded sessions count, locked and running ones stay. Raises BadStudy."""
    study = parse_study(text, _names(tools))
    counted, left_out = cooked_below(tools.folders.data)
    cooked = as_cooked(tools.folders.data, counted)
    active = tables.person.c.active
    there = {row["pseudonym"]: row["id"] for row in tools.records.rows(tables.person, active, limit=1 << 20)}
    cooks = [_avoiding(cook, tools, there) for cook in study.cooks if cook.name in there]
    notes = [
        f"{cook.name} has no account here or withdrew: no session is planned for them"
        for cook in study.cooks
        if cook.name not in there
    ]
    study = replace(study, cooks=tuple(cooks), not_before=_now(tools))
    # Locked coming sessions stay, and sessions that were begun but have no folder yet.
    begun, rows = taken(tools.records), tables.recording
    known = {row["id"]: row for row in tools.records.rows(rows, limit=1 << 20)}
    paths = [*(recording.path for recording in cooked), *left_out]
    folders = {path.rpartition("/")[2] for path in paths}
    kept = []
    for entry, is_withdrawn in _entries(tools):
        session = name_of(entry)
        recording = known.get(begun.get(session, ""))
        if session in begun:
            stays = not is_withdrawn and bool(recording) and (recording or {})["folder"] not in folders
        else:
            stays = session in locked and entry.start > _now(tools) and entry.person in there
        if stays:
            kept.append(entry.model_copy(update={"locked": session in locked}))
    graphs = {
        name: graph for name, graph in _graphs(tools).items() if name in {g.recipe for g in study.goals}
    }
    made = make_plan(study, graphs, cooked, kept)
    return {**made, "notes": [*notes, *made["notes"]], "study": text}


def _names(tools: Collaborators) -> list[str]:
    return [recipe.name for recipe in tools.shelf.recipes()]


def _graphs(tools: Collaborators) -> dict[str, Graph]:
    return {recipe.name: recipe.graph for recipe in tools.shelf.recipes()}


def _now(tools: Collaborators) -> datetime:
    return datetime.fromtimestamp(tools.records.utc_ns() / 1e9, UTC)


def _avoiding(cook: Cook, tools: Collaborators, there: dict[str, str]) -> Cook:
    """Add the recipes whose name, ingredients or steps contain what somebody avoids."""
    words = latest(tools.records, PERSON).get(there[cook.name], {}).get("avoids", [])
    stated = latest(tools.records, RECIPE)
    recipes = set()
    for name, graph in _graphs(tools).items():
        names = [name.replace("_", " "), *stated.get(name, {}).get("ingredients", [])]
        text = "\n".join([*names, *(step.text for step in graph.steps)]).casefold()
        if any(word.casefold() in text for word in words):
            recipes.add(name)
    return replace(cook, avoids=cook.avoids | recipes)


def _entries(tools: Collaborators) -> list[tuple[PlanEntry, bool]]:
    """Return the sessions of the plan, each with whether it was begun and then withdrawn."""
    withdrawn = {
        row["id"] for row in tools.records.rows(tables.recording, tables.recording.c.phase == "withdrawn")
    }
    begun = taken(tools.records)
    return [
        (session.entry, begun.get(session.session) in withdrawn) for session in sessions_of(tools.records)
    ]
