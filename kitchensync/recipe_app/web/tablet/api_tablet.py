"""The tablet's recipes and recordings: a recording's data for offline use, its operations and their receipts."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import BackgroundTasks, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from sqlalchemy import ColumnElement
from starlette.concurrency import run_in_threadpool

from kitchensync.operations.errors import NotNow
from kitchensync.operations.event_lines import folder_of
from kitchensync.operations.session_state import Op
from kitchensync.recipe_app.cooking import checklist, mise_en_place, recipe_pictures, steering, training
from kitchensync.recipe_app.cooking.choosing import frozen, help_for
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.cooking.withdrawals import end_withdrawn
from kitchensync.recipe_app.exchange.dumps import keep_voice
from kitchensync.recipe_app.exchange.intake import Sender
from kitchensync.recipe_app.exchange.stated_facts import RECIPE, latest
from kitchensync.recipe_app.narration import voices
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.shelf import Recipe, UnusableRecipe, keep_version
from kitchensync.recipe_app.study import next_sessions
from kitchensync.recipe_app.study.plan_file import LATE
from kitchensync.recipe_app.web.bodies import Choose, Control, OperationBatch
from kitchensync.recipe_app.web.door.access import Asking, Device, JsonObject, Route, Tools, require
from kitchensync.recipe_app.web.door.request_bodies import RequestBody
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.storage.consent import OFFERED
from kitchensync.storage.timeline.acoustic_slate import slate_file
from kitchensync.task_graphs.categories import CATEGORIES
from kitchensync.task_graphs.errors import NotFound
from kitchensync.task_graphs.formats.graph_json import parse_graph_json

FRESH_NS = 3_000_000_000
"""Maximum age of a health report, nanoseconds: the tablet shows an older one as `unknown`."""
SOUND = RequestBody(8 << 20, ("audio",), at_once=4)
"""A voice note."""

Seed = Annotated[int, Query(ge=0, le=2**53)]
Language = Annotated[str, Query(max_length=3)]
Sha256 = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]


def recipes(request: Request, tools: Tools) -> JsonObject:
    """List the recipes with their facts in the page's language, and the files that cannot be used."""
    everything = tools.shelf.everything()
    facts, pictures = latest(tools.records, RECIPE), recipe_pictures.of_all(tools.records)
    language = words_of(request).language
    return {
        "recipes": [
            {
                "recipe": recipe.name,
                "title": recipe.title,
                "titles": recipe.titles,
                "steps": len(recipe.graph.steps),
                "orders": recipe.total,
                **mise_en_place.facts_of(recipe, facts.get(recipe.name, {}), language),
                "picture": recipe_pictures.of_result(recipe, pictures.get(recipe.name, {})),
                "graph_hash": recipe.graph.content_hash,
            }
            for recipe in everything
            if isinstance(recipe, Recipe)
        ],
        "unusable": [asdict(unusable) for unusable in everything if isinstance(unusable, UnusableRecipe)],
    }


def order(tools: Tools, recipe: str, seed: Seed | None = None, language: Language = "") -> JsonObject:
    """Return the order drawn with a seed, random if none is sent, in a language of the recipe; save nothing."""
    shelved = tools.shelf.get(recipe)
    drawn = frozen(shelved, strategy="normal", display="steps", seed=seed, language=language)
    return drawn | {"titles": shelved.titles} | _beside(tools, shelved, language)


def _beside(tools: Collaborators, recipe: Recipe, language: str) -> dict[str, Any]:
    """Return what is shown beside the steps of a recipe: pictures by place, and what to fetch."""
    pictures = recipe_pictures.of_all(tools.records).get(recipe.name, {})
    result = recipe_pictures.of_result(recipe, pictures)
    stated = latest(tools.records, RECIPE).get(recipe.name, {})
    return {
        "pictures": pictures | ({recipe_pictures.RESULT: result} if result else {}),
        "fetch": mise_en_place.to_fetch(recipe, stated, language or recipe.graph.language),
    }


def recipe_picture(tools: Tools, sha256: Sha256) -> Response:
    """Return a picture of a recipe; the content of a hash never changes."""
    content = recipe_pictures.content(tools.records, sha256)
    headers = {"cache-control": "private, max-age=31536000, immutable"}
    return Response(content, media_type="image/jpeg", headers=headers)


