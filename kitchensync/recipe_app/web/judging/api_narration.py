"""Narrations of a video: uploaded while spoken, recognized, corrected, submitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import FileResponse, Response
from starlette.concurrency import run_in_threadpool

from kitchensync.dataset.narration import sounds
from kitchensync.dataset.narration.narrations import (
    NARRATED,
    SUBMITTED,
    Name,
    NarratedVideo,
    Narration,
    NarrationChange,
    keep_narrations,
    narrations_of,
)
from kitchensync.dataset.narration.spoken import parse
from kitchensync.operations.operation_kinds import OpId, Strict
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.narration.hear import hear
from kitchensync.recipe_app.narration.speech_server import speech_server
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.review.marks import annotation_of
from kitchensync.recipe_app.web.bodies import EmptyBody
from kitchensync.recipe_app.web.desk.pages import render
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.door.request_bodies import RequestBody
from kitchensync.recipe_app.web.judging.api_films import film_facts, film_folder
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.storage.errors import NotPermitted
from kitchensync.task_graphs.errors import NotFound

PART = RequestBody(1 << 20, ("audio",))


class NarrationAction(Strict):
    """A change of a narration."""

    op_id: OpId
    change: NarrationChange


def narration_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """Show the video of a recording, to narrate it."""
    tools.records.state(recording)
    return render(request, "desk/narrate.html", visitor=visitor, recording=recording)


def narrations(tools: Tools, visitor: Asking, recording: str) -> JsonObject:
    """Report the visitor's own narrations of a video, each with verb and noun."""
    folder, steps = film_folder(tools, recording), _steps(tools, recording)
    ops = tools.records.ops(recording)
    mine = narrations_of(ops, visitor.actor)
    kinds = [op["kind"] for op in ops if op["actor"] == visitor.actor and op["kind"] in (NARRATED, SUBMITTED)]
    return {
        "narrations": [_parsed(narration, steps) for narration in mine],
        "submitted": kinds[-1:] == [SUBMITTED],
        "server": _server(),
        "asks_server": _asks_server(folder),
    }


def _server() -> dict[str, str] | None:
    """Return the configured speech recognition server, if any."""
    try:
        server = speech_server()
    except (OSError, ValueError):
        return None  # the reason is reported when a sound is to be recognized
    return None if server is None else {"host": server.host, "model": server.model}


def _asks_server(folder: Path) -> bool:
    """Return whether sounds may be sent to a server: one is configured and the participant agreed."""
    if _server() is None:
        return False
    try:
        require_consent(folder, Purpose.THIRD_PARTY_PROCESSING)
    except NotPermitted:
        return False
    return True


def tell(tools: Tools, visitor: Asking, recording: str, body: NarrationAction) -> JsonObject:
    """Save a change of a narration: its start frame, its text, its end, or its removal."""
    folder = film_folder(tools, recording)
    change = body.change.model_dump(exclude={"sha256", "ending"})
    tools.records.note(NARRATED, recording, change, actor=visitor.actor, op_id=body.op_id)
    if body.change.removed:
        sounds.destroy_sound(folder, _name(visitor.actor, body.change.narration))
    return _parsed(_mine(tools, visitor.actor, recording, body.change.narration), _steps(tools, recording))


async def add_sound(
    request: Request, tools: Tools, visitor: Asking, recording: str, narration: Name, at: int
) -> JsonObject:
    """Save the next part of a sound; `at` is its offset in bytes."""
    content, media_type = await request.body(), request.headers.get("content-type", "")[:60]
    return await run_in_threadpool(_add, tools, visitor.actor, recording, narration, media_type, at, content)


def _add(
    tools: Collaborators, actor: str, recording: str, narration: str, media_type: str, at: int, content: bytes
) -> dict[str, Any]:
    folder = film_folder(tools, recording)
    _mine(tools, actor, recording, narration)
    file = sounds.sound_file(folder, _name(actor, narration), sounds.ending_of(media_type))
    return {"bytes": sounds.add_part(folder, file, at, content)}


