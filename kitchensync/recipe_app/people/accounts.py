"""Accounts: invites, pairing tablets, signing in with PIN, password or card; and the visitor of a request."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.errors import NameTaken, NotAllowed
from kitchensync.recipe_app.people import attempts, secrets
from kitchensync.recipe_app.people.roles import ROLES, Access, allowed
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords, is_admin, new_id, roles_of

HOUR_NS = 3_600_000_000_000
INVITE_NS = 72 * HOUR_NS
PAIRING_NS = HOUR_NS // 4  # a pairing code has only 40 bits, since people type it
LOGIN_NS = 12 * HOUR_NS
CARD_NS = 90 * 24 * HOUR_NS
NEVER_NS = 2**63 - 1  # the largest time: all are int64
_UNSEEN = ("Cc", "Cf", "Cs")
"""Categories of Unicode: control, format (direction, zero width), lone surrogates."""

# Letters, casefolded, that most fonts draw like a Latin one, small or capital: Greek and others, then Cyrillic.
_AS_LATIN = str.maketrans(
    "\u0131\u0261\u03b1\u03b2\u03b3\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03c9"
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455"
    "\u0456\u0458\u0461\u0475\u04bb\u04cf\u0501\u051b",
    "igabyeznikmvoptuxwabekmhopctyxsijwvhldq",
)


@dataclass(frozen=True)
class Visitor:
    """The origin of a request: a paired device, a signed-in person, both or neither."""

    device: dict[str, Any] | None = None
    person: dict[str, Any] | None = None
    desk: bool = False
    csrf: str = ""
    until_utc_ns: int = NEVER_NS
    "Expiry of the sign-in."

    @property
    def roles(self) -> frozenset[str]:
        """The person's roles."""
        return frozenset(roles_of(self.person)) if self.person else frozenset()

    @property
    def actor(self) -> str:
        """The person's id, for the log."""
        return str(self.person["id"]) if self.person else ""

    @property
    def pseudonym(self) -> str:
        """The person's pseudonym, for recordings and versions."""
        return str(self.person["pseudonym"]) if self.person else ""

    def may(self, access: Access) -> bool:
        """Return whether this request has an access."""
        return allowed(access, device=self.device is not None, roles=self.roles, desk=self.desk)


