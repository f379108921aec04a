"""Whether a recording may be used for something: the one place that knows what consent allows."""

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
"""What stands in a manifest where nobody agreed to anything."""


OVERRIDES: Final = "consent_overrides"
"""Key of a manifest: for what it was used without consent, why, and when first."""


class Scope(StrEnum):
    """What a participant can agree to, each by itself."""

    ANNOTATE = "annotate"
    RELEASE_RAW = "release_raw"
    RELEASE_FACES_HIDDEN = "release_faces_hidden"
    THIRD_PARTY_PROCESSING = "third_party_processing"


OFFERED = tuple(scope for scope in Scope if scope != Scope.RELEASE_FACES_HIDDEN)
"""What forms offer: no release can hide faces yet. `kitchensync consent` takes the other from forms on paper."""


class Purpose(StrEnum):
    """What is done with a recording. Safety copies and looking need no scope, only that nobody withdrew."""

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
    """Return the manifest of a recording that may be used so. Raises NotARecording, Withdrawn, NotPermitted.

    `without_consent` is why it is used although nobody agreed; whoever lets something out keeps it, with
    `note_override`. A withdrawal holds.
    `or_else` is what else can be done, for the refusal.
    """
    manifest = usable_manifest(recording)
    if purpose == Purpose.RELEASE_FACES_HIDDEN:
        why = f"`{purpose}` is not possible: no release can hide faces yet"
        raise NotPermitted(recording, why, do="ask the participant for `release_raw`")
    why = why_not(manifest, purpose)
    if why and not without_consent:
        raise NotPermitted(recording, why, or_else)
    if purpose != Purpose.COPY_TO_OWN_STORE:  # those stand in the list of copies
        asked(recording)
    return manifest


def note_override(recording: Path, purpose: Purpose, reason: str) -> None:
    """Keep why a recording is used though nobody agreed, before a byte leaves. Raises NotARecording, OSError."""
    if not reason or not why_not(read_manifest(recording), purpose):
        return
    with edit_manifest(recording) as manifest:
        kept = manifest.setdefault(OVERRIDES, [])
        if not any((one["purpose"], one["reason"]) == (purpose, reason) for one in kept):
            kept.append({"purpose": str(purpose), "reason": reason, "utc_ns": time.time_ns()})


def require_consent_for_file(path: Path, purpose: Purpose) -> Manifest | None:
    """Check the recording that a file lies in, return its manifest; None outside. Raises as for that."""
    recording = next((folder for folder in path.parents if (folder / MANIFEST).is_file()), None)
    return require_consent(recording, purpose) if recording else None


class StillPermitted:
    """Tells whoever copies for long that the recording was withdrawn meanwhile; made before the gate is asked."""

    def __init__(self, recording: Path) -> None:
        """Remember the manifest as it is."""
        self._recording, self._seen = recording, self._stamp(recording)

    def check(self) -> None:
        """Raise Withdrawn once it was; NotARecording."""
        stamp = self._stamp(self._recording)
        if stamp != self._seen:
            usable_manifest(self._recording)
            self._seen = stamp

    @staticmethod
    def _stamp(recording: Path) -> tuple[int, int] | None:
        try:
            status = (recording / MANIFEST).stat()
        except OSError:
            return None  # the gate says what is wrong
        return status.st_ino, status.st_mtime_ns


def why_not(manifest: Manifest, purpose: Purpose) -> str:
    """Report what the consent of a recording lacks for a purpose; nothing where it does not."""
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
    """Report what a participant agreed to."""
    reference = str(manifest.get("consent") or NONE)
    if manifest.get("virtual") is True:
        return "not needed: a virtual kitchen, there is nobody in it"
    if reference == NONE:
        return "none: it may be looked at and copied to your own stores, nothing else"
    return f"{reference}: {', '.join(manifest.get('consent_scopes') or ()) or 'to be recorded, nothing else'}"


def overrides_in_words(manifest: Manifest) -> str:
    """Say for what a recording was used although nobody agreed to it, and why."""
    return "; ".join(f"{one['purpose']}: {one['reason']}" for one in manifest.get(OVERRIDES, ()))


def give_consent(recording: Path, reference: str, scopes: Iterable[Scope], *, by: str) -> Manifest:
    """Note a consent in a manifest, with who entered it; return the manifest. Raises NotARecording, Withdrawn."""
    usable_manifest(recording)
    with edit_manifest(recording) as manifest:
        enter_consent(manifest, reference, scopes, by=by, utc_ns=time.time_ns())
    return manifest


def enter_consent(
    manifest: Manifest, reference: str, scopes: Iterable[str], *, by: str, utc_ns: int, **facts: str
) -> None:
    """Enter a consent, or `none`, into a manifest; the earlier ones stay in its history.

    `facts` are what is known of a form besides: its `version`, the `language` it was read in, the `person`.
    """
    given = sorted(str(scope) for scope in scopes)
    entry = {"reference": reference, "scopes": given, "by": by, "utc_ns": utc_ns, **facts}
    history = manifest.setdefault("consent_history", [])
    if entry not in history:
        history.append(entry)
    manifest |= {"consent": reference, "consent_scopes": given, "consent_version": facts.get("version", "")}
