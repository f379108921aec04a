"""Where the measured picture latencies of cameras lie, and how `sync` finds that of a file.

Apart from measuring them, which wants OpenCV: workers of many recordings need not load it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict, cast

from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sync.errors import BadLatencyStore

STORE, STORE_SCHEMA = "camera-latency.json", "camera-latency/1"


class StoredLatency(TypedDict):
    """The picture latency of one camera in one mode, as far as `sync` uses it."""

    latency_ms: float
    sigma_ms: float


class LatencyStore(TypedDict):
    """The file: latencies by serial number and mode."""

    schema: str
    cameras: dict[str, dict[str, StoredLatency]]


def store_of(recording: Path) -> Path:
    """Path of the store that counts for a recording: in the folder that holds it."""
    return recording.absolute().parent / STORE


def stored_latency(recording: Path, camera_file: Path) -> StoredLatency | None:
    """Return the stored entry for the camera and mode of a file, if any. Raises BadLatencyStore, SensorError."""
    store = read_store(store_of(recording))
    if store is None:
        return None
    media = open_media(camera_file)
    if media.video is None:
        return None
    return store["cameras"].get(media.serial or "", {}).get(media.mode.latency_name) or None


def read_store(path: Path) -> LatencyStore | None:
    """Read a store; None when there is none. Raises BadLatencyStore."""
    try:
        store = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadLatencyStore(path, error) from error
    if not isinstance(store, dict) or store.get("schema") != STORE_SCHEMA:
        raise BadLatencyStore(path, f"it has not the schema {STORE_SCHEMA}")
    return cast(LatencyStore, store)
