"""Batch actions of the desk: one command for many recordings, its progress, and what was refused."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import Field

from kitchensync.operations.errors import NotNow
from kitchensync.operations.event_lines import consent_of
from kitchensync.operations.operation_kinds import Strict
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.exchange.app_withdrawals import note_download
from kitchensync.recipe_app.exchange.desk_batches import REFUSED, BatchRow
from kitchensync.recipe_app.exchange.published import as_zip
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.bodies import EmptyBody, Id
from kitchensync.recipe_app.web.desk.pages import attachment, exported, render, required_release
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.storage.errors import StorageError
from kitchensync.task_graphs.errors import NotFound, RecipeError
from kitchensync.task_graphs.formats.by_name import given_back

MOST = 200
Name = Annotated[str, Query(max_length=64)]
Chosen = Annotated[list[Name], Query(min_length=1, max_length=MOST)]
Some = Annotated[list[Name], Query(max_length=MOST, default_factory=list)]


class BatchOf(Strict):
    """A command and the recordings to run it on."""

    verb: Literal["verify", "sync", "report"]
    recordings: Annotated[list[Id], Field(min_length=1, max_length=MOST)]


def do_batch(request: Request, tools: Tools, body: BatchOf) -> JsonObject:
    """Queue a command for recordings, which run one after the other; the answer lists what is refused."""
    words, rows = words_of(request), []
    for recording in dict.fromkeys(body.recordings):
        row = tools.records.row(tables.recording, recording) or {}
        refused = "batch.unknown" if not row else ""
        if row and tools.records.state(recording)["withdrawn"]:
            refused = "batch.withdrawn"
        elif row and not row["folder"]:
            refused = "batch.no_folder"
        name = str(row["folder"] or row["recipe"]) if row else recording[:12]
        if refused:
            rows.append(BatchRow(recording, name, body.verb, None, REFUSED, words(refused)))
        else:
            path = (tools.folders.data / row["folder"]).absolute()
            rows.append(BatchRow(recording, name, body.verb, path))
    tools.batches.ask(rows)
    return batch_state(request, tools)


def batch_state(request: Request, tools: Tools) -> JsonObject:
    """Report the progress of the batches, a row per recording with its state in words."""
    words = words_of(request)
    rows = [row | {"word": words(f"batch.state.{row['state']}")} for row in tools.batches.rows()]
    return {"busy": tools.batches.is_busy(), "rows": rows}


def give_up_batch(request: Request, tools: Tools, body: EmptyBody) -> JsonObject:
    """Drop what is still queued; a command that is running finishes."""
    tools.batches.give_up()
    return batch_state(request, tools)


def consents(request: Request, tools: Tools, visitor: Asking, recording: Some) -> Response:
    """Show the consent of the chosen recordings, one line each."""
    people = {row["id"]: row["pseudonym"] for row in tools.records.rows(tables.person)}
    lines = []
    for row in _chosen(tools, recording):
        state = tools.records.state(row["id"])
        reference, scopes = consent_of(row["id"], state["consent"])
        lines.append({"row": row, "person": people.get(row["person"], "–"), "reference": reference,
                      "scopes": scopes, "consent": state["consent"], "withdrawn": state["withdrawn"]})  # fmt: skip
    return render(request, "desk/consents.html", visitor=visitor, lines=lines)


def _chosen(tools: Collaborators, recordings: list[str]) -> list[dict[str, Any]]:
    """Return the rows of recordings in the requested order. Raises NotFound."""
    rows = [tools.records.row(tables.recording, recording) for recording in dict.fromkeys(recordings)]
    present = [row for row in rows if row is not None]
    if len(present) < len(rows):
        raise NotFound("a recording of this list is not here any more; load the page again")
    return present


def export_many(request: Request, tools: Tools, visitor: Asking, recording: Chosen) -> Response:
    """Download the logs of the chosen recordings as one file, with a list of those left out and why.

    Raises NotNow if none may be released.
    """
    words, files, left_out = words_of(request), dict[str, str](), []
    for row in _chosen(tools, recording):
        try:
            required_release(tools, row["id"])
        except (RecipeError, StorageError) as error:
            why = words.refusal(error)
            left_out.append({"recording": row["id"], "recipe": row["recipe"], "why": why})
            continue
        name, content = exported(tools, row["id"])
        note_download(tools.records, row["id"], actor=visitor.actor)
        files[name] = json.dumps(content, indent=1, ensure_ascii=False)
    if not files:
        raise NotNow("nothing of these recordings may leave: nobody agreed to it")
    files["left_out.json"] = json.dumps(left_out, indent=1, ensure_ascii=False)
    return attachment(as_zip(files), "application/zip", "recordings.zip")


def export_recipes(tools: Tools, recipe: Chosen) -> Response:
    """Download recipes as one file: a published graph in its original layout, any other as `graph/1`."""
    recipes = [tools.shelf.get(name) for name in dict.fromkeys(recipe)]
    files = {f"{shelved.name}.json": given_back(shelved.graph) for shelved in recipes}
    return attachment(as_zip(files), "application/zip", "recipes.zip")


ROUTES = [
    Route("/api/v1/desk/batch", do_batch, Access.STUDY, "POST"),
    Route("/api/v1/desk/batch", batch_state, Access.STUDY),
    Route("/api/v1/desk/batch/give-up", give_up_batch, Access.STUDY, "POST"),
    Route("/api/v1/desk/exports/recordings", export_many, Access.STUDY),
    Route("/api/v1/desk/exports/recipes", export_recipes, Access.STUDY),
    Route("/desk/consents", consents, Access.OPERATE, page=True),
]
