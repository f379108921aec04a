"""Sign-in over HTTP: pairing, signing in and out, and the clock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse

from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.errors import NotAllowed
from kitchensync.recipe_app.exchange.app_withdrawals import FORGOTTEN, note_dump, to_forget
from kitchensync.recipe_app.exchange.dumps import site_of
from kitchensync.recipe_app.people.accounts import Visitor
from kitchensync.recipe_app.people.roles import Access
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import roles_of
from kitchensync.recipe_app.web.bodies import (
    AcceptInvite,
    CardSignIn,
    DeskSignIn,
    PairRequest,
    RecordingsOfTablet,
    SignIn,
)
from kitchensync.recipe_app.web.door.access import (
    DEVICE_COOKIE,
    LOGIN_COOKIE,
    Asking,
    Device,
    JsonObject,
    Route,
    Tools,
)
from kitchensync.recipe_app.web.door.networks import network_of

YEAR_S = 31_536_000  # a tablet stays paired; browsers keep a cookie for 400 days at most


async def time(tools: Tools) -> JSONResponse:
    """Return the capture clock when the request arrived and when the answer left, signed."""
    received_ns = tools.records.now_ns()
    return JSONResponse({"received_host_ns": received_ns, **tools.intake.answer_clock()})


def me(tools: Tools, visitor: Asking) -> JsonObject:
    """Report the tablet and person of this browser, and the CSRF token for requests that change data."""
    device, person = visitor.device, visitor.person
    kitchen = tools.records.row(tables.kitchen, device["kitchen"]) if device else None
    return {
        "device": device and {**_paired(tools, device), "kitchen": kitchen and kitchen["name"]},
        "person": person
        and {"id": person["id"], "pseudonym": person["pseudonym"], "roles": roles_of(person)},
        "desk": visitor.desk,
        "csrf": visitor.csrf,
        "capture": tools.capture is not None,
        "devices": tools.capture.devices(kitchen["name"] if kitchen else "")
        if tools.capture is not None
        else [],
        "site": site_of(tools.records),
        "demo": tools.demo,
    }


def _paired(tools: Collaborators, device: dict[str, Any]) -> dict[str, Any]:
    """Return a tablet with its last sequence number: a browser may lose its storage but keep its cookie."""
    with tools.records.database.reading() as connection:
        return {
            "id": device["id"],
            "name": device["name"],
            "seq": oplog.next_seq(connection, device["id"]) - 1,
            "destroyed": to_forget(tools.records, device["id"]),
        }


def forgotten(tools: Tools, device: Device, body: RecordingsOfTablet) -> JsonObject:
    """Log which destroyed recordings this tablet deleted from its own storage."""
    gone = sorted(set(body.recordings) & set(to_forget(tools.records, device["id"])))
    if gone:
        tools.records.note(FORGOTTEN, device["id"], {"recordings": gone}, actor="")
    return {"recordings": gone}


def dumped(tools: Tools, device: Device, body: RecordingsOfTablet) -> JsonObject:
    """Log which recordings this tablet saved as a dump, which a withdrawal cannot reach."""
    note_dump(tools.records, device["id"], body.recordings)
    return {"recordings": body.recordings}


def pair(request: Request, tools: Tools, visitor: Asking, body: PairRequest) -> JSONResponse:
    """Pair this tablet with a kitchen by the desk's code."""
    with _rate_limited(request, tools, visitor):
        device, token = tools.accounts.pair(body.code, body.name, secure=body.secure)
    return _with_token(request, {"device": device}, DEVICE_COOKIE, token, body.program, YEAR_S)


def people(tools: Tools, device: Device) -> JsonObject:
    """List the people who may sign in on a tablet, by pseudonym."""
    rows = tools.records.rows(tables.person, tables.person.c.active, order=tables.person.c.pseudonym)
    allowed = [row for row in rows if "participant" in roles_of(row) or "operator" in roles_of(row)]
    return {"people": [{"id": row["id"], "pseudonym": row["pseudonym"]} for row in allowed]}


def sign_in(request: Request, tools: Tools, visitor: Asking, device: Device, body: SignIn) -> JSONResponse:
    """Sign in with a PIN on a paired tablet."""
    with _rate_limited(request, tools, visitor, body.person) as origin:
        token = tools.accounts.sign_in(
            body.person, "pin", body.pin, device=device["id"], desk=False, origin=origin
        )
    return _with_token(request, {"person": body.person}, LOGIN_COOKIE, token, body.program)


