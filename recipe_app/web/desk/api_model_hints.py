"""Hints of a language model at the desk: what would leave, asked for all steps of a recipe, reviewed one by one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request

from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import NotNow
from recipe_app.graphs.model import Step
from recipe_app.hints import kept_hints
from recipe_app.hints.hint_server import MODEL, URL, Answered, request_body
from recipe_app.operations.kinds import Strict
from recipe_app.people.roles import Access
from recipe_app.web.door.access import Asking, Route, Tools
from recipe_app.web.i18n import words_of
from storage.shell.endpoint import Endpoint

HintId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


class Switch(Strict):
    """Whether texts of recipes may go to the model that the app's environment names."""

    on: bool


class HintVerdict(Strict):
    """Whether tablets may offer a proposed hint."""

    take: bool


class NothingSaid(Strict):
    """Nothing to say."""


def named_server(tools: Collaborators) -> tuple[Endpoint | None, str]:
    """Return the model server that is named, and why it cannot be used where it cannot."""
    try:
        return tools.hints.server(), ""
    except (OSError, ValueError) as error:
        return None, str(error)


def page_fields(tools: Collaborators, recipe: str) -> dict[str, Any]:
    """Return what the page of a recipe says of a model's hints: server, what would leave, proposals, counts."""
    server, trouble = named_server(tools)
    graph = tools.shelf.get(recipe).graph
    leaving = [request_body(server, graph, step).decode() for step in graph.steps] if server else []
    hints = kept_hints.hints_of(tools.records, recipe)
    return {
        "server": server,
        "variables": (URL, MODEL),
        "trouble": trouble,
        "is_on": kept_hints.is_on(tools.records),
        "leaving": leaving,
        "leaving_bytes": sum(len(one.encode()) for one in leaving),
        "batch": tools.hints.state(recipe),
        "hints": hints,
        "refused": kept_hints.refused_of(tools.records, recipe),
        "uses": kept_hints.uses_of(tools.records, recipe) if hints else {},
    }


def switch_models(tools: Tools, visitor: Asking, body: Switch) -> dict[str, Any]:
    """Let recipe texts go to the model that is named, or not any more; off until an admin says so."""
    kept_hints.switch(tools.records, on=body.on, actor=visitor.actor)
    return {"on": body.on}


def ask_model_hints(tools: Tools, visitor: Asking, recipe: str, body: NothingSaid) -> dict[str, Any]:
    """Ask the model about every step of a recipe. Raises NotNow where that is not switched on or nobody is named."""
    found = tools.shelf.get(recipe)
    server, trouble = named_server(tools)
    if not kept_hints.is_on(tools.records):
        raise NotNow("no model may be asked; an admin switches that on, on this page")
    if server is None:
        raise NotNow("no model is named ({why}); set the variables that the page names and start the app again",
                     why=trouble or URL)  # fmt: skip

    def keep(step: Step, answered: Answered) -> None:
        kept_hints.keep(tools.records, found.name, step, answered, model=server.model, actor=visitor.actor)

    tools.hints.ask(found.name, found.graph, server, keep)
    return tools.hints.state(found.name)


def model_hints_state(request: Request, tools: Tools, recipe: str) -> dict[str, Any]:
    """Say how far the asking for a recipe's hints is, in numbers and in words."""
    state = tools.hints.state(tools.shelf.get(recipe).name)
    if state["state"] == "none":
        return state
    return state | {"said": words_of(request)("model.progress", done=state["done"], whole=state["whole"])}


def review_model_hint(
    tools: Tools, visitor: Asking, recipe: str, hint: HintId, body: HintVerdict
) -> dict[str, Any]:
    """Take a proposed hint, so that tablets offer it, or leave it; the last word counts."""
    name = tools.shelf.get(recipe).name
    kept_hints.review(tools.records, name, hint, take=body.take, actor=visitor.actor)
    return {"hint": hint, "take": body.take}


HINTS = "/api/v1/desk/recipes/{recipe}/model-hints"
ROUTES = [
    Route("/api/v1/desk/model-hints/switch", switch_models, Access.ADMIN, "POST"),
    Route(HINTS, ask_model_hints, Access.STUDY, "POST"),
    Route(HINTS, model_hints_state, Access.STUDY),
    Route(HINTS + "/{hint}", review_model_hint, Access.STUDY, "POST"),
]
