"""What `sync` says by the life of a recording alone, without working on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from storage.copies.read_through import readable_folder
from storage.errors import FilesFreed, NotFinished
from storage.life import Life, life_by, usable_manifest
from sync.result.state import kept_answer

NOTHING = "nothing_to_align"


def settled_by_life(path: Path) -> dict[str, Any] | None:
    """Return the answer for a recording that cannot be worked on now; None where it can.

    One whose files lie elsewhere and cannot be reached keeps its last answer, with `checked` false. Raises Unusable
    for one that is refused, also where no last answer is known.
    """
    manifest = usable_manifest(path)
    life = life_by(path, manifest)
    if life == Life.RECORDING:
        raise NotFinished(path)
    if life == Life.ABORTED:
        reason = "it was given up at its start: there is nothing to align"
        return {
            "recording": path.name,
            "status": NOTHING,
            "path": str(path),
            "reasons": [reason],
            "pairs": [],
        }
    try:
        readable_folder(path, manifest)
    except FilesFreed as error:
        kept = kept_answer(path)
        if kept is None:
            raise
        return kept | {
            "checked": False,
            "reasons": [*kept.get("reasons", []), f"not computed again: {error}"],
        }
    return None
