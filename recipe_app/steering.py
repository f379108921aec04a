"""Tell the devices what to do for a recording, and log what was asked and what came of it."""

from __future__ import annotations

import datetime
from typing import Any, Literal

from recipe_app.checklist import CONSENT_VERSION
from recipe_app.collaborators import Collaborators
from recipe_app.errors import NotNow
from recipe_app.operations.events import folder_of
from recipe_app.store import tables

Action = Literal["start", "stop", "abort"]


def steer(tools: Collaborators, recording: str, action: Action, *, actor: str, reason: str) -> dict[str, Any]:
    """Start, stop or abort; return the folder and the reasons of a refusal, none when it is done. Raises NotNow."""
    if tools.capture is None:
        raise NotNow("no rig belongs to this app; start it with --rig rig.toml to record from here")
    folder = folder_of(tools.records.ops(recording))
    if action == "start":
        return _start(tools, recording, folder, actor)
    if folder is None:
        raise NotNow("nothing is being recorded here")
    reasons = tools.capture.stop(folder) if action == "stop" else tools.capture.abort(folder, reason=reason)
    said = {"action": action, "folder": folder, "reasons": reasons, "why": reason}
    tools.records.note("capture", recording, said, actor=actor)
    tools.intake.file()
    return {"folder": folder, "reasons": reasons}


def _start(tools: Collaborators, recording: str, folder: str | None, actor: str) -> dict[str, Any]:
    assert tools.capture is not None
    state = tools.records.state(recording)
    if state["checked"] is None or not (state["consent"] or {}).get("accepted"):
        raise NotNow("the checklist is not through; nothing is recorded before it is")
    if folder is not None:
        raise NotNow(f"this recording has its folder {folder} already")
    row = tools.records.row(tables.recording, recording)
    person = tools.records.row(tables.person, row["person"]) if row else None
    kitchen = tools.records.row(tables.kitchen, row["kitchen"]) if row else None
    name = _folder_name(tools, state["recording"]["name"], recording)
    reasons = tools.capture.start(
        name,
        participant=person["pseudonym"] if person else "",
        consent=f"{recording}/{CONSENT_VERSION}",
        place=kitchen["name"] if kitchen else "",
    )
    if reasons:
        said = {"action": "start", "folder": None, "reasons": reasons}
        tools.records.note("capture", recording, said, actor=actor)
        return {"folder": None, "reasons": reasons}
    tools.records.give_folder(recording, name, actor=actor)
    tools.intake.file()
    return {"folder": name, "reasons": []}


def _folder_name(tools: Collaborators, recipe: str, recording: str) -> str:
    """Name a take by recipe, time and the end of its id; nothing in it tells whether errors were planned."""
    moment = datetime.datetime.fromtimestamp(tools.records.utc_ns() / 1e9, tz=datetime.UTC)
    return f"{recipe[:36]}-{moment:%Y%m%d-%H%M%S}-{recording[-4:]}"
