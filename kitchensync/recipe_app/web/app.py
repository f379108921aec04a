"""The web app: one table of routes and a factory."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import DataError, OperationalError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.errors import NameTaken, NotAllowed, TooOften
from kitchensync.recipe_app.web.desk import (
    api_batches,
    api_card,
    api_desk,
    api_facts,
    api_live,
    api_recipes,
    api_room,
    pages,
    pages_overview,
    pages_recipes,
    pages_study,
)
from kitchensync.recipe_app.web.door.access import SignInFirst
from kitchensync.recipe_app.web.door.guard import Guard
from kitchensync.recipe_app.web.door.request_bodies import TooLarge, WrongKind
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.recipe_app.web.judging import (
    api_drawn_graphs,
    api_errors_review,
    api_evidence,
    api_films,
    api_marks,
    api_narration,
    api_opinions,
    api_questions,
    work_page,
)
from kitchensync.recipe_app.web.tablet import api_sign_in as api_sign_in
from kitchensync.recipe_app.web.tablet import api_tablet
from kitchensync.storage.errors import StorageError
from kitchensync.task_graphs.errors import NotFound, RecipeError

MODULES = (
    *(api_sign_in, api_tablet, api_desk, api_batches, api_card, api_facts, api_films, api_live, api_marks),
    *(work_page, api_narration, api_errors_review, api_questions, api_evidence, api_opinions, api_recipes),
    *(api_room, api_drawn_graphs, pages, pages_overview, pages_recipes, pages_study),
)
ROUTES = [route for module in MODULES for route in module.ROUTES]

STATUS: dict[type[Exception], int] = {
    SignInFirst: 401,
    NotAllowed: 403,
    NotFound: 404,
    NotNow: 409,
    NameTaken: 409,
    TooOften: 429,
    TooLarge: 413,
    WrongKind: 415,
    StorageError: 409,
    RecipeError: 422,  # every other kind
}


@functools.cache
def _built_routes() -> tuple[BaseRoute, ...]:
    """Build every route once per process; routes get their collaborators from the request."""
    return tuple(route.build() for route in ROUTES)


def create_app(collaborators: Collaborators) -> FastAPI:
    """Build the app. It answers only to loopback and to the names in `collaborators.hosts`."""
    app = FastAPI(
        title="KitchenSync recipe app",
        routes=list(_built_routes()),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.collaborators = collaborators
    app.add_route("/api/v1/openapi.json", _described(app), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=pages.FOLDER / "static"), name="static")
    app.add_exception_handler(RecipeError, _known_error)
    app.add_exception_handler(StorageError, _known_error)
    app.add_exception_handler(OSError, _no_space)
    app.add_exception_handler(OperationalError, _no_space)
    app.add_exception_handler(DataError, _not_storable)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(Guard, hosts=collaborators.hosts, visitors=collaborators.visitors)
    return app


def _described(app: FastAPI) -> Callable[[Request], Response]:
    """Return the route of the OpenAPI description, made once: it is long, and anybody may request it."""
    text: list[bytes] = []
    lock = threading.Lock()

    def described(request: Request) -> Response:
        with lock:  # the first of many concurrent requests makes it
            if not text:
                text.append(json.dumps(app.openapi()).encode())
        return Response(text[0], media_type="application/json")

    return described


def _error(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status)


def _refused(request: Request, status: int, error: Exception) -> JSONResponse:
    return _error(status, words_of(request).refusal(error))


async def _known_error(request: Request, error: Exception) -> Response:
    status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
    if request.url.path.startswith("/api/"):
        return _refused(request, status, error)
    if status == 401:
        return RedirectResponse("/desk/sign-in", 303)
    return pages.refusal(request, error, status)


async def _no_space(request: Request, error: Exception) -> JSONResponse:
    cause = error.orig if isinstance(error, OperationalError) else error
    refusal = RecipeError(
        "not stored: {cause}; free space or check the data folder, then it is sent again", cause=str(cause)
    )
    return _refused(request, 507, refusal)


async def _not_storable(request: Request, error: Exception) -> JSONResponse:
    """Refuse values that the database cannot store, such as a NUL character in PostgreSQL."""
    assert isinstance(error, DataError)
    cause = (str(error.orig).splitlines() or ["no such value"])[0]
    return _refused(request, 422, RecipeError("cannot be stored: {cause}", cause=cause))


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = error.errors()[0]
    if first["type"] == "json_invalid":
        return _error(422, "the request is not JSON")
    place = ".".join(str(part) for part in first["loc"][1:]) or "body"
    return _error(422, f"{place}: {first['msg']}")


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, str(error.detail))
