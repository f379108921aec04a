"""What ended today, and what comes of it; a page asks each second, so what has not changed is not read again."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kitchensync.recipe_app.cooking.cards import MADE, card_of, latest
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.store import tables
from kitchensync.storage.errors import StorageError
from kitchensync.storage.life import why_aborted
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.recording_files.kept_session_card import FINAL, FIRST
from kitchensync.storage.timeline.utc_times import moment_utc_ns
from kitchensync.task_graphs.errors import NotFound

ALONE, ABORTED, WITHDRAWN, OPEN = "alone", "aborted", "withdrawn", "open"
"""Cooked without devices; shall not be used; taken back; nobody has ended it and nobody records it."""
GIVEN_UP = "aborted"
"""State of a manifest whose devices never began."""


def ended_today(tools: Collaborators, running: set[str]) -> list[dict[str, Any]]:
    """Return what ended today in the time zone of this computer, newest first, and older cards nobody has read.

    `state` is that of the card (made, making, none), or alone, aborted, withdrawn, open. `to_read` is true of the
    newest recording of a kitchen as long as its card says something new.
    """
    kitchens = {row["id"]: row["name"] for row in tools.records.rows(tables.kitchen)}
    newest = {row["folder"] for row in (latest(tools, kitchen) for kitchen in kitchens) if row}
    now = datetime.datetime.fromtimestamp(tools.records.utc_ns() / 1e9).astimezone()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    since_ns = int(midnight.timestamp()) * 10**9
    manifests = _read(tools, _changed(tools.folders.data, since_ns) - running)
    manifests |= _read(tools, newest - manifests.keys() - running)
    table = tables.recording
    ours = table.c.folder.in_(list(manifests)) | (
        table.c.folder.is_(None) & (table.c.created_utc_ns >= since_ns)
    )
    rows = tools.records.rows(table, ours)
    cooks = tools.records.rows(tables.person, tables.person.c.id.in_({row["person"] for row in rows}))
    people = {row["id"]: row["pseudonym"] for row in cooks}
    of_folder = {row["folder"]: row for row in rows if row["folder"]}
    found = []
    for name, manifest in manifests.items():
        if manifest.get("state") in (None, GIVEN_UP):  # None: destroyed
            continue
        began_ns, stopped_ns = (
            moment_utc_ns(manifest, what) or moment_utc_ns(manifest) or 0 for what in ("started", "stopped")
        )
        if stopped_ns >= since_ns or name in newest:
            began = {"folder": name, "today": stopped_ns >= since_ns, "began_ms": began_ns // 10**6}
            who = {"person": manifest.get("pseudonym"), "kitchen": manifest.get("place")}
            who |= {"id": None, "title": name}  # no tablet began it
            if name in of_folder:
                who = _who(of_folder[name], people, kitchens)
            worth = _worth(tools, name, manifest, name in newest)
            lacking = {"no_consent": tools.folders.lacking_consent(name)}
            found.append(began | who | worth | lacking)
    alone = {"state": ALONE, "to_read": False, "today": True}
    found += [
        alone | {"began_ms": row["created_utc_ns"] // 10**6} | _who(row, people, kitchens)
        for row in rows
        if not row["folder"] and row["phase"] in ("review", "done")
    ]
    shown = [one for one in found if one["today"] or one["to_read"]]
    return sorted(shown, key=lambda one: one["began_ms"], reverse=True)


def _who(row: dict[str, Any], people: dict[str, str], kitchens: dict[str, str]) -> dict[str, Any]:
    known = {key: row[key] for key in ("id", "steps", "steps_done")}
    who = {"person": people.get(row["person"]), "kitchen": kitchens.get(row["kitchen"])}
    return known | who | {"title": title_of(row["recipe"])}


def _worth(tools: Collaborators, folder: str, manifest: Manifest, is_newest: bool) -> dict[str, Any]:
    """Say what is known of the card; it is looked for only as long as it may become another one."""
    read: dict[str, Any] = manifest.get("card") or {}
    said = {"state": MADE, "to_read": False, "status": read.get("status"), "stage": read.get("stage")}
    if manifest.get("withdrawn"):
        return said | {"state": WITHDRAWN}
    if why := why_aborted(manifest):
        return said | {"state": ABORTED, "reason": why}
    if manifest["state"] != "complete":
        return said | {"state": OPEN}
    if said["stage"] == FINAL or manifest.get("adopted"):
        return said
    found = card_of(tools, folder)
    card: dict[str, Any] = found["card"] or {}
    is_new = not read or (card.get("stage") == FINAL and read["stage"] == FIRST)
    known = {"status": card["status"], "stage": card["stage"]} if card else {}
    return said | {"state": found["state"], "to_read": is_newest and is_new} | known


def title_of(recipe: str) -> str:
    """Return the name of a recipe as it is read."""
    words = recipe.replace("_", " ")
    return words[:1].upper() + words[1:]


def _changed(data: Path, since_ns: int) -> set[str]:
    """Name the folders that were changed since then, as a manifest that is written anew changes its own."""
    found = set()
    with os.scandir(data) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # a store that is not there, or it was removed meanwhile
                if not entry.name.startswith(("_", ".")) and entry.stat().st_mtime_ns >= since_ns:
                    found.add(entry.name)
    return found


def _read(tools: Collaborators, names: Iterable[str]) -> dict[str, Manifest]:
    """Read the manifests of recordings; what is none, or broken, is left to the list, which says what is wrong."""
    found = {}
    for name in sorted(names):
        with contextlib.suppress(NotFound, StorageError):
            found[name] = tools.folders.known_manifest(name)
    return found
