"""Which recording a folder in a store belongs to: asked before anything is written, changed or destroyed there."""

from __future__ import annotations

from contextlib import suppress

from kitchensync.sensors.untrusted_json import BadJson, parse_object
from kitchensync.storage.manifest import MOST_BYTES, Manifest
from kitchensync.storage.names import COPYING


def uuid_in(content: bytes | None) -> str:
    """Return the uuid that the text of a `recording.json` gives; empty where there is none."""
    with suppress(BadJson):
        return str(parse_object(content or b"", most_bytes=MOST_BYTES).get("uuid") or "")
    return ""


def is_unfinished(content: bytes | None) -> bool:
    """Return whether a place has no `recording.json` (None) or an empty one, or that of a copy that is not whole."""
    if not content:
        return True
    with suppress(BadJson):
        return COPYING in parse_object(content, most_bytes=MOST_BYTES)
    return False


def is_same(there: Manifest, manifest: Manifest) -> bool:
    """Return whether two manifests are of one recording: by its uuid, and by a file that both have, if they have any.

    A uuid alone proves nothing: anybody can write one. One without a list of files, such as a tombstone, is none.
    """
    if there.get("uuid") != manifest.get("uuid") or not {"files"} <= there.keys() & manifest.keys():
        return False
    ours, theirs = (
        {(name, facts["sha256"]) for name, facts in one["files"].items()} for one in (manifest, there)
    )
    return not ours or bool(ours & theirs)