def running(tools: Tools, visitor: Asking) -> JsonObject:
    """List the running recordings, which of them are free for a session, and those filmed elsewhere.

    A tablet does not see recordings with a session in another kitchen.
    """
    names = tools.folders.running()
    if visitor.device is not None:
        others = _live_in(tools, names, tables.recording.c.kitchen != visitor.device["kitchen"])
        names = [name for name in names if name not in others]
    live = [name for name in names if tools.folders.state(name) == "recording"]
    cooked = _live_in(tools, live, COOKED_IN)
    healths = {name: health_of(tools, name) for name in live if name not in cooked}
    return {
        "running": live,
        "free": [
            name
            for name, health in healths.items()
            if health["health"] != "unknown" and health["alarm"] != "stopped"
        ],
        "adopted": [name for name in names if name not in live and not _is_put_in(tools, name)],
    }


def _is_put_in(tools: Collaborators, folder: str) -> bool:
    """Return whether the desk has put a video from elsewhere into the list: it can no longer be joined."""
    rows = tools.records.rows(tables.recording, tables.recording.c.folder == folder)
    return any("began_utc_ns" in (tools.records.frozen(row["id"]) or {}) for row in rows)


def _live_in(tools: Collaborators, folders: list[str], *where: ColumnElement[bool]) -> set[str]:
    """Return the folders that are recording and belong to a session with these conditions."""
    table, live = tables.recording, [name for name in folders if tools.folders.state(name) == "recording"]
    return {row["folder"] for row in tools.records.rows(table, table.c.folder.in_(live), *where)}


COOKED_IN = tables.recording.c.phase.in_(("follow", "review"))
"""Condition: the session is past its checklist."""


def recordings(tools: Tools, visitor: Asking) -> JsonObject:
    """List the visitor's recordings in this kitchen, newest first."""
    table = tables.recording
    conditions = [table.c.person == visitor.actor]
    if visitor.device:
        conditions.append(table.c.kitchen == visitor.device["kitchen"])
    rows = tools.records.rows(table, *conditions, order=table.c.created_utc_ns.desc(), limit=50)
    keys = (
        *("id", "folder", "recipe", "strategy", "display", "phase", "steps", "steps_done", "errors"),
        *("created_utc_ns",),
    )
    return {"recordings": [{key: row[key] for key in keys} for row in rows]}


def choose(tools: Tools, visitor: Asking, device: Device, body: Choose) -> JsonObject:
    """Begin a recording with the chosen recipe frozen; repeating the same operation returns the same recording."""
    begun_before = [op for op in tools.records.ops(body.op_id) if op["kind"] == "recording"]
    if not begun_before:
        planned = None
        if body.session:
            planned = next_sessions.session_named(tools.records, body.session, visitor.pseudonym)
        recipe = tools.shelf.get(planned.recipe if planned else body.recipe)
        keep_version(tools.records, recipe, actor=visitor.actor)
        checklist.keep_form(tools.records)
        if planned:
            chosen = planned.model_dump(include={"strategy", "display", "seed", "order"})
        else:
            chosen = body.model_dump(include={"strategy", "display", "seed", "missing", "flips"})
        content = frozen(recipe, language=body.language, **chosen)
        content |= _beside(tools, recipe, body.language)
        kitchen = device["kitchen"]
        content |= {"folder": _folder(tools, body.folder, kitchen), "kitchen": kitchen}
        begun = {"host_ns": tools.records.now_ns(), "clock_id": tools.intake.clock_id}
        content |= {"device": device["id"], "begun": begun}
        if planned:
            content |= {"session": body.session, "category": planned.category}
        else:
            # The study counts which planned session somebody replaced by their own choice.
            now = datetime.fromtimestamp(tools.records.utc_ns() / 1e9, UTC)
            due = next_sessions.next_of(tools.records, visitor.pseudonym, now)
            if due and due[0].entry.start < now + LATE:
                content["instead_of"] = due[0].session
        with tools.records.changing() as connection:
            if planned:
                next_sessions.take(connection, tools.records, body.session, body.op_id, actor=visitor.actor)
            tools.records.note_within(
                connection, "recording", body.op_id, content, actor=visitor.actor, op_id=body.op_id
            )
        tools.intake.file()
    return bundle(tools, device, body.op_id)


