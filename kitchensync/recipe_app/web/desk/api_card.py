"""The session card of a recording at the desk: its quality, what to record again, and whether it was read."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from kitchensync.operations.errors import NotNow
from kitchensync.operations.operation_kinds import Strict
from kitchensync.recipe_app.cooking.cards import MAKING, NONE, CardState, card_of, read_card
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.desk.pages import render, who_cooks
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.task_graphs.errors import NotFound


class CardIsRead(Strict):
    """An empty body."""


def _folder_and_card(tools: Collaborators, recording: str) -> tuple[str, CardState]:
    """Return the folder and card of a recording; empty if it has no devices. Raises NotFound."""
    folder = tools.intake.recording(recording, kitchen=None)["folder"]
    return (folder, card_of(tools, folder)) if folder else ("", CardState())


def card_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """Show the card, or wait until it is made."""
    folder, newest = _folder_and_card(tools, recording)
    row = tools.records.row(tables.recording, recording)
    return render(
        request,
        "desk/card.html",
        visitor=visitor,
        newest=newest,
        card=newest.card,
        lacking=tools.folders.lacking_consent(folder),
        recording=recording,
        folder=folder,
        **(who_cooks(tools, row) if row else {}),
    )


def card_state(request: Request, tools: Tools, recording: str) -> JsonObject:
    """Return the state of the card; the page reloads when the card is ready."""
    _, newest = _folder_and_card(tools, recording)
    state = "asking" if newest.state == MAKING else newest.state
    return {"state": state, "said": words_of(request)("card.making")}


def thumbnail(tools: Tools, recording: str, number: int) -> Response:
    """Return a thumbnail that the camera made of its videos. Raises NotFound, NotPermitted."""
    folder, newest = _folder_and_card(tools, recording)
    names = newest.card["thumbnails"] if newest.card else []
    path = tools.folders.data / folder / names[number] if 0 <= number < len(names) else None
    if path is None or not path.is_file():
        raise NotFound("no picture {number} on this card", number=number)
    require_consent(tools.folders.data / folder, Purpose.LOOK)
    return Response(path.read_bytes(), media_type="image/jpeg")


def read(tools: Tools, visitor: Asking, recording: str, body: CardIsRead) -> JsonObject:
    """Note that the operator has read the card, so that the kitchen may record again."""
    folder, newest = _folder_and_card(tools, recording)
    if not folder or (newest.state == NONE and not newest.reason):
        raise NotNow("this recording has no card")
    return {"read": read_card(tools, folder, visitor.pseudonym)}


ROUTES = [
    Route("/desk/recordings/{recording}/card", card_page, Access.OPERATE, page=True),
    Route("/api/v1/desk/recordings/{recording}/card", card_state, Access.OPERATE),
    Route("/api/v1/desk/recordings/{recording}/card", read, Access.OPERATE, "POST"),
    Route("/api/v1/desk/recordings/{recording}/card/pictures/{number}", thumbnail, Access.OPERATE),
]
