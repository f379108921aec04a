"""Chunks of recordings that tests write themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kitchensync.storage.chunks.chunk_writer import Packet, seal


def sealed(
    path: Path, stream: str, number: int, packets: list[Packet], /, **attributes: str
) -> dict[str, Any]:
    """Seal packets as a chunk of a recording; return its entry for the manifest."""
    (path / stream).mkdir(parents=True, exist_ok=True)
    made = seal(path / stream, number, packets, {"stream": stream, **attributes})
    return {f"{stream}/{made.path.name}": {"bytes": made.bytes, "sha256": made.sha256}}
