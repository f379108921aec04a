"""Small videos of recordings for the browser: made on demand, served at addresses that expire."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import FileResponse, Response

from kitchensync.dataset.films.review_film import film_of, front_film_of
from kitchensync.operations.errors import BadOperation, NotNow
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.cooking.film_states import film_state
from kitchensync.recipe_app.errors import NotAllowed
from kitchensync.recipe_app.film_jobs import HEIGHTS, FilmState
from kitchensync.recipe_app.people.accounts import Visitor
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.review.marks import initial_marks, touched_marks
from kitchensync.recipe_app.review.recorded_evidence import LOOKED_BACK
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.bodies import EmptyBody
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.storage.life import why_aborted
from kitchensync.task_graphs.errors import NotFound

ADDRESS_NS = 3600 * 10**9
"""Lifetime of a video's address, nanoseconds."""
FRONT = 0
"""Value in place of a height, for the video of the headset's front camera."""
OWN_FACTS = ("fps", "frames", "width", "height", "hidden", "taken_ns")
"""Facts of a video that a tablet gets."""
Height = Annotated[int, Query()]


def film_folder(tools: Collaborators, recording: str, purpose: Purpose = Purpose.ANNOTATE) -> Path:
    """Return the folder of a recording whose consent covers a purpose. Raises NotFound, Withdrawn, NotPermitted."""
    row = tools.records.row(tables.recording, recording)
    if row is None or not row["folder"]:
        raise NotFound("no film of {name!r}: it has no folder of recorded data", name=recording[:40])
    folder = (tools.folders.data / row["folder"]).absolute()
    manifest = require_consent(folder, purpose)
    if purpose != Purpose.LOOK and (why := why_aborted(manifest)):
        raise NotNow("it was aborted and shall not be used: {why}", why=why)
    return folder


def own_folder(tools: Collaborators, recording: str, visitor: Visitor) -> Path:
    """Return the folder of the visitor's own recording. Raises NotFound, NotNow, Withdrawn."""
    row = tools.records.row(tables.recording, recording)
    if row is None or row["person"] != visitor.actor:
        raise NotFound("no film of {name!r}: somebody else cooked it", name=recording[:40])
    if row["phase"] not in LOOKED_BACK:
        raise NotNow("its film is shown in the review, once cooking has ended")
    return film_folder(tools, recording, Purpose.LOOK)


def film_facts(tools: Collaborators, folder: Path) -> dict[str, Any]:
    """Return the facts of a recording's small video. Raises NotNow if it is not made yet."""
    state = tools.films.state(folder, HEIGHTS[0])
    if state["state"] != "ready":
        raise NotNow("the film is not made yet; open the page of its steps first")
    facts: dict[str, Any] = state["facts"]
    return facts


def film(tools: Tools, visitor: Asking, recording: str, height: Height = HEIGHTS[0]) -> JsonObject:
    """Report the state of a recording's video, with an address valid for an hour when it is ready.

    Boundaries that are left open for the annotators are removed from the touches.
    """
    state = film_state(tools, film_folder(tools, recording), _height(height))
    if state["state"] == "ready":
        facts = state["facts"]
        touched = touched_marks(recording, facts["touches"], tools.records.ops(recording))
        state |= {"facts": facts | {"touches": initial_marks(recording, touched)}}
    return _addressed(tools, visitor, recording, state, height)


def _addressed(
    tools: Collaborators,
    visitor: Visitor,
    recording: str,
    state: FilmState,
    height: int,
    *,
    own: bool = False,
) -> JsonObject:
    if state["state"] != "ready":
        return state
    heights = {"address": height} | ({"front": FRONT} if state["facts"]["front"] else {})
    answer: dict[str, object] = {**state}
    for name, which in heights.items():
        payload = json.dumps([recording, which, own, tools.records.utc_ns() + ADDRESS_NS]).encode()
        token = base64.urlsafe_b64encode(_seal(tools, payload, visitor.actor) + payload).decode().rstrip("=")
        answer[name] = f"/api/v1/films/{token}.mp4"
    return answer


def own_film(tools: Tools, visitor: Asking, recording: str) -> JsonObject:
    """Report the state of the video of a cook's own recording; `absent` if no camera filmed it."""
    try:
        folder = own_folder(tools, recording, visitor)
    except NotFound:
        return {"state": "absent"}
    state = film_state(tools, folder, HEIGHTS[0])
    answer = _addressed(tools, visitor, recording, state, HEIGHTS[0], own=True)
    return (
        {**answer, "facts": {key: state["facts"][key] for key in OWN_FACTS}} if "facts" in state else answer
    )


def make_own_film(tools: Tools, visitor: Asking, recording: str, body: EmptyBody) -> JsonObject:
    """Make the video of a cook's own recording; retry if that failed."""
    folder = own_folder(tools, recording, visitor)
    tools.films.ask(folder, HEIGHTS[0])
    return tools.films.state(folder, HEIGHTS[0])


def make_film(tools: Tools, recording: str, body: EmptyBody, height: Height = HEIGHTS[0]) -> JsonObject:
    """Make the small video of a recording; retry if that failed."""
    folder = film_folder(tools, recording)
    tools.films.ask(folder, _height(height))
    return tools.films.state(folder, height)


def film_file(tools: Tools, visitor: Asking, token: str) -> Response:
    """Return a video, or a part of it, to the visitor who got the address, while it is valid."""
    try:
        content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        if not hmac.compare_digest(content[:32], _seal(tools, content[32:], visitor.actor)):
            raise ValueError
        recording, which, own, until_utc_ns = json.loads(content[32:])
    except ValueError:
        raise NotFound("no film {name!r}; load the page again", name=token[:20]) from None
    if tools.records.utc_ns() > until_utc_ns:
        raise NotAllowed("this address of a film does not hold any more; load the page again")
    if not (own or visitor.may(Access.ANNOTATE)):
        raise NotAllowed("your role does not allow this")
    folder = own_folder(tools, recording, visitor) if own else film_folder(tools, recording)
    path = front_film_of(folder) if which == FRONT else film_of(folder, which)
    if tools.films.state(folder, which or HEIGHTS[0])["state"] != "ready":
        raise NotFound("no film {name!r}; load the page again", name=path.name)
    return FileResponse(path, media_type="video/mp4")


def _height(height: int) -> int:
    if height not in HEIGHTS:
        raise BadOperation("there are films of 360 and 720 lines")
    return height


def _seal(tools: Collaborators, payload: bytes, actor: str) -> bytes:
    return hmac.digest(tools.film_key, payload + b"\0" + actor.encode(), hashlib.sha256)


FILM, OWN_FILM = "/api/v1/desk/recordings/{recording}/film", "/api/v1/recordings/{recording}/film"
ROUTES = [
    Route(FILM, film, Access.ANNOTATE),
    Route(FILM, make_film, Access.ANNOTATE, "POST"),
    Route(OWN_FILM, own_film, Access.COOK),
    Route(OWN_FILM, make_own_film, Access.COOK, "POST"),
    Route("/api/v1/films/{token}.mp4", film_file, Access.PERSON),
]
