"""A running recording: its live page, the data of that page, and remarks of the operator."""

from __future__ import annotations

import base64
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.web.bodies import LiveMark
from kitchensync.recipe_app.web.desk.api_room import is_paused, was_paused
from kitchensync.recipe_app.web.desk.pages import render
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.tablet.api_tablet import health_of
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.storage.errors import StorageError

STEERED = ("recording", "problem", "starting", "unknown")
OVER = ("stopped", "standalone")
MOST_STREAMS = 64


def live_page(request: Request, tools: Tools, visitor: Asking, recording: str) -> Response:
    """Show a running recording: a tile per stream, its problems and the actions."""
    row = tools.intake.recording(recording, kitchen=None)
    fields = {"recording": recording, "title": row["title"], "folder": row["folder"]}
    health = health_of(tools, row["folder"])["health"]
    fields |= {"steerable": tools.capture is not None, "health": health, "over": OVER}
    return render(request, "desk/live.html", visitor=visitor, **fields)


def live(tools: Tools, recording: str) -> JsonObject:
    """Report the state of the devices now; without a running recorder only its health."""
    folder = tools.intake.recording(recording, kitchen=None)["folder"]
    watch = tools.capture or tools.watch
    report = watch.live(folder) if watch is not None and folder is not None else None
    if report is None:
        report = {"health": health_of(tools, folder)["health"], "findings": []}
    ended = {"stopping": "stopped"}
    return report | {
        "health": ended.get(report["health"], report["health"]),
        "paused": _is_paused(tools, recording),
    }


def _is_paused(tools: Collaborators, recording: str) -> bool:
    """Return whether a pause is active, from the tablet or from the recorder."""
    pauses = tools.records.state(recording)["pauses"]
    folder = tools.intake.recording(recording, kitchen=None)["folder"]
    is_by_recorder = folder is not None and is_paused(tools.folders.data / folder)
    return is_by_recorder or (bool(pauses) and pauses[-1]["end"] is None)


def pictures(
    tools: Tools,
    recording: str,
    stream: Annotated[list[str], Query(max_length=MOST_STREAMS)],
    after_ms: Annotated[int, Query(ge=0)] = 0,
    wait_ms: Annotated[int, Query(ge=0, le=1000)] = 0,
) -> JsonObject:
    """Return the newest frames of streams that arrived after `after_ms`; none during a privacy pause.

    Waits up to `wait_ms` for the first. Raises NotFound, NotNow, Withdrawn, NotPermitted.
    """
    folder = tools.intake.recording(recording, kitchen=None)["folder"]
    if folder is None:
        raise NotNow("nothing is being recorded here")
    path = (tools.folders.data / folder).absolute()
    try:
        if health_of(tools, folder)["health"] not in STEERED:
            raise NotNow("nothing is being recorded here")
        require_consent(path, Purpose.LOOK)
    except (NotNow, StorageError):
        tools.pictures.forget(path)
        raise
    if _is_paused(tools, recording):
        tools.pictures.forget(path)
        return {"paused": True, "until_ms": 0, "pictures": {}}
    newest = tools.pictures.newest(path, stream, after_ms=after_ms, wait_s=wait_ms / 1000)
    paused, now_ns = _is_paused(tools, recording), tools.records.now_ns()
    shown = {
        name: {
            "age_ms": max(now_ns - picture.host_ns, 0) // 1_000_000,
            "jpeg": base64.b64encode(picture.jpeg).decode(),
        }
        for name, picture in newest.items()
        if not paused and not was_paused(path, picture.host_ns)
    }
    return {
        "paused": paused,
        "until_ms": max((picture.came_ms for picture in newest.values()), default=after_ms),
        "pictures": shown,
    }


def remark(tools: Tools, visitor: Asking, recording: str, body: LiveMark) -> JsonObject:
    """Log an operator's remark with the current time among the recording's events."""
    folder = tools.intake.recording(recording, kitchen=None)["folder"]
    if folder is None or health_of(tools, folder)["health"] not in STEERED:
        raise NotNow("nothing is being recorded here")
    stored = tools.records.note("mark", recording, {"text": body.text}, actor=visitor.actor, op_id=body.op_id)
    tools.intake.file()
    return {"n": stored["n"]}


ROUTES = [
    Route("/desk/recordings/{recording}/live", live_page, Access.OPERATE, page=True),
    Route("/api/v1/desk/recordings/{recording}/live", live, Access.OPERATE),
    Route("/api/v1/desk/recordings/{recording}/pictures", pictures, Access.OPERATE),
    Route("/api/v1/desk/recordings/{recording}/remarks", remark, Access.OPERATE, "POST"),
]
