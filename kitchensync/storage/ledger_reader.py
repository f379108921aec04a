"""Read the ledger of a recording: the notes of its recorder on each stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.ledger import Note, read_note
from kitchensync.storage.names import LEDGER_STREAMS


def read_notes(recording: Path) -> dict[str, list[Note]]:
    """Return the notes of every stream in the order in which they were written. Raises BadChunk."""
    folders = sorted((recording / LEDGER_STREAMS).glob("*"))
    return notes_in(path for folder in folders for path in chunk_paths(folder))


def notes_in(paths: Iterable[Path]) -> dict[str, list[Note]]:
    """Return the notes in some files of the ledger, by stream. Raises BadChunk."""
    notes: dict[str, list[Note]] = defaultdict(list)
    for path in paths:
        with Chunk(path) as chunk:
            if damage := chunk.damage():
                raise BadChunk(path, ", ".join(damage))
            try:
                for note in map(read_note, chunk.payloads()):
                    notes[note.stream].append(note)
            except ValueError as error:
                raise BadChunk(path, f"a note of the ledger is none: {error}") from error
    return dict(notes)