class Accounts:
    """People, devices, secrets and sessions."""

    def __init__(self, records: AppRecords, *, demo: bool = False) -> None:
        self.records, self.demo = records, demo

    # people

    def add_person(self, pseudonym: str, roles: list[str], *, actor: str) -> str:
        """Add somebody; return the id. Raises BadOperation, NameTaken."""
        pseudonym = check_name(pseudonym)
        _check_roles(roles)
        person = new_id(self.records.utc_ns())
        body = {"pseudonym": pseudonym, "roles": sorted(set(roles)), "active": True}
        with self.records.changing() as connection:
            taken = connection.execute(select(tables.person.c.pseudonym)).scalars()
            mine = _skeleton(pseudonym)
            if other := next((other for other in taken if _skeleton(other) == mine), None):
                raise NameTaken(
                    "there is a person called {name} already; choose another pseudonym", name=other
                )
            self.records.note_within(connection, "person", person, body, actor=actor)
        return person

    def change_person(self, person: str, changes: dict[str, Any], *, actor: str) -> None:
        """Change roles or whether somebody may still sign in, and end their sessions. Raises BadOperation."""
        _check_roles(changes.get("roles", ROLES))
        with self.records.changing() as connection:
            people = {row.id: row._asdict() for row in connection.execute(select(tables.person))}
            if person not in people:
                raise BadOperation("there is no such person")
            row = people.pop(person)
            body = {"pseudonym": row["pseudonym"], "roles": roles_of(row), "active": row["active"], **changes}
            stays = "admin" in body["roles"] and body["active"]
            if is_admin(row) and not stays and not any(map(is_admin, people.values())):
                raise BadOperation("this is the last admin; make somebody else an admin first")
            self.records.note_within(connection, "person", person, body, actor=actor)
            _end_sessions(connection, person)

    def sign_out_everywhere(self, person: str) -> None:
        """End every session of a person, on tablets and at the desk. Raises BadOperation."""
        self._require_person(person)
        with self.records.changing() as connection:
            _end_sessions(connection, person)

    def _require_person(self, person: str) -> None:
        if self.records.row(tables.person, person) is None:
            raise BadOperation("there is no such person")

    def set_pin(self, person: str, pin: str, *, actor: str) -> None:
        """Set a participant's PIN. Raises BadOperation."""
        secrets.check_pin(pin)
        self._require_person(person)
        self._set_secret(person, "pin", secrets.slow_hash(pin), actor)

    def new_card(self, person: str, *, actor: str) -> str:
        """Make a QR card to sign in for 90 days, replacing an earlier card; return its token."""
        self._require_person(person)
        token = secrets.new_card(self.records.utc_ns() + CARD_NS)
        self._set_secret(person, "card", secrets.fast_hash(token), actor)
        return token

    def _set_secret(self, person: str, kind: str, hashed: str, actor: str) -> None:
        with self.records.changing() as connection:
            _put_secret(connection, person, kind, hashed)
            self.records.note_within(connection, "secret", person, {"set": kind}, actor=actor)

    # codes

    def invite(self, person: str, *, actor: str) -> str:
        """Make a single-use invite to set a password, valid for 72 hours, and end sessions; return its token."""
        self._require_person(person)
        with self.records.changing() as connection:
            _end_sessions(connection, person)
            return self._new_ticket(connection, "invite", person, secrets.new_token(), INVITE_NS, actor)

    def pairing_code(self, kitchen: str, *, actor: str) -> str:
        """Make a single-use code that pairs one tablet with a kitchen, valid for 15 minutes."""
        if self.records.row(tables.kitchen, kitchen) is None:
            raise BadOperation("there is no such kitchen")
        with self.records.changing() as connection:
            return self._new_ticket(connection, "pair", kitchen, secrets.new_code(), PAIRING_NS, actor)

    def _new_ticket(
        self, connection: Connection, purpose: str, subject: str, code: str, valid_ns: int, actor: str
    ) -> str:
        expires = self.records.utc_ns() + valid_ns
        values = {"purpose": purpose, "subject": subject, "expires_utc_ns": expires, "used": False}
        connection.execute(insert(tables.ticket).values(code_hash=secrets.fast_hash(code), **values))
        self.records.note_within(connection, "code", subject, {"purpose": purpose}, actor=actor)
        return code

    def _use_ticket(self, connection: Connection, purpose: str, code: str) -> str:
        ticket, hashed = tables.ticket, secrets.fast_hash(code)
        row = connection.execute(select(ticket).where(ticket.c.code_hash == hashed)).first()
        if row is None or row.purpose != purpose or row.used or row.expires_utc_ns < self.records.utc_ns():
            raise NotAllowed("this code is wrong, used or too old; ask for a new one")
        connection.execute(update(ticket).where(ticket.c.code_hash == hashed).values(used=True))
        return str(row.subject)

    def accept_invite(self, code: str, password: str) -> str:
        """Set the password of the invited person; return their id. Raises NotAllowed, BadOperation."""
        if not secrets.SHORTEST_PASSWORD <= len(password) <= 200:
            raise BadOperation("a password has at least {least} characters", least=secrets.SHORTEST_PASSWORD)
        hashed = secrets.slow_hash(password)
        with self.records.changing() as connection:
            person = self._use_ticket(connection, "invite", code)
            _put_secret(connection, person, "password", hashed)
            self.records.note_within(connection, "secret", person, {"set": "password"}, actor=person)
        return person

    # kitchens and devices

    def add_kitchen(self, name: str, *, actor: str) -> str:
        """Add a kitchen; return its id. Raises BadOperation, NameTaken."""
        name = check_name(name)
        kitchen = new_id(self.records.utc_ns())
        with self.records.changing() as connection:
            if connection.execute(select(tables.kitchen).where(tables.kitchen.c.name == name)).first():
                raise NameTaken("a kitchen needs a name that no other has")
            self.records.note_within(connection, "kitchen", kitchen, {"name": name}, actor=actor)
        return kitchen

    def pair(self, code: str, name: str, *, secure: bool | None) -> tuple[str, str]:
        """Pair a tablet with the code's kitchen; return its id and its token. Raises NotAllowed, BadOperation."""
        name = check_name(name)
        device, token = new_id(self.records.utc_ns()), secrets.new_token()
        with self.records.changing() as connection:
            kitchen = self._use_ticket(connection, "pair", code)
            body = {"name": name, "kitchen": kitchen, "active": True, "secure": secure}
            self.records.note_within(connection, "device", device, body, actor="")
            key = {"device": device, "token_hash": secrets.fast_hash(token)}
            connection.execute(insert(tables.device_key).values(key))
        return device, token

    def remove_device(self, device: str, *, actor: str) -> None:
        """Revoke a tablet's key. Raises BadOperation."""
        row = self.records.row(tables.device, device)
        if row is None:
            raise BadOperation("there is no such device")
        body = {name: row[name] for name in ("name", "kitchen", "secure")} | {"active": False}
        with self.records.changing() as connection:
            self.records.note_within(connection, "device", device, body, actor=actor)
            connection.execute(delete(tables.device_key).where(tables.device_key.c.device == device))
            connection.execute(delete(tables.login).where(tables.login.c.device == device))

    # sessions

    def sign_in(
        self, person: str, kind: str, secret: str, *, device: str, desk: bool, origin: str = ""
    ) -> str:
        """Check a PIN or password and begin a session; return its token. Raises NotAllowed, TooOften.

        `origin` is where the attempt comes from, by default the device: only that origin waits after wrong secrets.
        """
        key = f"{kind} {person} {origin or device}"
        # Count before the slow hash: other attempts may run meanwhile.
        with self.records.database.writing() as connection:
            remaining = attempts.count(connection, key, utc_ns=self.records.utc_ns())
            stored = connection.execute(_secret_of(person, kind)).scalar()
        row = self.records.row(tables.person, person)
        if not secrets.matches(stored, secret) or row is None or not row["active"]:
            if kind == "pin":
                raise NotAllowed("the PIN is not right; tries left: {left}", left=remaining)
            raise NotAllowed("the name or password is not right")
        with self.records.changing() as connection:
            if connection.execute(_secret_of(person, kind)).scalar() != stored:  # replaced meanwhile
                raise NotAllowed("the name or password is not right")
            attempts.succeeded(connection, key)
            return self._begin(connection, person, device, desk=desk)

    def sign_in_by_card(self, token: str, *, device: str) -> str:
        """Begin a session by a QR card; return its token. Raises NotAllowed."""
        credential = tables.credential
        card = (credential.c.kind == "card", credential.c.hash == secrets.fast_hash(token))
        with self.records.changing() as connection:
            person = connection.execute(select(credential.c.person).where(*card)).scalar()
            row = connection.execute(select(tables.person).where(tables.person.c.id == person)).first()
            valid = secrets.card_is_valid(token, self.records.utc_ns())
            if row is None or not row.active or not valid:
                raise NotAllowed("this card is not valid any more; ask for a new one")
            return self._begin(connection, str(person), device, desk=False)

    def _begin(self, connection: Connection, person: str, device: str, *, desk: bool) -> str:
        token, now = secrets.new_token(), self.records.utc_ns()
        connection.execute(delete(tables.login).where(tables.login.c.expires_utc_ns < now))
        values = {"person": person, "device": device, "desk": desk}
        connection.execute(
            insert(tables.login).values(
                token_hash=secrets.fast_hash(token), expires_utc_ns=now + LOGIN_NS, **values
            )
        )
        return token

    def sign_out(self, token: str) -> None:
        """End a session."""
        with self.records.changing() as connection:
            login = tables.login
            connection.execute(delete(login).where(login.c.token_hash == secrets.fast_hash(token)))

    def visitor(self, *, device_token: str, login_token: str) -> Visitor:
        """Return the visitor of a request; wrong and expired tokens count as none."""
        with self.records.database.reading() as connection:
            key, login, device, person = tables.device_key, tables.login, None, tables.person
            if device_token:
                mine = (key.c.token_hash == secrets.fast_hash(device_token), tables.device.c.active)
                query = select(tables.device).join(key, key.c.device == tables.device.c.id).where(*mine)
                row = connection.execute(query).first()
                device = row._asdict() if row else None
            signed = select(login).where(login.c.token_hash == secrets.fast_hash(login_token))
            held = connection.execute(signed).first() if login_token else None
            if held is None or held.expires_utc_ns < self.records.utc_ns():
                return Visitor(device=device)
            is_here = device is not None and bool(held.device == device["id"])
            if not (self.has_desk(device) if held.desk else is_here):
                return Visitor(device=device)
            who = connection.execute(
                select(person).where(person.c.id == held.person, person.c.active)
            ).first()
            if who is None:
                return Visitor(device=device)
            csrf = secrets.second_token(login_token)
            return Visitor(device, who._asdict(), held.desk, csrf, held.expires_utc_ns)

    def has_desk(self, device: dict[str, Any] | None) -> bool:
        """Return whether the desk may be opened here: not on a tablet, except in the guided tour with one browser."""
        return device is None or self.demo


