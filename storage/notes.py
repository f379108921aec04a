"""The ledger's notes read back: what a recorder said about a stream besides its packets."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from storage.chunks.chunk import Chunk, chunk_paths
from storage.errors import BadChunk
from storage.names import LEDGER_STREAMS

Note = dict[str, Any]


def read_notes(recording: Path) -> dict[str, list[Note]]:
    """Return the notes of every stream in the order in which they were written.

    Raises BadChunk when a ledger file does not open or is damaged.
    """
    folders = sorted((recording / LEDGER_STREAMS).glob("*"))
    return notes_in(path for folder in folders for path in chunk_paths(folder))


def notes_in(paths: Iterable[Path]) -> dict[str, list[Note]]:
    """Return the notes in some files of the ledger, by stream. Raises BadChunk."""
    notes: dict[str, list[Note]] = defaultdict(list)
    for path in paths:
        with Chunk(path) as chunk:
            if damage := chunk.damage():
                raise BadChunk(path, ", ".join(damage))
            for payload in chunk.payloads():
                note = json.loads(payload)
                notes[note["stream"]].append(note)
    return dict(notes)
