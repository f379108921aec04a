"""Chunks of recordings that tests write themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kitchensync.storage.chunks.chunk_writer import Packet, layout_image, seal
from kitchensync.storage.chunks.layout import layout_of


def sealed(
    path: Path, stream: str, number: int, packets: list[Packet], /, **attributes: str
) -> dict[str, Any]:
    """Seal packets as a chunk of a recording; return its entry for the manifest."""
    (path / stream).mkdir(parents=True, exist_ok=True)
    made = seal(path / stream, number, packets, {"stream": stream, **attributes})
    return {f"{stream}/{made.path.name}": {"bytes": made.bytes, "sha256": made.sha256}}


def image_of(packets: Sequence[Packet], attributes: dict[str, Any]) -> bytes:
    """Build the HDF5 file of these packets in memory."""
    _, pieces = layout_image(packets, attributes, layout_of(str(attributes.get("stream", ""))))
    return b"".join(pieces)
