"""Whoever withdraws is recorded no longer, however that came here: from a tablet, late, in a dump, from the desk."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import NotFound
from recipe_app.store import tables
from storage.errors import StorageError

log = logging.getLogger(__name__)


def end_withdrawn(tools: Collaborators) -> None:
    """Abort what still records somebody who withdrew; who is not reached now is asked again by the next call."""
    if tools.capture is None:
        return
    with tools.ending:  # who comes second finds it ended
        for recording, folder in _still_recorded(tools):
            _abort(tools, recording, folder)


def _still_recorded(tools: Collaborators) -> Iterator[tuple[str, str]]:
    """Recordings that are withdrawn, with their folders that capture makes now."""
    table = tables.recording
    withdrawn = (table.c.phase == "withdrawn", table.c.folder.is_not(None))
    for row in tools.records.rows(table, *withdrawn, order=table.c.created_utc_ns.desc()):
        try:
            if tools.folders.state(row["folder"]) == "recording":
                yield row["id"], row["folder"]
        except NotFound:
            continue  # it was deleted, as a withdrawn folder is in the end


def _abort(tools: Collaborators, recording: str, folder: str) -> None:
    assert tools.capture is not None
    try:
        reasons = tools.capture.abort(folder, reason="withdrawn")
    except (OSError, StorageError) as error:
        reasons = [str(error)]
    said = {"action": "abort", "folder": folder, "reasons": reasons, "why": "withdrawn"}
    if said in [op["body"] for op in tools.records.ops(recording)]:
        return  # the same refusal again: it is told once
    if reasons:
        log.warning("%s is withdrawn and still being recorded: %s", folder, "; ".join(reasons))
    tools.records.note("capture", recording, said, actor="")
    tools.intake.file()