def _secret_of(person: str, kind: str) -> Any:
    credential = tables.credential
    return select(credential.c.hash).where(credential.c.person == person, credential.c.kind == kind)


def _check_roles(roles: Collection[str]) -> None:
    if not roles or set(roles) - set(ROLES):
        raise BadOperation("roles are {roles}; choose at least one", roles=ROLES)


def _end_sessions(connection: Connection, person: str) -> None:
    connection.execute(delete(tables.login).where(tables.login.c.person == person))


def _put_secret(connection: Connection, person: str, kind: str, hashed: str) -> None:
    """Replace a secret; a new PIN or password ends the sessions begun with the old one."""
    credential = tables.credential
    same = (credential.c.person == person, credential.c.kind == kind)
    connection.execute(delete(credential).where(*same))
    connection.execute(insert(credential).values(person=person, kind=kind, hash=hashed))
    if kind != "card":  # its owner may be cooking; after a lost card there is *Sign out everywhere*
        _end_sessions(connection, person)


def check_name(name: str) -> str:
    """Return a name with its spaces collapsed. Raises BadOperation."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= 40:
        raise BadOperation("a name has 1 to 40 characters")
    if any(unicodedata.category(letter) in _UNSEEN for letter in name):
        raise BadOperation("a name has no control characters and no invisible ones; type it anew")
    return name


def _skeleton(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().translate(_AS_LATIN)
