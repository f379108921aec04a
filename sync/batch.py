"""Synchronize several recordings: one that cannot be read never stops the rest."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from storage.errors import StorageError
from storage.verify import recordings_in
from sync.errors import SyncError
from sync.job import synchronize

SCHEMA = "sync/1"


def synchronize_all(paths: Iterable[Path], *, master: str | None = None) -> dict[str, Any]:
    """Synchronize the recordings that `paths` stand for; return the object `sync/1`."""
    found = [recording for path in paths for recording in recordings_in(path)]
    return {"schema": SCHEMA, "recordings": [_one(recording, master) for recording in found]}


def _one(path: Path, master: str | None) -> dict[str, Any]:
    try:
        return synchronize(path, master=master)
    except (SyncError, StorageError) as error:
        reason = " ".join(str(error).split())
        print(f"kitchensync: {reason}", file=sys.stderr)
        return {"recording": path.name, "status": "not_aligned", "reasons": [reason], "pairs": []}
