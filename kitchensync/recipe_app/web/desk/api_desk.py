"""The desk over JSON: people, kitchens, tablets, corrections."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import BackgroundTasks, Request
from fastapi.responses import Response

from kitchensync.operations.errors import BadOperation
from kitchensync.operations.operation_kinds import DESK_KINDS, checked
from kitchensync.recipe_app.cooking import steering
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.cooking.withdrawals import end_withdrawn
from kitchensync.recipe_app.errors import NotAllowed
from kitchensync.recipe_app.exchange import published
from kitchensync.recipe_app.exchange.dumps import read_dump, take_in
from kitchensync.recipe_app.exchange.published_graphs import shelve_graphs
from kitchensync.recipe_app.people.accounts import Visitor
from kitchensync.recipe_app.people.pseudonyms import check_pseudonym
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.people.secrets import check_pin
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import roles_of
from kitchensync.recipe_app.web import bodies
from kitchensync.recipe_app.web.desk.pages import attachment
from kitchensync.recipe_app.web.door.access import Asking, JsonObject, Route, Tools
from kitchensync.recipe_app.web.door.request_bodies import RequestBody
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.recipe_app.web.tablet.api_tablet import Sha256, sound_answer
from kitchensync.task_graphs.errors import NotFound

TEXTS = RequestBody(64 << 20, at_once=1, strings=True)
"""A folder of annotations or a tablet's dump."""


def _require_rank(
    tools: Collaborators, visitor: Visitor, roles: list[str], person: str | None = None
) -> None:
    """Require an admin for people with more roles than `participant`. Raises NotAllowed, NotFound."""
    held = set(roles)
    if person is not None:
        row = tools.records.row(tables.person, person)
        if row is None:
            raise NotFound("no person {name!r}; look at the list of people", name=person[:40])
        held |= set(roles_of(row))
    if held - {"participant"} and "admin" not in visitor.roles:
        raise NotAllowed("only an admin may do this to somebody with more roles than participant")


def add_person(tools: Tools, visitor: Asking, body: bodies.NewPerson) -> JsonObject:
    """Add somebody by a pseudonym, with an invite to set a password if they get a role at the desk."""
    _require_rank(tools, visitor, list(body.roles))
    if body.pin:
        check_pin(body.pin)  # before the person is added: a bad PIN must not leave a person without one
    person = tools.accounts.add_person(check_pseudonym(body.pseudonym), list(body.roles), actor=visitor.actor)
    if body.pin:
        tools.accounts.set_pin(person, body.pin, actor=visitor.actor)
    invite = tools.accounts.invite(person, actor=visitor.actor) if set(body.roles) - {"participant"} else None
    return {"person": person, "invite": invite}


def change_person(tools: Tools, visitor: Asking, person: str, body: bodies.ChangePerson) -> JsonObject:
    """Change the roles, the PIN, or whether somebody may sign in."""
    _require_rank(tools, visitor, list(body.roles or []), person)
    changes = {
        name: value for name, value in (("roles", body.roles), ("active", body.active)) if value is not None
    }
    if visitor.actor == person and (body.active is False or (body.roles and "admin" not in body.roles)):
        raise BadOperation("nobody takes their own admin role away; ask another admin")
    if changes:
        tools.accounts.change_person(person, changes, actor=visitor.actor)
    if body.pin is not None:
        tools.accounts.set_pin(person, body.pin, actor=visitor.actor)
    return {"person": person}


def new_card(tools: Tools, visitor: Asking, person: str) -> JsonObject:
    """Make a QR card that signs somebody in; an earlier card is no longer valid."""
    _require_rank(tools, visitor, [], person)
    return {"card": tools.accounts.new_card(person, actor=visitor.actor)}


def new_invite(tools: Tools, visitor: Asking, person: str) -> JsonObject:
    """Make an invite to set a password, valid once within 72 hours."""
    return {"invite": tools.accounts.invite(person, actor=visitor.actor)}


def sign_out(tools: Tools, person: str) -> JsonObject:
    """End every session of somebody, on tablets and at the desk."""
    tools.accounts.sign_out_everywhere(person)
    return {"person": person}


def add_kitchen(tools: Tools, visitor: Asking, body: bodies.NewKitchen) -> JsonObject:
    """Add a kitchen."""
    return {"kitchen": tools.accounts.add_kitchen(body.name, actor=visitor.actor)}


def new_pairing_code(tools: Tools, visitor: Asking, body: bodies.PairingCode) -> JsonObject:
    """Make a code that pairs one tablet with a kitchen, valid once within 15 minutes."""
    return {"code": tools.accounts.pairing_code(body.kitchen, actor=visitor.actor)}


def remove_device(tools: Tools, visitor: Asking, device: str) -> JsonObject:
    """Revoke a tablet's access; data it has not sent stays on it."""
    tools.accounts.remove_device(device, actor=visitor.actor)
    return {"device": device}


