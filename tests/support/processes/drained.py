"""A drainer that is run to its end, and what it stored."""

from __future__ import annotations

from pathlib import Path

from kitchensync.capture.drain.drainer import Drainer
from kitchensync.capture.plan import Plan
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths


def drain(plan: Plan) -> None:
    """Run a drainer until the queue is empty, as at the end of a recording."""
    drainer = Drainer(plan, 0)
    drainer.end()
    drainer.run()


def stored(recording: str | Path, stream: str) -> list[int]:
    """Read the numbers of a stream's packets back from its files, of which none is damaged."""
    numbers: list[int] = []
    for path in chunk_paths(Path(recording) / stream):
        with Chunk(path) as chunk:
            assert chunk.damage() == [], path
            numbers += chunk.index["seq"].tolist()
    return numbers