def end_sound(tools: Tools, visitor: Asking, recording: str, narration: Name, body: EmptyBody) -> JsonObject:
    """Finish a sound and return what was recognized."""
    folder = film_folder(tools, recording)
    kept = _mine(tools, visitor.actor, recording, narration)
    steps = _steps(tools, recording)
    if "sha256" in kept:
        return _parsed(kept, steps)
    file = sounds.sound_begun(folder, _name(visitor.actor, narration))
    sha256, _ = sounds.finish(folder, file)
    recognized = hear(file, steps, asks_server=_asks_server(folder))
    change = {"narration": narration, "sha256": sha256, "ending": file.suffix}
    if not kept.get("text"):
        change |= {"text": recognized["text"], "source": recognized.get("engine", "typed")}
    tools.records.note(NARRATED, recording, change, actor=visitor.actor)
    return {**_parsed(_mine(tools, visitor.actor, recording, narration), steps), "why": recognized["why"]}


def sound(tools: Tools, visitor: Asking, recording: str, narration: Name) -> Response:
    """Return the sound of the visitor's own narration."""
    folder = film_folder(tools, recording)
    kept = _mine(tools, visitor.actor, recording, narration)
    file = sounds.sound_file(folder, _name(visitor.actor, narration), kept.get("ending", ".webm"))
    if not file.exists():
        raise NotFound("nothing of the narration {name!r} has arrived", name=narration)
    return FileResponse(file, media_type="audio/mp4" if file.suffix == ".m4a" else f"audio/{file.suffix[1:]}")


def submit_narrations(tools: Tools, visitor: Asking, recording: str, body: EmptyBody) -> JsonObject:
    """Save the visitor's narrations as a version in the recording's folder, which releases use."""
    folder = film_folder(tools, recording)
    facts = film_facts(tools, folder)
    mine = narrations_of(tools.records.ops(recording), visitor.actor)
    film: NarratedVideo = {"fps": facts["fps"], "frames": facts["frames"], "sha256": facts["sha256"]}
    kept: list[Narration] = []
    for narration in mine:
        name = _name(visitor.actor, narration["narration"])
        kept.append({**narration, "sound": sounds.sound_file(folder, name, narration.get("ending", "")).name})
    version = keep_narrations(folder, visitor.pseudonym, film, kept)
    tools.records.note(SUBMITTED, recording, {"version": version}, actor=visitor.actor)
    return {"version": version, "narrations": len(kept)}


def _mine(tools: Collaborators, actor: str, recording: str, narration: str) -> Narration:
    for kept in narrations_of(tools.records.ops(recording), actor):
        if kept["narration"] == narration:
            return kept
    raise NotFound("no narration {name!r} of yours; load the page again", name=narration)


def _steps(tools: Collaborators, recording: str) -> list[str]:
    return [step["text"] for step in tools.records.state(recording)["recording"]["steps"].values()]


def _name(actor: str, narration: str) -> str:
    return f"{annotation_of(actor):012x}-{narration}"


def _parsed(narration: Narration, steps: list[str]) -> JsonObject:
    phrase = parse(narration.get("text", ""), steps)
    return {**narration, "verb": phrase.verb, "noun": phrase.noun}


NARRATIONS = "/api/v1/desk/recordings/{recording}/narrations"
ONE = f"{NARRATIONS}/{{narration}}"
ROUTES = [
    Route("/desk/recordings/{recording}/narrate", narration_page, Access.ANNOTATE, page=True),
    Route(NARRATIONS, narrations, Access.ANNOTATE),
    Route(NARRATIONS, tell, Access.ANNOTATE, "POST"),
    Route(f"{NARRATIONS}/submit", submit_narrations, Access.ANNOTATE, "POST"),
    Route(f"{ONE}/sound", sound, Access.ANNOTATE),
    Route(f"{ONE}/sound", add_sound, Access.ANNOTATE, "PUT", body=PART),
    Route(f"{ONE}/end", end_sound, Access.ANNOTATE, "POST"),
]
