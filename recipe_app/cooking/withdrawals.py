"""Whoever withdraws is recorded no longer, however that came here: from a tablet, late, in a dump, from the desk.

After the hours in which it can be taken back, what was recorded is destroyed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from recipe_app.cooking.collaborators import Collaborators
from recipe_app.errors import NotFound
from recipe_app.exchange import app_withdrawals
from recipe_app.store import tables
from recipe_app.store.destruction import ToDestroy
from storage.errors import StorageError
from storage.names import MANIFEST
from storage.withdraw.withdrawal import Policy, WithdrawnPlace, require_closed, with_made_of, withdraw

log = logging.getLogger(__name__)
HOUR_NS = 3_600_000_000_000


def end_withdrawn(tools: Collaborators) -> None:
    """Abort what still records somebody who withdrew; who is not reached now is asked again by the next call."""
    if tools.capture is None:
        return
    with tools.ending:  # who comes second finds it ended
        for recording, folder in _still_recorded(tools):
            _abort(tools, recording, folder)


def carry_out(tools: Collaborators, own: Path, place: Path | str, key: bytes) -> list[WithdrawnPlace]:
    """Destroy, or put aside, what was withdrawn longer ago than lab.toml's `grace_hours`; return every place.

    `own` is the app's folder, `place` its database, `key` the installation's secret. Raises OSError, StorageError.
    """
    lab = tools.folders.lab
    places: list[WithdrawnPlace] = []
    for recording, folder in _due(tools, lab.grace_hours * HOUR_NS):
        there, what = tools.folders.data / folder if folder else None, ToDestroy((recording,))
        if there is not None and (there / MANIFEST).is_file():
            require_closed(there)
            app_withdrawals.note_found(own, what)
            found, others = with_made_of([there])
            places += [*others, *(one for path in found for one in withdraw(path, Policy(lab.withdrawal)))]
        else:
            app_withdrawals.note_found(own, what)
        places += app_withdrawals.places_of(own, tools.records, place, what, person="", key=key)
    if places:
        app_withdrawals.note_done(own, places)
    return places


def _due(tools: Collaborators, grace_ns: int) -> Iterator[tuple[str, str | None]]:
    now = tools.records.utc_ns()
    for row in tools.records.rows(tables.recording, tables.recording.c.phase == "withdrawn"):
        ops = tools.records.ops(row["id"])
        is_published = any("collection" in op["body"] for op in ops if op["kind"] == "recording")
        last = max(op["received_utc_ns"] for op in ops if op["kind"] == "withdraw")
        if not is_published and now - last >= grace_ns:
            yield row["id"], row["folder"]


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