def correct(
    tools: Tools, visitor: Asking, recording: str, body: bodies.DeskOperation, later: BackgroundTasks
) -> JsonObject:
    """Correct a recording after the fact; both versions stay in the log."""
    content = tools.intake.recording(recording, kitchen=None)
    fields = checked(DESK_KINDS[body.kind], body.kind, body.body)
    node = fields.get("fields", {}).get("node")
    if node is not None and str(node) not in content["steps"]:
        raise BadOperation("step {node} is not in {title}", node=str(node), title=content["title"])
    with tools.records.changing() as connection:
        stored = tools.records.note_within(
            connection, body.kind, recording, fields, actor=visitor.actor, op_id=body.op_id, seen=body.seen
        )
    tools.intake.file()
    if body.kind == "withdraw":
        later.add_task(end_withdrawn, tools)
    return {"n": stored["n"]}


def take_dump(
    request: Request, tools: Tools, visitor: Asking, body: bodies.TabletDump, later: BackgroundTasks
) -> JsonObject:
    """Import what a tablet saved as a file; importing it twice changes nothing."""
    dump = read_dump(body.text, "dump")
    later.add_task(end_withdrawn, tools)
    say, corrects = words_of(request).refusal, visitor.may(Access.STUDY)
    actor = visitor.actor
    return asdict(take_in(dump, tools.records, tools.intake, actor=actor, corrects=corrects, say=say))


def add_collection(tools: Tools, visitor: Asking, body: bodies.NewCollection) -> JsonObject:
    """Import a folder of published annotations; importing it twice changes nothing."""
    taken = published.take_in(body.files, body.name, tools.records, actor=visitor.actor)
    return {**taken, **shelve_graphs(body.files, tools.records, tools.shelf, actor=visitor.actor)}


def export_collection(tools: Tools, collection: str) -> Response:
    """Download a collection as a zip file: byte for byte as imported, except for corrections."""
    packed = published.as_zip(published.give_back(collection, tools.records).files)
    return attachment(packed, "application/zip", "annotations.zip")


def steer(tools: Tools, visitor: Asking, recording: str, body: bodies.DeskControl) -> JsonObject:
    """Start, stop or abort the devices of a recording from the desk, or continue without them."""
    tools.intake.recording(recording, kitchen=None)
    return steering.steer(tools, recording, body.action, actor=visitor.actor, reason=body.reason)


def override(tools: Tools, visitor: Asking, recording: str, body: bodies.Override) -> JsonObject:
    """Let a recording begin with open points of the checklist; the reason is logged."""
    tools.intake.recording(recording, kitchen=None)
    return steering.override(tools, recording, reason=body.reason, actor=visitor.actor, op_id=body.op_id)


def release(tools: Tools, visitor: Asking, recording: str) -> JsonObject:
    """Release a recording from its tablet; the next tablet that opens it gets it."""
    tools.intake.recording(recording, kitchen=None)
    tools.records.note("release", recording, {}, actor=visitor.actor)
    tools.intake.file()
    return {"recording": recording}


def state(tools: Tools, recording: str) -> JsonObject:
    """Return the whole state of a recording; of a withdrawn one only that it is withdrawn."""
    state = tools.records.state(recording)
    return {"phase": state["phase"], "withdrawn": True} if state["withdrawn"] else state


def voice(tools: Tools, recording: str, sha256: Sha256) -> Response:
    """Return the audio of a voice note with an audio media type and a name that the app chose."""
    return sound_answer(tools, recording, sha256)


ROUTES = [
    Route("/api/v1/desk/people", add_person, Access.OPERATE, "POST"),
    Route("/api/v1/desk/people/{person}", change_person, Access.OPERATE, "POST"),
    Route("/api/v1/desk/people/{person}/card", new_card, Access.OPERATE, "POST"),
    Route("/api/v1/desk/people/{person}/invite", new_invite, Access.ADMIN, "POST"),
    Route("/api/v1/desk/people/{person}/sign-out", sign_out, Access.ADMIN, "POST"),
    Route("/api/v1/desk/kitchens", add_kitchen, Access.OPERATE, "POST"),
    Route("/api/v1/desk/pairing-codes", new_pairing_code, Access.OPERATE, "POST"),
    Route("/api/v1/desk/devices/{device}/remove", remove_device, Access.OPERATE, "POST"),
    Route("/api/v1/desk/collections", add_collection, Access.STUDY, "POST", body=TEXTS),
    Route("/api/v1/desk/collections/{collection}/export", export_collection, Access.STUDY),
    Route("/api/v1/desk/dumps", take_dump, Access.OPERATE, "POST", body=TEXTS),
    Route("/api/v1/desk/recordings/{recording}", state, Access.STUDY),
    Route("/api/v1/desk/recordings/{recording}/voice/{sha256}", voice, Access.STUDY),
    Route("/api/v1/desk/recordings/{recording}/capture", steer, Access.OPERATE, "POST"),
    Route("/api/v1/desk/recordings/{recording}/override", override, Access.ADMIN, "POST"),
    Route("/api/v1/desk/recordings/{recording}/release", release, Access.OPERATE, "POST"),
    Route("/api/v1/desk/recordings/{recording}/corrections", correct, Access.STUDY, "POST"),
]
