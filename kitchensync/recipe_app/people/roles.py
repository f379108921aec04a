"""Roles and accesses. Each route states one `Access`, which a request must have."""

from __future__ import annotations

from enum import StrEnum

ROLES = ("participant", "operator", "annotator", "researcher", "admin")


class Access(StrEnum):
    """The access that a route requires."""

    PUBLIC = "public"
    "Anybody: sign-in pages, static files, the clock, the certificate to install."
    DEVICE = "device"
    "A paired tablet with or without a person, for what must work when a sign-in has expired."
    PERSON = "person"
    "Somebody who is signed in, on a paired tablet or at the desk."
    COOK = "cook"
    "Somebody who is signed in on a paired tablet."
    OPERATE = "operate"
    "Run sessions: start and stop capture, pair tablets, add participants."
    ANNOTATE = "annotate"
    "Mark steps on videos, without seeing which errors were made."
    STUDY = "study"
    "Read every recording, correct errors, export."
    ADMIN = "admin"
    "People with roles, the log of everything, the doctor's details."


HOLDERS: dict[Access, frozenset[str]] = {
    Access.PERSON: frozenset(ROLES),
    Access.COOK: frozenset(ROLES),
    Access.OPERATE: frozenset(("operator", "researcher", "admin")),
    Access.ANNOTATE: frozenset(("annotator", "researcher", "admin")),
    Access.STUDY: frozenset(("researcher", "admin")),
    Access.ADMIN: frozenset(("admin",)),
}
"""Roles with each access that needs a person; those in `DESK` only in a session at the desk."""

DESK = frozenset((Access.OPERATE, Access.ANNOTATE, Access.STUDY, Access.ADMIN))


def allowed(access: Access, *, device: bool, roles: frozenset[str], desk: bool) -> bool:
    """Return whether a request with this device, roles and kind of session has an access."""
    if access is Access.PUBLIC:
        return True
    if access is Access.DEVICE:
        return device
    if access is Access.COOK and not device:
        return False
    return bool(HOLDERS[access] & roles) and (desk or access not in DESK)