def sign_in_by_card(
    request: Request, tools: Tools, visitor: Asking, device: Device, body: CardSignIn
) -> JSONResponse:
    """Sign in with a QR card on a paired tablet."""
    with _rate_limited(request, tools, visitor):
        token = tools.accounts.sign_in_by_card(body.card, device=device["id"])
    return _with_token(request, {}, LOGIN_COOKIE, token, body.program)


def sign_in_at_the_desk(request: Request, tools: Tools, visitor: Asking, body: DeskSignIn) -> JSONResponse:
    """Sign in at the desk with name and password."""
    if not tools.accounts.has_desk(visitor.device):
        raise NotAllowed(
            "this browser is paired as a tablet, and the desk is never opened on one: use another browser "
            "or a private window, or remove this tablet there, under Kitchens and tablets"
        )
    name = " ".join(body.pseudonym.split())
    rows = tools.records.rows(tables.person, tables.person.c.pseudonym == name)
    person = rows[0]["id"] if rows else f"nobody called {name}"[:60]
    with _rate_limited(request, tools, visitor, person) as origin:
        token = tools.accounts.sign_in(person, "password", body.password, device="", desk=True, origin=origin)
    return _with_token(request, {"person": person}, LOGIN_COOKIE, token, body.program)


def accept_invite(request: Request, tools: Tools, visitor: Asking, body: AcceptInvite) -> JsonObject:
    """Set a password with the token of an invite."""
    with _rate_limited(request, tools, visitor):
        person = tools.records.row(tables.person, tools.accounts.accept_invite(body.code, body.password))
    if person is None:
        raise BadOperation("the invited person is not there any more")
    return {"pseudonym": person["pseudonym"]}


def sign_out(request: Request, tools: Tools) -> JSONResponse:
    """End the session; the tablet stays paired."""
    tools.accounts.sign_out(
        request.cookies.get(LOGIN_COOKIE) or request.headers.get("x-kitchensync-login", "")
    )
    return _signed_out()


def sign_out_everywhere(tools: Tools, visitor: Asking) -> JSONResponse:
    """End every session of the visitor, including this one."""
    tools.accounts.sign_out_everywhere(visitor.actor)
    return _signed_out()


def _signed_out() -> JSONResponse:
    answer = JSONResponse({})
    answer.delete_cookie(LOGIN_COOKIE)
    return answer


@contextlib.contextmanager
def _rate_limited(
    request: Request, tools: Collaborators, visitor: Visitor, person: str | None = None
) -> Iterator[str]:
    """Count an attempt by its origin, limit concurrent ones, and yield the origin. Raises TooOften."""
    origin = origin_of(request, visitor, person)
    with tools.bucket.attempt(origin, waits=visitor.device is not None or visitor.person is not None):
        yield origin


def origin_of(request: Request, visitor: Visitor, person: str | None) -> str:
    """Return the origin of an attempt: the session of this person, the tablet, or else the network.

    Somebody who is signed in shares no count with others at the same address and cannot be locked out by them.
    """
    if visitor.person and person in (None, visitor.actor):
        return f"session {visitor.csrf}"
    if visitor.device:
        return f"tablet {visitor.device['id']}"
    return f"network {network_of(request.client.host if request.client else '')}"


def _with_token(
    request: Request,
    content: dict[str, Any],
    cookie: str,
    token: str,
    program: bool,
    max_age: int | None = None,
) -> JSONResponse:
    if program:
        return JSONResponse({**content, "token": token})
    answer = JSONResponse(content)
    secure = request.url.scheme == "https"
    answer.set_cookie(cookie, token, httponly=True, samesite="strict", secure=secure, max_age=max_age)
    return answer


ROUTES = [
    Route("/api/v1/time", time, Access.PUBLIC),
    Route("/api/v1/me", me, Access.PUBLIC),
    Route("/api/v1/pair", pair, Access.PUBLIC, "POST"),
    Route("/api/v1/people", people, Access.DEVICE),
    Route("/api/v1/sign-in", sign_in, Access.DEVICE, "POST"),
    Route("/api/v1/forgotten", forgotten, Access.DEVICE, "POST"),
    Route("/api/v1/dumped", dumped, Access.DEVICE, "POST"),
    Route("/api/v1/sign-in/card", sign_in_by_card, Access.DEVICE, "POST"),
    Route("/api/v1/desk/sign-in", sign_in_at_the_desk, Access.PUBLIC, "POST"),
    Route("/api/v1/invite", accept_invite, Access.PUBLIC, "POST"),
    Route("/api/v1/sign-out", sign_out, Access.PERSON, "POST"),
    Route("/api/v1/sign-out/everywhere", sign_out_everywhere, Access.PERSON, "POST"),
]
