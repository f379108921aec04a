"""`redactions` of a manifest: destroyed chunks and films with hash, time and reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kitchensync.shell.array_types import Mask
from kitchensync.storage.manifest import Manifest

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import RedactedChunkForm

KEY: Final = "redactions"
BEGUN, DONE = "begun", "done"
PICTURES, SOUND = "vide", "soun"
"""Tracks of a film, by their handler."""
REDACTED = "redacted"
"""Cause of the gaps."""


NOT_YET = "a privacy pause is not destroyed yet"
"""Start of the problem of a recording whose pause could not be destroyed at its end."""
PRIVACY = "privacy"
"""Cause of gaps of packets that were never stored, and id of their entry."""
CUT = "cut"
"""Cause of gaps outside the span of a cut recording, and id of their entry."""


def withhold(manifest: Manifest, stream: str, facts: RedactedChunkForm) -> None:
    """Enter packets that are not stored, but not twice after a restart."""
    entry = next((entry for entry in manifest.get(KEY, []) if entry["id"] == PRIVACY), None)
    if entry is None:
        entry = {
            "id": PRIVACY,
            "state": DONE,
            "reason": "privacy pause",
            "streams": {},
            "films": {},
            "open": [],
        }
        manifest.setdefault(KEY, []).append(entry)
    chunks = entry["streams"].setdefault(stream, [])
    first, last = facts["seq"]
    if not any(chunk["seq"][0] <= first and last <= chunk["seq"][1] for chunk in chunks):
        chunks.append({**facts, "cause": PRIVACY})


def redacted_chunks(manifest: Manifest, stream: str) -> list[RedactedChunkForm]:
    """Return the destroyed chunks of a stream."""
    return [chunk for entry in manifest.get(KEY, []) for chunk in entry["streams"].get(stream, [])]


def in_runs(runs: Sequence[Sequence[int]], count: int) -> Mask:
    """Return which of `count` samples are in runs [first, last], (count,); untrusted runs may have any numbers."""
    first, last = np.array(runs, np.int64).reshape(-1, 2).T
    is_run = first <= last
    steps = np.zeros(count + 1, np.int64)
    np.add.at(steps, np.minimum(first[is_run], count), 1)
    np.add.at(steps, np.minimum(last[is_run] + 1, count), -1)
    return np.cumsum(steps)[:count] > 0


def done_samples(manifest: Manifest, film: str, handler: str) -> list[list[int]]:
    """Return the runs of destroyed samples of a track of a film."""
    entries = (entry["films"][film] for entry in manifest.get(KEY, []) if film in entry["films"])
    return [run for entry in entries for run in entry.get("samples", {}).get(handler, [])]
