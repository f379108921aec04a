"""The web app: one table of routes and a factory."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from recipe_app import api, pages
from recipe_app.collaborators import Collaborators
from recipe_app.errors import BadOperation, NotFound, NotNow, RecipeError
from recipe_app.guard import Guard
from storage.errors import StorageError

ROUTES = [
    APIRoute("/", pages.start, name="start", include_in_schema=False),
    APIRoute("/follow/{recording}", pages.follow_steps, name="follow", include_in_schema=False),
    APIRoute("/api/clock", api.clock, name="clock"),
    APIRoute("/api/recipes", api.recipes, name="recipes"),
    APIRoute("/api/recipes/{recipe}/order", api.preview, name="preview"),
    APIRoute("/api/recordings", api.recordings, name="recordings"),
    APIRoute("/api/standalone", api.start_standalone, name="standalone", methods=["POST"]),
    APIRoute("/api/recordings/{recording}", api.state, name="state"),
    APIRoute("/api/recordings/{recording}/recipe", api.choose_recipe, name="choose", methods=["POST"]),
    APIRoute(
        "/api/recordings/{recording}/operations", api.post_operation, name="operation", methods=["POST"]
    ),
]

STATUS: dict[type[Exception], int] = {NotFound: 404, NotNow: 409, BadOperation: 422}


def create_app(collaborators: Collaborators, *, token: str | None = None) -> FastAPI:
    """Build the app; with a `token` every request must carry it, without one only loopback names are served."""
    app = FastAPI(title="KitchenSync recipe app", routes=list(ROUTES), docs_url=None, redoc_url=None)
    app.state.collaborators = collaborators
    app.mount("/static", StaticFiles(directory=pages.FOLDER / "static"), name="static")
    app.add_exception_handler(RecipeError, _foreseen)
    app.add_exception_handler(StorageError, _foreseen)
    app.add_exception_handler(OSError, _no_space)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(Guard, token=token)
    return app


def _error(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status)


async def _foreseen(request: Request, error: Exception) -> Response:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
    if request.url.path.startswith("/api/"):
        return _error(status, str(error))
    return pages.refusal(request, str(error), status)


async def _no_space(_: Request, error: Exception) -> JSONResponse:
    return _error(507, f"not stored: {error}; free space or check the data folder, then it is sent again")


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
