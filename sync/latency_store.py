"""Where the measured picture latencies of cameras lie."""

from __future__ import annotations

from pathlib import Path

STORE = "camera-latency.json"


def store_of(recording: Path) -> Path:
    """Path of the store that counts for a recording: in the folder that holds it."""
    return recording.absolute().parent / STORE
