"""End and destroy the recordings of participants who withdrew, from a tablet, a dump or the desk.

A recording is destroyed after the grace hours, in which the withdrawal can be undone.
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
    """Abort running recordings of participants who withdrew; the next call retries what could not be reached."""
    if tools.capture is None:
        return
    with tools.ending:  # a concurrent call waits and finds them ended
        table = tables.recording
        withdrawn = (table.c.phase == "withdrawn", table.c.folder.is_not(None))
        for row in tools.records.rows(table, *withdrawn, order=table.c.created_utc_ns.desc()):
            try:
                if tools.folders.state(row["folder"]) != "recording":
                    continue
            except NotFound:
                continue  # the folder is already destroyed
            try:
                reasons = tools.capture.abort(row["folder"], reason="withdrawn")
            except (OSError, StorageError) as error:
                reasons = [str(error)]
            entry = {"action": "abort", "folder": row["folder"], "reasons": reasons, "why": "withdrawn"}
            _log_once(tools, row["id"], entry)


def carry_out(tools: Collaborators, own: Path, place: Path | str, key: bytes) -> list[WithdrawnPlace]:
    """Destroy or quarantine recordings withdrawn longer ago than lab.toml's `grace_hours`; return every place.

    `own` is the app's folder, `place` its database, `key` the installation's secret. A recording that cannot be
    destroyed now is logged once and retried by the next call. Does nothing while another call is running.
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
                for destroyed in _destroyed(tools, own, recording, folder):
                    done.append(destroyed)  # one by one, for a proof of what was destroyed before an error
                done += app_withdrawals.places_of(own, tools.records, place, what, person="", key=key)
            except (OSError, StorageError) as error:
                _log_once(
                    tools, recording, {"action": "withdraw", "folder": folder, "reasons": [words_of(error)]}
                )
                done = [destroyed for destroyed in done if destroyed.count]
            if done:
                app_withdrawals.note_done(own, done)
            places += done
        return places
    finally:
        tools.destroying.release()


def finish_open(tools: Collaborators, own: Path) -> list[WithdrawnPlace]:
    """Continue withdrawals of this installation that were interrupted or had an unavailable place.

    Return the places with matches: a store, a camera's card, a folder of outputs. Only withdrawals in the
    installation's own list count, not those that come with a recording.
    """
    places: list[WithdrawnPlace] = []
    with tools.destroying:
        try:
            own_list = list_in(tools.folders.data)  # referenced to the end, so that it is read only once
            listed = own_list.all_outside()
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
    if reached := [place for place in places if place.count]:
        app_withdrawals.note_done(own, reached)
    return reached


def _destroyed(
    tools: Collaborators, own: Path, recording: str, folder: str | None
) -> Iterator[WithdrawnPlace]:
    """Destroy a recording's folder, copies and derived recordings, after noting it in the app's folder."""
    recordings, others = list[Path](), list[WithdrawnPlace]()
    with suppress(NotFound):
        folder_path = tools.folders.path(folder or "")
        require_closed(folder_path)
        recordings, others = with_made_of([folder_path])
    app_withdrawals.note_found(own, ToDestroy((recording,)))
    for path in recordings:
        yield from withdraw(path, Policy(tools.folders.lab.withdrawal))
    yield from others


def _log_once(tools: Collaborators, recording: str, done: dict[str, Any]) -> None:
    """Log an attempt with the recording, unless the same refusal is already logged."""
    if done in [op["body"] for op in tools.records.ops(recording)]:
        return
    if done["reasons"]:
        log.warning(
            "%s is withdrawn, %s failed: %s", done["folder"], done["action"], "; ".join(done["reasons"])
        )
    tools.records.note("capture", recording, done, actor="")
    tools.intake.file()
