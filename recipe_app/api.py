"""The JSON side of the app: functions that translate between HTTP and `recipe_app.follow`."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import Query, Request
from fastapi.responses import JSONResponse

from recipe_app import follow
from recipe_app.collaborators import Collaborators
from recipe_app.requests import ChooseRecipe, Operation, StartStandalone
from recipe_app.shelf import Recipe, Unusable

Seed = Annotated[int, Query(ge=0, le=2**53)]


def tools(request: Request) -> Collaborators:
    """Return what the app was built from."""
    return cast(Collaborators, request.app.state.collaborators)


async def clock(request: Request) -> JSONResponse:
    """Tell the capture clock, answered at once: half the round trip bounds the error."""
    return JSONResponse({"host_ns": tools(request).now_ns()})


def recipes(request: Request) -> dict[str, Any]:
    """List the recipes with their number of valid orders, and the files that are none."""
    everything = tools(request).shelf.everything()
    return {
        "recipes": [_recipe(found) for found in everything if isinstance(found, Recipe)],
        "unusable": [{"file": f.file, "error": f.error} for f in everything if isinstance(f, Unusable)],
    }


def _recipe(recipe: Recipe) -> dict[str, Any]:
    return {
        "recipe": recipe.name,
        "title": recipe.title,
        "steps": len(recipe.graph.steps),
        "orders": recipe.total,
        "graph_hash": recipe.graph.content_hash,
    }


def preview(request: Request, recipe: str, seed: Seed = 0) -> dict[str, Any]:
    """Show the order that a seed draws, without keeping it."""
    return follow.draw_one(tools(request).shelf.get(recipe), seed)


def recordings(request: Request) -> dict[str, Any]:
    """List the recordings that are running, and the standalone sessions."""
    listed = tools(request).sessions.listed()
    return {"recordings": [{"recording": s.recording, "state": s.state, "recipe": s.recipe} for s in listed]}


def start_standalone(request: Request, body: StartStandalone) -> dict[str, Any]:
    """Begin a session without any capture device; asked again with the same op_id, find it."""
    return follow.state_of(tools(request).sessions.start_standalone(body.op_id))


def state(request: Request, recording: str) -> dict[str, Any]:
    """Say where a recording's recipe stands."""
    return follow.state_of(tools(request).sessions.get(recording))


def choose_recipe(request: Request, recording: str, body: ChooseRecipe) -> dict[str, Any]:
    """Choose the recipe and the seed of its order; the manifest keeps both."""
    session = tools(request).sessions.get(recording)
    recipe = tools(request).shelf.get(body.recipe)
    return follow.choose_recipe(session, recipe, body, now_ns=tools(request).now_ns())


def post_operation(request: Request, recording: str, body: Operation) -> dict[str, Any]:
    """Log one action; the answer is its receipt, the same for every repetition of its op_id."""
    session = tools(request).sessions.get(recording)
    return follow.log_operation(session, body, now_ns=tools(request).now_ns())
