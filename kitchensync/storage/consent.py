"""Check whether a recording may be used for a purpose: the only module that knows what consent allows."""

from __future__ import annotations

import time
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

from kitchensync.storage.copies.derived import asked
from kitchensync.storage.errors import NotPermitted
from kitchensync.storage.life import usable_manifest
from kitchensync.storage.manifest import Manifest, edit_manifest, read_manifest
from kitchensync.storage.names import MANIFEST

NONE = "none"
"""Value in a manifest without consent."""


OVERRIDES: Final = "consent_overrides"
"""Key of a manifest: purposes for which it was used without consent, with reason and first time."""


class Scope(StrEnum):
    """What a participant can agree to, independently of each other."""

    ANNOTATE = "annotate"
    RELEASE_RAW = "release_raw"
    RELEASE_FACES_HIDDEN = "release_faces_hidden"
    THIRD_PARTY_PROCESSING = "third_party_processing"


OFFERED = tuple(scope for scope in Scope if scope != Scope.RELEASE_FACES_HIDDEN)
"""Scopes in forms: no release can hide faces yet. `kitchensync consent` accepts the other scope from paper forms."""


class Purpose(StrEnum):
    """The use of a recording. Safety copies and looking need no scope, but are blocked by a withdrawal."""

    COPY_TO_OWN_STORE = "copy_to_own_store"
    LOOK = "look"
    ANNOTATE = "annotate"
    RELEASE_RAW = "release_raw"
    RELEASE_FACES_HIDDEN = "release_faces_hidden"
    THIRD_PARTY_PROCESSING = "third_party_processing"


FREE = frozenset((Purpose.COPY_TO_OWN_STORE, Purpose.LOOK))


def require_consent(
    recording: Path, purpose: Purpose, *, without_consent: str = "", or_else: str = ""
) -> Manifest:
    """Return the manifest of a recording that may be used for a purpose.

    `without_consent` is the reason for use without consent; before data leaves, the caller stores it with
    `note_override`. It does not override a withdrawal. `or_else` is an alternative, for the error message. Raises
    NotARecording, Withdrawn, NotPermitted.
    """
    manifest = usable_manifest(recording)
    if purpose == Purpose.RELEASE_FACES_HIDDEN:
        why = f"`{purpose}` is not possible: no release can hide faces yet"
        raise NotPermitted(recording, why, do="ask the participant for `release_raw`")
    why = why_not(manifest, purpose)
    if why and not without_consent:
        raise NotPermitted(recording, why, or_else)
    if purpose != Purpose.COPY_TO_OWN_STORE:  # copies have their own list
        asked(recording)
    return manifest


def note_override(recording: Path, purpose: Purpose, reason: str) -> None:
    """Store why a recording is used without consent, before data leaves. Raises NotARecording, OSError."""
    if not reason or not why_not(read_manifest(recording), purpose):
        return
    with edit_manifest(recording) as manifest:
        overrides = manifest.setdefault(OVERRIDES, [])
        if not any((entry["purpose"], entry["reason"]) == (purpose, reason) for entry in overrides):
            overrides.append({"purpose": str(purpose), "reason": reason, "utc_ns": time.time_ns()})


def require_consent_for_file(path: Path, purpose: Purpose) -> Manifest | None:
    """Check the recording that contains a file, as `require_consent`; return None if there is none."""
    recording = next((folder for folder in path.parents if (folder / MANIFEST).is_file()), None)
    return require_consent(recording, purpose) if recording else None


class StillPermitted:
    """Checks during a long copy whether the recording was withdrawn; created before the first consent check."""

    def __init__(self, recording: Path) -> None:
        """Remember the state of the manifest."""
        self._recording, self._checked = recording, self._stamp(recording)

    def check(self) -> None:
        """Raise Withdrawn if the recording was withdrawn, NotARecording."""
        stamp = self._stamp(self._recording)
        if stamp != self._checked:
            usable_manifest(self._recording)
            self._checked = stamp

    @staticmethod
    def _stamp(recording: Path) -> tuple[int, int] | None:
        try:
            status = (recording / MANIFEST).stat()
        except OSError:
            return None  # `require_consent` reports it
        return status.st_ino, status.st_mtime_ns


def why_not(manifest: Manifest, purpose: Purpose) -> str:
    """Return why the consent of a recording does not allow a purpose; empty if it does."""
    if purpose in FREE or manifest.get("virtual") is True:
        return ""
    scope, scopes = Scope(purpose), manifest.get("consent_scopes", ())
    if manifest.get("consent", NONE) == NONE:
        return f"nobody agreed to `{scope}`"
    if scope not in scopes:
        hidden = Scope.RELEASE_FACES_HIDDEN
        more = f", only `{hidden}`, and no release can hide faces yet" if hidden in scopes else ""
        return f"the consent {manifest['consent']} does not hold `{scope}`{more}"
    return ""


def consent_in_words(manifest: Manifest) -> str:
    """Return the consent of a participant as text."""
    reference = str(manifest.get("consent") or NONE)
    if manifest.get("virtual") is True:
        return "not needed: a virtual kitchen, there is nobody in it"
    if reference == NONE:
        return "none: it may be looked at and copied to your own stores, nothing else"
    return f"{reference}: {', '.join(manifest.get('consent_scopes') or ()) or 'to be recorded, nothing else'}"


def overrides_in_words(manifest: Manifest) -> str:
    """Return the uses of a recording without consent, with their reasons, as text."""
    return "; ".join(f"{entry['purpose']}: {entry['reason']}" for entry in manifest.get(OVERRIDES, ()))


def give_consent(recording: Path, reference: str, scopes: Iterable[Scope], *, by: str) -> Manifest:
    """Enter a consent into a manifest; return the manifest. Raises NotARecording, Withdrawn."""
    usable_manifest(recording)
    with edit_manifest(recording) as manifest:
        enter_consent(manifest, reference, scopes, by=by, utc_ns=time.time_ns())
    return manifest


def enter_consent(
    manifest: Manifest, reference: str, scopes: Iterable[str], *, by: str, utc_ns: int, **facts: str
) -> None:
    """Enter a consent, or `none`, into a manifest; earlier consents stay in its history.

    `facts` are further facts of the form: `version`, `language` in which it was read, `person`.
    """
    scope_names = sorted(str(scope) for scope in scopes)
    entry = {"reference": reference, "scopes": scope_names, "by": by, "utc_ns": utc_ns, **facts}
    history = manifest.setdefault("consent_history", [])
    if entry not in history:
        history.append(entry)
    manifest |= {
        "consent": reference,
        "consent_scopes": scope_names,
        "consent_version": facts.get("version", ""),
    }
