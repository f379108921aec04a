"""Recordings that no tablet began, found in the data folder, are put into the list with recipe, person, kitchen."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from kitchensync.dataset.errors import NotNow
from kitchensync.recipe_app.cooking.checklist import keep_form
from kitchensync.recipe_app.cooking.choosing import frozen
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import new_id, roles_of
from kitchensync.recipe_app.store.shelf import keep_version
from kitchensync.storage.life import why_aborted
from kitchensync.storage.manifest import Manifest
from kitchensync.task_graphs.errors import NotFound

ENDED = "complete"


def unlisted(tools: Collaborators) -> list[dict[str, Any]]:
    """Return the whole recordings of the data folder that are not in the list, newest first.

    `person` and `kitchen` are what `record` or `adopt` was told of them, `began_utc_ns` is 0 where nobody knows it.
    """
    table = tables.recording
    listed = {row["folder"] for row in tools.records.rows(table, table.c.folder.is_not(None), limit=1 << 20)}
    found = [
        {
            "folder": name,
            "began_utc_ns": int((manifest.get("started") or {}).get("utc_ns", 0)),
            "person": manifest.get("pseudonym") or "",
            "kitchen": manifest.get("place") or "",
        }
        for name, manifest in tools.folders.manifests().items()
        if name not in listed and _is_usable(manifest)
    ]
    return sorted(found, key=lambda one: (-one["began_utc_ns"], one["folder"]))


def _is_usable(manifest: Manifest) -> bool:
    return manifest["state"] == ENDED and not manifest.get("withdrawn") and not why_aborted(manifest)


def put_into_list(
    tools: Collaborators, folder: str, *, recipe: str, strategy: str, person: str, kitchen: str, actor: str
) -> str:
    """List a recording as one that this person cooked; return its id. Raises NotFound, NotNow, StorageError.

    The order is that of the recipe's text: nobody was shown another. Nothing is agreed to by this.
    """
    cook, place = tools.records.row(tables.person, person), tools.records.row(tables.kitchen, kitchen)
    if cook is None or not cook["active"] or "participant" not in roles_of(cook):
        raise NotFound("no participant {name!r}; add the person under People", name=person[:80])
    if place is None:
        raise NotFound("no kitchen {name!r}; add it under Kitchens and tablets", name=kitchen[:80])
    chosen = tools.shelf.get(recipe)
    manifest = tools.folders.manifest(folder)
    if not _is_usable(manifest):
        raise NotNow("{folder} is not a whole recording that may be used", folder=folder)
    stated = manifest.get("pseudonym")
    if stated and stated != cook["pseudonym"]:
        raise NotNow(
            "{folder} was recorded with {person}; choose that person", folder=folder, person=str(stated)
        )
    keep_version(tools.records, chosen, actor=actor)
    keep_form(tools.records)
    order = [step.node for step in chosen.graph.steps]
    content = frozen(chosen, strategy=strategy, display="steps", seed=0, order=order)
    content |= {"folder": folder, "kitchen": kitchen}
    recording = new_id(tools.records.utc_ns())
    with tools.records.changing() as connection:
        there = select(tables.recording.c.id).where(tables.recording.c.folder == folder)
        if connection.execute(there).first() is not None:
            raise NotNow("{folder} is in the list already", folder=folder)
        tools.folders.put(folder, {"pseudonym": cook["pseudonym"], "place": place["name"]})
        note = tools.records.note_within
        note(connection, "recording", recording, content, actor=person, op_id=recording)
        note(connection, "finish", recording, {}, actor=actor)
    tools.intake.file()
    return recording
