"""Recordings in the data folder that no tablet started, and putting them into the list."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import select

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.cooking.checklist import keep_form
from kitchensync.recipe_app.cooking.choosing import frozen
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.exchange.folders import is_set_aside, started_utc_ns
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import new_id, roles_of
from kitchensync.recipe_app.store.shelf import keep_version
from kitchensync.storage.errors import StorageError
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import MANIFEST
from kitchensync.task_graphs.errors import NotFound

ENDED = "complete"
TEXT = "text"
"""Sampler of an order that is the recipe's own."""


def unlisted_recordings(tools: Collaborators) -> list[dict[str, Any]]:
    """Return the complete recordings of the data folder that are not in the list, newest first.

    `person` and `kitchen` come from `record` or `adopt`; `began_utc_ns` is 0 if unknown.
    """
    table = tables.recording
    listed = {row["folder"] for row in tools.records.rows(table, table.c.folder.is_not(None), limit=1 << 20)}
    facts = []
    for path in tools.folders.data.glob(f"[!_.]*/{MANIFEST}"):
        if path.parent.name not in listed:
            with contextlib.suppress(OSError):  # moved meanwhile
                status = path.stat()
                facts.append(_facts(path.parent, status.st_mtime_ns, status.st_ino))
    usable = [fact for fact in facts if fact is not None]
    keys = ("folder", "began_utc_ns", "person", "kitchen")
    return [dict(zip(keys, fact, strict=True)) for fact in sorted(usable, key=lambda row: (-row[1], row[0]))]


@lru_cache(maxsize=1 << 16)
def _facts(recording: Path, _mtime_ns: int, _inode: int) -> tuple[str, int, str, str] | None:
    """Return the facts of a recording for the list, None if it cannot be listed; cached until it changes."""
    try:
        manifest = read_manifest(recording)
    except StorageError:
        return None
    who, where = str(manifest.get("pseudonym") or ""), str(manifest.get("place") or "")
    return (recording.name, started_utc_ns(manifest), who, where) if _is_usable(manifest) else None


def _is_usable(manifest: Manifest) -> bool:
    """Return whether a recording is complete, not withdrawn or aborted, and has no recipe from a tablet."""
    has_recipe = manifest.get("recipe") or manifest.get("script")
    return manifest.get("state") == ENDED and not is_set_aside(manifest) and not has_recipe


def cooks(tools: Collaborators) -> list[dict[str, Any]]:
    """Return the people who may cook, by pseudonym."""
    active, name = tables.person.c.active, tables.person.c.pseudonym
    everybody = tools.records.rows(tables.person, active, order=name, limit=1 << 20)
    return [row for row in everybody if "participant" in roles_of(row)]


def put_into_list(
    tools: Collaborators, folder: str, *, recipe: str, strategy: str, person: str, kitchen: str, actor: str
) -> str:
    """List a recording as cooked by a person; return its id. Raises NotFound, NotNow, StorageError.

    The order is that of the recipe's text, since no other was shown. This gives no consent. Person and kitchen are
    written into the manifest when the operation is filed.
    """
    cook = next((row for row in cooks(tools) if row["id"] == person), None)
    place = tools.records.row(tables.kitchen, kitchen)
    if cook is None:
        raise NotFound("no participant {name!r}; add the person under People", name=person[:80])
    if place is None:
        raise NotFound("no kitchen {name!r}; add it under Kitchens and tablets", name=kitchen[:80])
    chosen = tools.shelf.get(recipe)
    if tools.records.rows(tables.recording, tables.recording.c.folder == folder, limit=1):
        raise NotNow("{folder} is in the list already", folder=folder)
    manifest = tools.folders.manifest(folder)
    if not _is_usable(manifest):
        raise NotNow("{folder} is not a whole recording that may be used", folder=folder)
    for stated, chosen_name in (
        (manifest.get("pseudonym"), cook["pseudonym"]),
        (manifest.get("place"), place["name"]),
    ):
        if stated and stated != chosen_name:
            raise NotNow("{folder} says {said}; choose that", folder=folder, said=str(stated))
    keep_version(tools.records, chosen, actor=actor)
    keep_form(tools.records)
    order = [step.node for step in chosen.graph.steps]
    content = frozen(chosen, strategy=strategy, display="steps", seed=0)
    content |= {"order": order, "sampler": TEXT, "folder": folder, "kitchen": kitchen}
    content |= {"began_utc_ns": started_utc_ns(manifest)}
    recording = new_id(tools.records.utc_ns())
    with tools.records.changing() as connection:
        query = select(tables.recording.c.id).where(tables.recording.c.folder == folder)
        if connection.execute(query).first() is not None:  # listed by somebody else meanwhile
            raise NotNow("{folder} is in the list already", folder=folder)
        note = tools.records.note_within
        note(connection, "recording", recording, content, actor=person, op_id=recording)
        note(connection, "finish", recording, {}, actor=actor)
    tools.intake.file()
    return recording