def next_for(tools: Tools, visitor: Asking) -> JsonObject:
    """List the visitor's next sessions in the study's plan, the nearest first."""
    now = datetime.fromtimestamp(tools.records.utc_ns() / 1e9, UTC)
    coming = next_sessions.next_of(tools.records, visitor.pseudonym, now)
    return {
        "sessions": [
            {"session": planned.session, **planned.entry.model_dump(mode="json")} for planned in coming
        ]
    }


def _folder(tools: Collaborators, folder: str | None, kitchen: str) -> str | None:
    if folder is None:
        return None
    if not tools.folders.joinable(folder) or _is_put_in(tools, folder):
        raise NotNow("{folder} is not recording any more; choose without a recording", folder=folder)
    if _live_in(tools, [folder], tables.recording.c.kitchen != kitchen):
        raise NotNow(
            "{folder} is being recorded in another kitchen; choose without a recording", folder=folder
        )
    if _live_in(tools, [folder], COOKED_IN):
        raise NotNow(
            "somebody cooks in {folder} already; finish that first, or choose without a recording",
            folder=folder,
        )
    return folder


def bundle(tools: Tools, device: Device, recording: str) -> JsonObject:
    """Return everything a recording needs offline: steps, hints, timers, lists, all operations."""
    body = tools.intake.recording(recording, kitchen=device["kitchen"])
    version = tools.records.row(tables.recipe, body["graph_hash"])
    if version is None:
        raise NotFound("no recipe version {name!r}; it was not kept", name=body["graph_hash"][:12])
    graph = parse_graph_json(version["graph"], name=body["source"])
    devices = body["folder"] is not None or tools.capture is not None
    ops = tools.records.ops(recording)
    kitchen = device["kitchen"]
    rows = tools.records.rows(tables.device, tables.device.c.kitchen == kitchen)
    return {
        "recording": recording,
        "ops": _shown(ops),
        "places": tools.folders.places(body["folder"]),
        "devices": {row["id"]: row["name"] for row in rows},
        "pause": tools.folders.lab.pause,
        "grace_hours": tools.folders.lab.grace_hours,
        "slate": tools.folders.lab.slate,
        "categories": [category.number for category in CATEGORIES],
        "checklist": {
            "version": checklist.CHECKLIST_VERSION,
            "consent": checklist.CONSENT_VERSION,
            "scopes": list(OFFERED),
            "items": [asdict(item) for item in checklist.items_for(devices=devices)],
        },
        "instructions": {"version": training.INSTRUCTIONS_VERSION},
        "training": training.due(tools.records, body["name"], ops[0]["actor"]),
        **help_for(graph, seed=body["seed"], category=body.get("category", "")),
    }


def _shown(ops: list[Op]) -> list[dict[str, Any]]:
    keys = ("op_id", "n", "device", "seen", "kind", "body", "host_ns", "uncertainty_ns", "actor")
    return [{key: op.get(key) for key in keys} for op in ops]


def ops_since(
    tools: Tools, device: Device, recording: str, after: Annotated[int, Query(ge=0, le=2**53)] = 0
) -> JsonObject:
    """Return the operations of a recording after a number of the log, to see what other devices did."""
    tools.intake.recording(recording, kitchen=device["kitchen"])
    return {"ops": [op for op in _shown(tools.records.ops(recording)) if op["n"] > after]}


def post_ops(
    request: Request,
    tools: Tools,
    visitor: Asking,
    device: Device,
    body: OperationBatch,
    later: BackgroundTasks,
) -> JSONResponse:
    """Log operations; each gets a receipt, the same for every repetition, or a refusal in words."""
    sender = Sender(device, visitor.actor)
    receipts = tools.intake.accept(body.operations, sender=sender, say=words_of(request).refusal)
    if any(getattr(operation, "kind", "") == "withdraw" for operation in body.operations):
        later.add_task(end_withdrawn, tools)
    return JSONResponse({"receipts": receipts}, background=later)


def health(tools: Tools, device: Device, recording: str) -> JsonObject:
    """Report the health of the devices and the reasons; `standalone` if the recording has no devices."""
    return health_of(tools, tools.intake.recording(recording, kitchen=device["kitchen"])["folder"])


