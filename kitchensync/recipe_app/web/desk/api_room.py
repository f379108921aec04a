"""Today: the recordings that run on this computer, their actions, and those that ended today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from kitchensync.capture.station import Station
from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.cooking import steering
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.cooking.ended_today import ended_today
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import roles_of
from kitchensync.recipe_app.web.bodies import Preflight, RoomControl
from kitchensync.recipe_app.web.desk.pages import kitchens_of, render, who_cooks
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.sensors.hololens.catalogue import is_front_camera
from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.privacy import FOR_EVER, Pauses, pauses_of
from kitchensync.storage.reading.swaps import LONGEST_NS, swaps_of

SHOWN = ("recording", "health", "findings", "cameras", "disk", "ledger_closed")


def room_page(request: Request, tools: Tools, visitor: Asking) -> Response:
    """Show all running recordings; before the first recording, what is still to be set up."""
    fields: dict[str, Any] = {
        "steerable": tools.capture is not None,
        "kitchens": kitchens_of(tools),
        "todo": {},
    }
    if not tools.records.rows(tables.recording, tables.recording.c.strategy != "published", limit=1):
        fields["todo"] = {
            "kitchen": not tools.records.rows(tables.kitchen, limit=1),
            "person": not any("participant" in roles_of(row) for row in tools.records.rows(tables.person)),
            "device": not tools.records.rows(tables.device, tables.device.c.active, limit=1),
        }
    return render(request, "desk/room.html", visitor=visitor, **fields)


def room(tools: Tools) -> JsonObject:
    """Report the running recordings in the app's data folder, their health possibly `unknown`.

    `ended` lists those that ended today with what is still to do.
    """
    watch = tools.capture or tools.watch
    recordings = watch.room() if watch is not None else []
    data = tools.folders.data.absolute()
    ours = [
        recording
        for recording in recordings
        if "path" in recording and Path(recording["path"]).parent == data
    ]
    ended = ended_today(tools, {recording["recording"] for recording in ours})
    return {"recordings": [_shown(tools, recording) for recording in ours], "ended": ended}


def preflight(tools: Tools, body: Preflight) -> JsonObject:
    """Check this computer and a kitchen's devices. Raises NotNow during a recording, which it would disturb."""
    capture = _capture(tools)
    if capture.room():
        raise NotNow("something is being recorded; its devices are not to be disturbed")
    kitchen = tools.records.row(tables.kitchen, body.kitchen)
    result = capture.check(kitchen["name"] if kitchen else "")
    return {"status": result["status"], "findings": result["findings"]}


def _capture(tools: Collaborators) -> Station:
    if tools.capture is None:
        raise NotNow("no rig belongs to this app; start it with --rig rig.toml to record from here")
    return tools.capture


def _shown(tools: Collaborators, recording: dict[str, Any]) -> dict[str, Any]:
    row, path = _row_of(tools, recording["recording"]), Path(recording["path"])
    if paused := is_paused(path):
        tools.pictures.forget(path.absolute())  # frames taken before the pause was noticed
    about = {"id": None, "title": recording["recording"]}
    if row:
        about = {key: row[key] for key in ("id", "phase", "steps", "steps_done")} | who_cooks(tools, row)
    return {
        **{key: recording[key] for key in SHOWN},
        "streams": len(recording["streams"]),
        "streaming": sum(stream["state"] == "streaming" for stream in recording["streams"].values()),
        "pictures": [name for name in recording["streams"] if is_front_camera(name)] if row else [],
        "paused": paused,
        "swapping": _is_swapping(path),
        "seconds": tools.folders.seconds(recording["recording"], tools.records.utc_ns()),
        **about,
    }


def _row_of(tools: Collaborators, folder: str) -> dict[str, Any] | None:
    rows = tools.records.rows(tables.recording, tables.recording.c.folder == folder, limit=1)
    return rows[0] if rows else None


def is_paused(recording: Path) -> bool:
    """Return whether a privacy pause is active; True if the event log cannot be read."""
    return any(end_ns == FOR_EVER for _, end_ns in _pauses(recording))


def was_paused(recording: Path, host_ns: int) -> bool:
    """Return whether a moment is in a privacy pause; True if the event log cannot be read."""
    return any(begin_ns <= host_ns <= end_ns for begin_ns, end_ns in _pauses(recording))


def _pauses(recording: Path) -> Pauses:
    try:
        return pauses_of(recording)
    except BadEventLog:
        return ((0, FOR_EVER),)


def _is_swapping(recording: Path) -> bool:
    try:
        swaps = swaps_of(recording)
    except BadEventLog:
        return False
    return bool(swaps) and swaps[-1][1] - swaps[-1][0] == LONGEST_NS


def steer(tools: Tools, visitor: Asking, folder: str, body: RoomControl) -> JsonObject:
    """Stop, abort, mark, pause or resume a recording, or leave its videos on the cameras' cards for now."""
    capture = _capture(tools)
    tools.folders.state(folder)  # raises NotFound for a folder that is not the app's
    row, action = _row_of(tools, folder), body.action
    if row is not None and action in ("stop", "abort"):
        return steering.steer(tools, row["id"], action, actor=visitor.actor, reason=body.text)
    if row is not None and action in ("pause", "resume"):
        # A recording with a tablet is paused in the tablet's log, so that the tablet shows the pause.
        if tools.folders.state(folder) != "recording":
            raise NotNow("nothing is being recorded here")
        tools.records.note(action, row["id"], {}, actor=visitor.actor, op_id=body.op_id)
        if action == "pause":
            tools.pictures.forget((tools.folders.data / folder).absolute())
        tools.intake.file()
        return {"folder": folder, "reasons": []}
    if action == "stop":
        reasons = capture.stop(folder, by=visitor.pseudonym)
    elif action == "abort":
        reasons = capture.abort(folder, reason=body.text, by=visitor.pseudonym)
    else:
        reasons = capture.tell(folder, action, body.text)
    return {"folder": folder, "reasons": reasons}


ROUTES = [
    Route("/desk/room", room_page, Access.OPERATE, page=True),
    Route("/api/v1/desk/room", room, Access.OPERATE),
    Route("/api/v1/desk/preflight", preflight, Access.OPERATE, "POST"),
    Route("/api/v1/desk/room/{folder}", steer, Access.OPERATE, "POST"),
]
