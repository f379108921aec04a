"""Recordings that ended today, with their cards; pages poll every second, so unchanged manifests are cached."""

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
"""States: cooked without devices; must not be used; consent withdrawn; not ended, without a recorder."""
GIVEN_UP = "aborted"
"""State of a manifest whose devices never started."""


def ended_today(tools: Collaborators, running: set[str]) -> list[dict[str, Any]]:
    """Return the recordings that ended today in local time, newest first, and older ones with unread cards.

    `state` is that of the card (made, making, none), or alone, aborted, withdrawn, open. `to_read` is true for the
    newest recording of a kitchen while its card has news.
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
    sessions = []
    for name, manifest in manifests.items():
        if manifest.get("state") in (None, GIVEN_UP):  # None: destroyed
            continue
        began_ns, stopped_ns = (
            moment_utc_ns(manifest, what) or moment_utc_ns(manifest) or 0 for what in ("started", "stopped")
        )
        if stopped_ns >= since_ns or name in newest:
            began = {"folder": name, "today": stopped_ns >= since_ns, "began_ms": began_ns // 10**6}
            who = {"person": manifest.get("pseudonym"), "kitchen": manifest.get("place")}
            who |= {"id": None, "title": name}  # unless a tablet started it
            if name in of_folder:
                who = _who(of_folder[name], people, kitchens)
            worth = _worth(tools, name, manifest, name in newest)
            lacking = {"no_consent": tools.folders.lacking_consent(name)}
            sessions.append(began | who | worth | lacking)
    alone = {"state": ALONE, "to_read": False, "today": True}
    sessions += [
        alone | {"began_ms": row["created_utc_ns"] // 10**6} | _who(row, people, kitchens)
        for row in rows
        if not row["folder"] and row["phase"] in ("review", "done")
    ]
    shown = [session for session in sessions if session["today"] or session["to_read"]]
    return sorted(shown, key=lambda session: session["began_ms"], reverse=True)


def _who(row: dict[str, Any], people: dict[str, str], kitchens: dict[str, str]) -> dict[str, Any]:
    steps = {key: row[key] for key in ("id", "steps", "steps_done")}
    who = {"person": people.get(row["person"]), "kitchen": kitchens.get(row["kitchen"])}
    return steps | who | {"title": title_of(row["recipe"])}


def _worth(tools: Collaborators, folder: str, manifest: Manifest, is_newest: bool) -> dict[str, Any]:
    """Return the state of the card; a final card is not looked up again."""
    read: dict[str, Any] = manifest.get("card") or {}
    facts = {"state": MADE, "to_read": False, "status": read.get("status"), "stage": read.get("stage")}
    if manifest.get("withdrawn"):
        return facts | {"state": WITHDRAWN}
    if why := why_aborted(manifest):
        return facts | {"state": ABORTED, "reason": why}
    if manifest["state"] != "complete":
        return facts | {"state": OPEN}
    if facts["stage"] == FINAL or manifest.get("adopted"):
        return facts
    newest = card_of(tools, folder)
    card = newest.card or {}
    is_new = not read or (card.get("stage") == FINAL and read["stage"] == FIRST)
    stage = {"status": card["status"], "stage": card["stage"]} if card else {}
    return facts | {"state": newest.state, "to_read": is_newest and is_new} | stage


def title_of(recipe: str) -> str:
    """Return the name of a recipe for people."""
    words = recipe.replace("_", " ")
    return words[:1].upper() + words[1:]


def _changed(data: Path, since_ns: int) -> set[str]:
    """Return the folders modified since then: rewriting a manifest modifies its folder."""
    names = set()
    with os.scandir(data) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # an unavailable store, or removed meanwhile
                if not entry.name.startswith(("_", ".")) and entry.stat().st_mtime_ns >= since_ns:
                    names.add(entry.name)
    return names


def _read(tools: Collaborators, names: Iterable[str]) -> dict[str, Manifest]:
    """Read the manifests of recordings, skipping unreadable ones, whose problem the list of recordings shows."""
    manifests = {}
    for name in sorted(names):
        with contextlib.suppress(NotFound, StorageError):
            manifests[name] = tools.folders.known_manifest(name)
    return manifests
