"""Whoever withdraws is recorded no longer, however that came here: from a tablet, late, in a dump, from the desk.

After the hours in which it can be taken back, what was recorded is destroyed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.exchange import app_withdrawals
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.destruction import ToDestroy
from kitchensync.storage.errors import StorageError, words_of
from kitchensync.storage.installation.own_list import list_in, uuid_of
from kitchensync.storage.withdraw.withdrawal import (
    Policy,
    WithdrawnPlace,
    require_closed,
    with_made_of,
    withdraw,
)
from kitchensync.task_graphs.errors import NotFound

log = logging.getLogger(__name__)
HOUR_NS = 3_600_000_000_000


def end_withdrawn(tools: Collaborators) -> None:
    """Abort what still records somebody who withdrew; who is not reached now is asked again by the next call."""
    if tools.capture is None:
        return
    with tools.ending:  # who comes second finds it ended
        table = tables.recording
        withdrawn = (table.c.phase == "withdrawn", table.c.folder.is_not(None))
        for row in tools.records.rows(table, *withdrawn, order=table.c.created_utc_ns.desc()):
            try:
                if tools.folders.state(row["folder"]) != "recording":
                    continue
            except NotFound:
                continue  # it was deleted, as a withdrawn folder is in the end
            try:
                reasons = tools.capture.abort(row["folder"], reason="withdrawn")
            except (OSError, StorageError) as error:
                reasons = [str(error)]
            said = {"action": "abort", "folder": row["folder"], "reasons": reasons, "why": "withdrawn"}
            _log_once(tools, row["id"], said)


def carry_out(tools: Collaborators, own: Path, place: Path | str, key: bytes) -> list[WithdrawnPlace]:
    """Destroy, or put aside, what was withdrawn longer ago than lab.toml's `grace_hours`; return every place.

    `own` is the app's folder, `place` its database, `key` the installation's secret. A recording that cannot be
    destroyed now is logged once, and tried again by the next call; so is everything while another call is at it.
    """
    if not tools.destroying.acquire(blocking=False):
        return []
    try:
        places: list[WithdrawnPlace] = []
        now_ns, grace_ns = tools.records.utc_ns(), tools.folders.lab.grace_hours * HOUR_NS
        for row in tools.records.rows(tables.recording, tables.recording.c.phase == "withdrawn"):
            recording, folder, ops = row["id"], row["folder"], tools.records.ops(row["id"])
            last = max(op["received_utc_ns"] for op in ops if op["kind"] == "withdraw")
            is_published = any("collection" in op["body"] for op in ops if op["kind"] == "recording")
            if is_published or now_ns - last < grace_ns:
                continue
            what, done = ToDestroy((recording,)), list[WithdrawnPlace]()
            try:
                for one in _destroyed(tools, own, recording, folder):
                    done.append(one)  # one by one: what was destroyed before an error has its proof too
                done += app_withdrawals.places_of(own, tools.records, place, what, person="", key=key)
            except (OSError, StorageError) as error:
                _log_once(
                    tools, recording, {"action": "withdraw", "folder": folder, "reasons": [words_of(error)]}
                )
                done = [one for one in done if one.count]
            if done:
                app_withdrawals.note_done(own, done)
            places += done
        return places
    finally:
        tools.destroying.release()


def finish_open(tools: Collaborators, own: Path) -> list[WithdrawnPlace]:
    """Go on with withdrawals of this installation that were interrupted or had a place that was away.

    Return where something was found: a store, a camera's card, a folder of outputs. A recording that comes with a
    withdrawal of its own makes nothing happen.
    """
    places: list[WithdrawnPlace] = []
    with tools.destroying:
        try:
            held = list_in(tools.folders.data)  # it is read once
            listed = held.all_outside()
        except (OSError, StorageError) as error:
            log.warning("%s", words_of(error))
            return []
        for uuid, outside in listed.items():
            if outside.last is None or not outside.is_unfinished:
                continue
            path = tools.folders.data / outside.last["recording"]
            try:
                if uuid_of(path) == uuid:
                    places += withdraw(path, Policy(outside.last["policy"]))
            except (OSError, StorageError) as error:
                log.warning("%s: %s", path.name, words_of(error))
    if found := [one for one in places if one.count]:
        app_withdrawals.note_done(own, found)
    return found


def _destroyed(
    tools: Collaborators, own: Path, recording: str, folder: str | None
) -> Iterator[WithdrawnPlace]:
    """Destroy the folder of a recording, with its copies and what was made of it; note in the app's folder first."""
    found, others = list[Path](), list[WithdrawnPlace]()
    with suppress(NotFound):
        there = tools.folders.path(folder or "")
        require_closed(there)
        found, others = with_made_of([there])
    app_withdrawals.note_found(own, ToDestroy((recording,)))
    for path in found:
        yield from withdraw(path, Policy(tools.folders.lab.withdrawal))
    yield from others


def _log_once(tools: Collaborators, recording: str, done: dict[str, Any]) -> None:
    """Add what was tried to the recording's log; a refusal that is there already is not added again."""
    if done in [op["body"] for op in tools.records.ops(recording)]:
        return
    if done["reasons"]:
        log.warning(
            "%s is withdrawn, %s failed: %s", done["folder"], done["action"], "; ".join(done["reasons"])
        )
    tools.records.note("capture", recording, done, actor="")
    tools.intake.file()
