"""The card of a recording at the desk: what it is worth, what to do again now, and that somebody has read it."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response

from kitchensync.operations.errors import NotNow
from kitchensync.operations.operation_kinds import Strict
from kitchensync.recipe_app.cooking.cards import card_of, read_card
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.desk.pages import render, who_cooks
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.task_graphs.errors import NotFound

NOTHING: dict[str, Any] = {"state": "none", "said": "", "card": None, "read": None}


class CardIsRead(Strict):
    """Nothing to say."""


def _found(tools: Collaborators, recording: str) -> tuple[str, dict[str, Any]]:
    """Return folder and card of a recording; where no devices belong to it, nothing. Raises NotFound."""
    folder = tools.intake.recording(recording, kitchen=None)["folder"]
    return (folder, card_of(tools, folder)) if folder else ("", NOTHING)


def card_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """Show the card, or wait until it is made."""
    folder, found = _found(tools, recording)
    row = tools.records.row(tables.recording, recording)
    about = who_cooks(tools, row) if row else {}
    about |= {"lacking": tools.folders.lacking_consent(folder)}
    told = found | about | {"visitor": visitor, "recording": recording, "folder": folder}
    return render(request, "desk/card.html", **told)


def card_state(request: Request, tools: Tools, recording: str) -> JsonObject:
    """Return whether the card is here: the page is loaded again then."""
    _, found = _found(tools, recording)
    making = found["state"] == "making"
    return {"state": "asking" if making else found["state"], "said": words_of(request)("card.making")}


def thumbnail(tools: Tools, recording: str, number: int) -> Response:
    """Give one of the small pictures that the camera made of its films. Raises NotFound, NotPermitted."""
    folder, found = _found(tools, recording)
    names = found["card"]["thumbnails"] if found["card"] else []
    path = tools.folders.data / folder / names[number] if 0 <= number < len(names) else None
    if path is None or not path.is_file():
        raise NotFound("no picture {number} on this card", number=number)
    require_consent(tools.folders.data / folder, Purpose.LOOK)
    return Response(path.read_bytes(), media_type="image/jpeg")


def read(tools: Tools, visitor: Asking, recording: str, body: CardIsRead) -> JsonObject:
    """Keep that the operator has read the card: the kitchen may record again."""
    folder, found = _found(tools, recording)
    if not folder or (found["state"] == "none" and not found["said"]):
        raise NotNow("this recording has no card")
    return {"read": read_card(tools, folder, visitor.pseudonym)}


ROUTES = [
    Route("/desk/recordings/{recording}/card", card_page, Access.OPERATE, page=True),
    Route("/api/v1/desk/recordings/{recording}/card", card_state, Access.OPERATE),
    Route("/api/v1/desk/recordings/{recording}/card", read, Access.OPERATE, "POST"),
    Route("/api/v1/desk/recordings/{recording}/card/pictures/{number}", thumbnail, Access.OPERATE),
]
