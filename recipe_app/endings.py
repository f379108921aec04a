"""What is over is recorded no longer: who withdrew, however that came here, and what was ended unheard."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Literal

from recipe_app.collaborators import Collaborators
from recipe_app.errors import NotFound
from recipe_app.store import tables
from storage.errors import StorageError

log = logging.getLogger(__name__)

Over = tuple[str, str, Literal["stop", "abort"], str]  # recording, folder, what the devices are told, why


def end_what_is_over(tools: Collaborators) -> None:
    """Stop or abort what capture still records of it; who is not reached now is asked again by the next call."""
    if tools.capture is None:
        return
    with tools.ending:  # who comes second finds it ended
        for over in list(_still_recorded(tools)):
            _end(tools, *over)


def _still_recorded(tools: Collaborators) -> Iterator[Over]:
    table = tables.recording
    live = table.c.folder.in_(tools.folders.running())
    for row in tools.records.rows(table, live, order=table.c.created_utc_ns.desc()):
        try:
            if tools.folders.state(row["folder"]) != "recording":
                continue
        except NotFound:
            continue  # it was deleted, as a withdrawn folder is in the end
        if row["phase"] == "withdrawn":
            yield row["id"], row["folder"], "abort", "withdrawn"
        elif row["phase"] in ("review", "done") and _ended_since_begun(tools.records.ops(row["id"])):
            yield row["id"], row["folder"], "stop", "ended"


def _ended_since_begun(ops: list[dict[str, Any]]) -> bool:
    """Tell whether the devices were started from here and *End* came after that; an operator's recording goes on."""
    begun = ended = False
    for op in ops:
        if op["kind"] == "capture" and op["body"]["action"] == "start" and not op["body"]["reasons"]:
            begun, ended = True, False
        ended = ended or op["kind"] == "end"
    return begun and ended


def _end(
    tools: Collaborators, recording: str, folder: str, action: Literal["stop", "abort"], why: str
) -> None:
    assert tools.capture is not None
    try:
        reasons = tools.capture.stop(folder) if action == "stop" else tools.capture.abort(folder, reason=why)
    except (OSError, StorageError) as error:
        reasons = [str(error)]
    said = {"action": action, "folder": folder, "reasons": reasons, "why": why}
    if said in [op["body"] for op in tools.records.ops(recording)]:
        return  # the same refusal again: it is told once
    if reasons:
        log.warning("%s is %s and still being recorded: %s", folder, why, "; ".join(reasons))
    tools.records.note("capture", recording, said, actor="")
    tools.intake.file()
