"""Facts about recipes and participants for the statistics of data sets, over JSON."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from kitchensync.operations.operation_kinds import Strict
from kitchensync.recipe_app.cooking import training
from kitchensync.recipe_app.exchange import stated_facts
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.task_graphs.errors import NotFound

Words = Annotated[str, Field(max_length=400)]


class RecipeFacts(Strict):
    """How a recipe is heated and what it needs, comma-separated, and its duration in minutes."""

    heating: Words = ""
    skills: Words = ""
    tools: Words = ""
    ingredients: Annotated[str, Field(max_length=2000)] = ""
    minutes: Annotated[str, Field(pattern=r"^([1-9][0-9]{0,3})?$")] = ""


class PersonFacts(Strict):
    """Bands that a participant wants to be counted in; empty if not stated."""

    person: Annotated[str, Field(max_length=40)]
    age: Literal["", "18-24", "25-34", "35-44", "45-54", "55-64", "65+"] = ""
    cooks: Literal["", "rarely", "weekly", "daily"] = ""
    gender: Literal["", "woman", "man", "other"] = ""
    hand: Literal["", "right", "left", "both"] = ""
    avoids: Words = ""
    """Allergies and dislikes, comma-separated: recipes with these are not planned for this person."""


class TrainingItems(Strict):
    """What to read or watch before the first session of a recipe or with a skill, an item per line."""

    of: Literal["recipe", "skill"]
    about: Annotated[str, Field(min_length=1, max_length=80)]
    lines: Annotated[str, Field(max_length=8000)] = ""


def state_training(tools: Tools, visitor: Asking, body: TrainingItems) -> JsonObject:
    """Set the training of a recipe or a skill, replacing what was set before; no lines remove it."""
    items = [" ".join(line.split()) for line in body.lines.splitlines() if line.strip()]
    tools.records.note(training.KIND, f"{body.of} {body.about}", {"items": items}, actor=visitor.actor)
    return {"items": items}


def state_of_recipe(tools: Tools, visitor: Asking, recipe: str, body: RecipeFacts) -> JsonObject:
    """Set the facts of a recipe, for all its versions; only the latest facts count."""
    shelved = tools.shelf.get(recipe)
    lists = (*stated_facts.OF_RECIPES, "ingredients")
    facts: dict[str, Any] = {key: stated_facts.words_in(getattr(body, key)) for key in lists}
    facts["minutes"] = int(body.minutes or 0)
    tools.records.note(stated_facts.RECIPE, shelved.name, facts, actor=visitor.actor)
    return {"recipe": shelved.name, **facts}


def state_of_person(tools: Tools, visitor: Asking, body: PersonFacts) -> JsonObject:
    """Set the bands that a participant wants to be counted in; empty bands remove earlier ones."""
    if tools.records.row(tables.person, body.person) is None:
        raise NotFound("no person {name!r}; look at the list of people", name=body.person)
    facts: dict[str, Any] = {key: getattr(body, key) for key in stated_facts.BANDS}
    facts["avoids"] = stated_facts.words_in(body.avoids)
    tools.records.note(stated_facts.PERSON, body.person, facts, actor=visitor.actor)
    return {"person": body.person, **facts}


ROUTES = [
    Route("/api/v1/desk/recipes/{recipe}/facts", state_of_recipe, Access.STUDY, "POST"),
    Route("/api/v1/desk/training", state_training, Access.STUDY, "POST"),
    Route("/api/v1/desk/bands", state_of_person, Access.OPERATE, "POST"),
]
