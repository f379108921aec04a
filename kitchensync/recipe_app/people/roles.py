"""Who may reach what. Each route states one `Access`; the guard lets in whoever holds it, and nobody else."""

from __future__ import annotations

from enum import StrEnum

ROLES = ("participant", "operator", "annotator", "researcher", "admin")


class Access(StrEnum):
    """What a request needs to be let in."""

    PUBLIC = "public"
    "Anybody: sign-in pages, static files, the clock, the certificate to install."
    DEVICE = "device"
    "A paired tablet, whoever holds it: what must work when a sign-in has expired."
    PERSON = "person"
    "Somebody who is signed in, on a paired tablet or at the desk."
    COOK = "cook"
    "Somebody who is signed in on a paired tablet."
    OPERATE = "operate"
    "Run sessions: start and stop capture, pair tablets, add participants."
    ANNOTATE = "annotate"
    "Mark steps on films, without seeing which errors were made."
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
"""Which roles hold an access that asks for a person; the desk ones only in a session of the desk."""

DESK = frozenset((Access.OPERATE, Access.ANNOTATE, Access.STUDY, Access.ADMIN))


def allowed(access: Access, *, device: bool, roles: frozenset[str], desk: bool) -> bool:
    """Return whether a request of this device, person and kind of session holds an access."""
    if access is Access.PUBLIC:
        return True
    if access is Access.DEVICE:
        return device
    if access is Access.COOK and not device:
        return False
    return bool(HOLDERS[access] & roles) and (desk or access not in DESK)
