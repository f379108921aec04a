"""Control the devices of a recording, and log each request with its outcome."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Literal

from kitchensync.operations.errors import NotNow
from kitchensync.operations.event_lines import folder_of
from kitchensync.operations.session_state import State
from kitchensync.recipe_app.cooking.cards import unread_card
from kitchensync.recipe_app.cooking.checklist import (
    CHECKLIST_VERSION,
    CONSENT_VERSION,
    is_through,
    still_open,
)
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.cooking.withdrawals import end_withdrawn
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.study.next_sessions import give_back

if TYPE_CHECKING:
    from kitchensync.capture.station import Station

Action = Literal["start", "stop", "abort", "without"]


def steer(tools: Collaborators, recording: str, action: Action, *, actor: str, reason: str) -> dict[str, Any]:
    """Start, stop or abort; return the folder and the reasons of a refusal, empty on success. Raises NotNow.

    A start with a `reason` is allowed even if expected streams are missing. `without` lets the tablet
    continue with no recording devices.
    """
    if tools.capture is None:
        raise NotNow("no rig belongs to this app; start it with --rig rig.toml to record from here")
    if action == "start":
        if not tools.starting.acquire(blocking=False):
            raise NotNow("the devices are being started already; wait until that is done")
        try:
            return _start(tools, tools.capture, recording, actor, reason)
        finally:
            tools.starting.release()
    folder, reasons = folder_of(tools.records.ops(recording)), list[str]()
    if action == "without":
        _require_not_begun(tools.records.state(recording), folder)
    elif folder is None:
        raise NotNow("nothing is being recorded here")
    elif action == "stop":
        reasons = tools.capture.stop(folder, by=tools.records.pseudonym(actor))
        if reasons and tools.folders.state(folder) == "stopped":
            reasons = []  # it had ended before: by itself, at its keyboard, or by an earlier request
    else:
        reasons = tools.capture.abort(folder, reason=reason, by=tools.records.pseudonym(actor))
    entry = {"action": action, "folder": folder, "reasons": reasons, "why": reason}
    tools.records.note("capture", recording, entry, actor=actor)
    if action == "abort" and not reasons:
        give_back(tools.records, recording, actor=actor)
    if action != "without":
        tools.intake.file()
    return {"folder": folder, "reasons": reasons}


def _start(
    tools: Collaborators, capture: Station, recording: str, actor: str, override: str
) -> dict[str, Any]:
    state = tools.records.state(recording)
    _require_not_begun(state, folder_of(tools.records.ops(recording)))
    row = tools.records.row(tables.recording, recording) or {}
    if row and (unread := unread_card(tools, row["kitchen"])) is not None:
        raise NotNow(
            "the card of {name}, the last recording of this kitchen, has not been read; Today at the desk shows it",
            name=unread["folder"],
        )
    kitchen = tools.records.row(tables.kitchen, row.get("kitchen", ""))
    # The name must not reveal whether errors were planned.
    moment = datetime.datetime.fromtimestamp(tools.records.utc_ns() / 1e9, tz=datetime.UTC)
    name = f"{state['recording']['name'][:36]}-{moment:%Y%m%d-%H%M%S}-{recording[-4:]}"
    reasons = capture.start(
        name,
        participant=tools.records.pseudonym(row.get("person", "")),
        consent=f"{recording}/{CONSENT_VERSION}",
        place=kitchen["name"] if kitchen else "",
        override=override,
    )
    if reasons:
        entry = {"action": "start", "folder": None, "reasons": reasons, "why": override}
        tools.records.note("capture", recording, entry, actor=actor)
        return {"folder": None, "reasons": reasons}
    tools.records.give_folder(recording, name, actor=actor)
    tools.intake.file()
    end_withdrawn(tools)  # the participant may have withdrawn while the devices were starting
    _refuse_withdrawn(tools.records.state(recording))
    return {"folder": name, "reasons": []}


def _require_not_begun(state: State, folder: str | None) -> None:
    _refuse_withdrawn(state)
    if not is_through(state):
        names = tuple(still_open(state, devices=True))
        raise NotNow("the checklist is not through ({names}); nothing is recorded before it is", names=names)
    if folder is not None:
        raise NotNow("this recording has its folder {folder} already", folder=folder)


def _refuse_withdrawn(state: State) -> None:
    if state["withdrawn"]:
        raise NotNow("this recording is withdrawn; begin another one")


def override(tools: Collaborators, recording: str, *, reason: str, actor: str, op_id: str) -> dict[str, str]:
    """Let a recording begin with open points of the checklist, and log by whom and why. Raises NotNow."""
    open_points = still_open(tools.records.state(recording), devices=True)
    if "consent" in open_points:
        raise NotNow("nobody can agree for somebody else: the consent is not given")
    body = {
        "version": CHECKLIST_VERSION,
        "confirmed_by": tools.records.pseudonym(actor),
        "override": f"{reason} (open: {', '.join(open_points) or 'nothing'})"[:600],
    }
    tools.records.note("checked", recording, body, actor=actor, op_id=op_id)
    tools.intake.file()
    return body
