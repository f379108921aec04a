"""`redactions` of a manifest: what was destroyed, when, why, with the hash of each chunk and film that was."""

from __future__ import annotations

from typing import Any

from storage.manifest import Manifest

KEY = "redactions"
BEGUN, DONE = "begun", "done"
PICTURES, SOUND = "vide", "soun"
"""Tracks of a film, by their handler."""
REDACTED = "redacted"
"""Cause of the gaps that stay."""


def redactions(manifest: Manifest) -> list[dict[str, Any]]:
    """Return what was redacted, in order."""
    found: list[dict[str, Any]] = manifest.get(KEY, [])
    return found


def redacted_chunks(manifest: Manifest, stream: str) -> list[dict[str, Any]]:
    """Return the chunks of a stream that were destroyed: `chunk`, `seq`, `ticks` and `sha256` of each."""
    return [chunk for one in redactions(manifest) for chunk in one["streams"].get(stream, [])]


def done_samples(manifest: Manifest, film: str) -> dict[str, Any]:
    """Return which samples of a film were destroyed last, by handler."""
    found: dict[str, Any] = {}
    for one in redactions(manifest):
        found |= one["films"].get(film, {}).get("samples", {})
    return found
