"""`redactions` of a manifest: what was destroyed, when, why, with the hash of each chunk and film that was."""

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
"""Cause of the gaps that stay."""


NOT_YET = "a privacy pause is not destroyed yet"
"""Begins the problem of a recording whose pause could not be destroyed when it was closed."""
PRIVACY = "privacy"
"""Cause of gaps in what was never stored, and id of the entry about it."""
CUT = "cut"
"""Cause of what lies outside of a part of a recording, and id of the entry about it."""


def withhold(manifest: Manifest, stream: str, facts: RedactedChunkForm) -> None:
    """Note packets that are not stored; what was noted before a restart is not noted twice."""
    entry = next((one for one in manifest.get(KEY, []) if one["id"] == PRIVACY), None)
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
    known = entry["streams"].setdefault(stream, [])
    if not any(one["seq"][0] <= facts["seq"][0] and facts["seq"][1] <= one["seq"][1] for one in known):
        known.append({**facts, "cause": PRIVACY})


def redacted_chunks(manifest: Manifest, stream: str) -> list[RedactedChunkForm]:
    """Return the chunks of a stream that were destroyed."""
    return [chunk for one in manifest.get(KEY, []) for chunk in one["streams"].get(stream, [])]


def in_runs(runs: Sequence[Sequence[int]], count: int) -> Mask:
    """Return which of `count` samples are in runs [first, last], (count,); they may be a stranger's, of any span."""
    first, last = np.array(runs, np.int64).reshape(-1, 2).T
    is_run = first <= last
    steps = np.zeros(count + 1, np.int64)
    np.add.at(steps, np.minimum(first[is_run], count), 1)
    np.add.at(steps, np.minimum(last[is_run] + 1, count), -1)
    return np.cumsum(steps)[:count] > 0


def done_samples(manifest: Manifest, film: str, handler: str) -> list[list[int]]:
    """Return which samples of a track of a film were destroyed, as runs."""
    films = (one["films"][film] for one in manifest.get(KEY, []) if film in one["films"])
    return [run for one in films for run in one.get("samples", {}).get(handler, [])]