def health_of(tools: Collaborators, folder: str | None) -> dict[str, Any]:
    """Report the health of a folder's devices; `unknown` if the report is older than three seconds."""
    if folder is None:
        return {"health": "standalone", "reasons": [], "alarm": "", "folder": None}
    watch = tools.capture or tools.watch
    if watch is None:  # the manifest alone does not show whether the recorder still runs
        live = tools.folders.state(folder) == "recording"
        health = "unknown" if live else tools.folders.state(folder)
        return {"health": health, "reasons": [], "alarm": "", "folder": folder}
    report = watch.report(folder)
    stale = tools.records.now_ns() - report["host_ns"] > FRESH_NS
    health = "unknown" if stale else report["health"]
    return {
        "health": health,
        "seconds": tools.folders.seconds(folder, tools.records.utc_ns())
        if health in ("recording", "problem")
        else None,
        "reasons": report["reasons"],
        "cook": report.get("cook", []),
        "alarm": report.get("alarm", ""),
        "folder": folder,
    }


async def steer(
    request: Request, tools: Tools, visitor: Asking, device: Device, recording: str, body: Control
) -> JsonObject:
    """Start, stop or abort the devices; `reasons` is empty on success.

    Only starting needs a sign-in: an expired one must not keep a recording from ending.
    """
    if body.action == "start":
        await require(request, Access.COOK)
    await run_in_threadpool(tools.intake.require_own, recording, Sender(device, visitor.actor))
    reason = "" if body.action == "start" else body.reason  # only the desk may start without a stream
    steer_devices = partial(steering.steer, actor=visitor.actor, reason=reason)
    return await run_in_threadpool(steer_devices, tools, recording, body.action)


def slate(tools: Tools, visitor: Asking, device: Device, recording: str) -> Response:
    """Return the acoustic slate of the recording; the browser caches it, to end a recording offline."""
    tools.intake.require_own(recording, Sender(device, visitor.actor))
    folder = folder_of(tools.records.ops(recording))
    if folder is None:
        raise NotFound("nothing is being recorded here")
    headers = {"cache-control": "private, max-age=86400"}
    return Response(slate_file(folder), media_type="audio/wav", headers=headers)


def voice(tools: Tools, visitor: Asking, device: Device, recording: str, sha256: Sha256) -> Response:
    """Return the sound of a voice note to the cook."""
    tools.intake.require_own(recording, Sender(device, visitor.actor))
    return sound_answer(tools, recording, sha256)


def sound_answer(tools: Collaborators, recording: str, sha256: str) -> Response:
    """Return a sound with an audio media type and a file name that the app chose."""
    media_type, ending, content = voices.sound(tools.records, recording, sha256)
    disposition = f'attachment; filename="voice-{recording[-12:]}-{sha256[:12]}.{ending}"'
    headers = {"content-disposition": disposition, "x-content-type-options": "nosniff"}
    return Response(content, media_type=media_type, headers=headers)


async def put_voice(
    request: Request, tools: Tools, visitor: Asking, device: Device, recording: str, sha256: Sha256
) -> JsonObject:
    """Save the sound of a voice note under the hash of its bytes."""
    content = await request.body()
    media_type = request.headers.get("content-type", "")[:60]
    await run_in_threadpool(tools.intake.require_own, recording, Sender(device, visitor.actor))
    await run_in_threadpool(keep_voice, tools.records, recording, sha256, media_type, content)
    return {"sha256": sha256, "bytes": len(content)}


ROUTES = [
    Route("/api/v1/recipes", recipes, Access.PERSON),
    Route("/api/v1/recipes/{recipe}/order", order, Access.PERSON),
    Route("/api/v1/recipe-pictures/{sha256}", recipe_picture, Access.PERSON),
    Route("/api/v1/next", next_for, Access.PERSON),
    Route("/api/v1/running", running, Access.PERSON),
    Route("/api/v1/recordings", recordings, Access.PERSON),
    Route("/api/v1/recordings", choose, Access.COOK, "POST"),
    Route("/api/v1/bundle/{recording}", bundle, Access.DEVICE),
    Route("/api/v1/ops/{recording}", ops_since, Access.DEVICE),
    Route("/api/v1/ops", post_ops, Access.DEVICE, "POST"),
    Route("/api/v1/health/{recording}", health, Access.DEVICE),
    Route("/api/v1/capture/{recording}", steer, Access.DEVICE, "POST"),
    Route("/api/v1/slate/{recording}", slate, Access.DEVICE),
    Route("/api/v1/voice/{recording}/{sha256}", voice, Access.DEVICE),
    Route("/api/v1/voice/{recording}/{sha256}", put_voice, Access.DEVICE, "PUT", body=SOUND),
]
