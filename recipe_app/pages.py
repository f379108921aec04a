"""The HTML side of the app: two pages; everything that moves on them goes through the JSON side."""

from __future__ import annotations

from pathlib import Path

from fastapi import Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from recipe_app import follow
from recipe_app.api import tools
from recipe_app.categories import CATEGORIES

FOLDER = Path(__file__).resolve().parent
templates = Jinja2Templates(directory=FOLDER / "templates")


def start(request: Request) -> Response:
    """Choose the recording, the recipe and the order."""
    everything = tools(request).shelf.everything()
    fields = {
        "recipes": tools(request).shelf.recipes(),
        "unusable": [found for found in everything if hasattr(found, "error")],
        "sessions": tools(request).sessions.listed(),
        "folder": tools(request).shelf.folder.name,
    }
    return templates.TemplateResponse(request, "start.html", fields)


def follow_steps(request: Request, recording: str) -> Response:
    """Follow the chosen order step by step."""
    state = follow.state_of(tools(request).sessions.get(recording))
    fields = {"recording": recording, "state": state, "categories": CATEGORIES}
    return templates.TemplateResponse(request, "follow.html", fields)


def refusal(request: Request, error: str, status: int) -> Response:
    """Say on a page of its own why there is nothing to show."""
    return templates.TemplateResponse(request, "refusal.html", {"error": error}, status_code=status)
