"""The small films of recordings in the browser: made when somebody asks, served by addresses that expire."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import FileResponse, Response

from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import BadOperation, NotAllowed, NotFound, NotNow
from recipe_app.operations.kinds import Strict
from recipe_app.people.roles import Access
from recipe_app.review.film_jobs import HEIGHTS
from recipe_app.review.review_film import film_of, front_film_of
from recipe_app.store import tables
from recipe_app.web.access import Asking, Route, Tools
from storage.permission import Purpose, ask

ADDRESS_NS = 3600 * 10**9
"""How long the address of a film holds."""
FRONT = 0
"""Stands for the film of the headset's front camera where a height stands otherwise."""
Height = Annotated[int, Query()]


class Nobody(Strict):
    """Nothing to say."""


def film_folder(tools: Collaborators, recording: str) -> Path:
    """Return the folder of a recording that may be annotated. Raises NotFound, Withdrawn, NotPermitted."""
    row = tools.records.row(tables.recording, recording)
    if row is None or not row["folder"]:
        raise NotFound("no film of {name!r}: it has no folder of recorded data", name=recording[:40])
    folder = (tools.folders.data / row["folder"]).absolute()
    ask(folder, Purpose.ANNOTATE)
    return folder


def film_facts(tools: Collaborators, recording: str) -> dict[str, Any]:
    """Return what is known of the small film of a recording. Raises NotNow, what `film_folder` raises."""
    state = tools.films.state(film_folder(tools, recording), HEIGHTS[0])
    if state["state"] != "ready":
        raise NotNow("the film is not made yet; open the page of its steps first")
    facts: dict[str, Any] = state["facts"]
    return facts


def film(tools: Tools, visitor: Asking, recording: str, height: Height = HEIGHTS[0]) -> dict[str, Any]:
    """Say how the film of a recording is, with an address of it that holds for an hour when it is ready."""
    folder = film_folder(tools, recording)
    state = tools.films.state(folder, _height(height))
    if state["state"] != "ready":
        return state
    wanted = {"address": height} | ({"front": FRONT} if state["facts"]["front"] else {})
    return state | {
        name: f"/api/v1/films/{_token(tools, recording, which, visitor.actor)}.mp4"
        for name, which in wanted.items()
    }


def make_film(tools: Tools, recording: str, body: Nobody, height: Height = HEIGHTS[0]) -> dict[str, Any]:
    """Have the film of a recording made."""
    folder = film_folder(tools, recording)
    tools.films.ask(folder, _height(height))
    return tools.films.state(folder, height)


def film_file(tools: Tools, visitor: Asking, token: str) -> Response:
    """Give a film, or a part of it; to whom the address was given, and while it holds."""
    recording, which = _read_token(tools, token, visitor.actor)
    folder = film_folder(tools, recording)
    path = front_film_of(folder) if which == FRONT else film_of(folder, which)
    if tools.films.state(folder, which or HEIGHTS[0])["state"] != "ready":
        raise NotFound("no film {name!r}; load the page again", name=path.name)
    return FileResponse(path, media_type="video/mp4")


def _height(height: int) -> int:
    if height not in HEIGHTS:
        raise BadOperation("there are films of 360 and 720 lines")
    return height


def _token(tools: Collaborators, recording: str, which: int, actor: str) -> str:
    said = json.dumps([recording, which, tools.records.utc_ns() + ADDRESS_NS]).encode()
    return base64.urlsafe_b64encode(_seal(tools, said, actor) + said).decode().rstrip("=")


def _read_token(tools: Collaborators, token: str, actor: str) -> tuple[str, int]:
    try:
        content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        seal, said = content[:32], content[32:]
        if not hmac.compare_digest(seal, _seal(tools, said, actor)):
            raise ValueError
        recording, which, until_utc_ns = json.loads(said)
    except ValueError:
        raise NotFound("no film {name!r}; load the page again", name=token[:20]) from None
    if tools.records.utc_ns() > until_utc_ns:
        raise NotAllowed("this address of a film does not hold any more; load the page again")
    return recording, which


def _seal(tools: Collaborators, said: bytes, actor: str) -> bytes:
    return hmac.digest(tools.film_key, said + b"\0" + actor.encode(), hashlib.sha256)


FILM = "/api/v1/desk/recordings/{recording}/film"
ROUTES = [
    Route(FILM, film, Access.ANNOTATE),
    Route(FILM, make_film, Access.ANNOTATE, "POST"),
    Route("/api/v1/films/{token}.mp4", film_file, Access.ANNOTATE),
]
