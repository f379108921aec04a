"""Which names `--master` may have in a recording, by its manifest alone: a wrong one is refused before any work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kitchensync.sensors.hololens.catalogue import FRONT_CAMERA, STREAMS, is_front_camera
from kitchensync.sensors.hololens.headset_stream import SAMPLES
from kitchensync.storage.errors import StorageError
from kitchensync.storage.manifest import read_manifest
from kitchensync.sync.errors import UnknownMaster

RUNS = [name for name, stream in STREAMS.items() if stream.kind == SAMPLES or stream.is_voice]
"""Streams of samples rather than frames."""


def check_master(recordings: Iterable[Path], master: str | None) -> None:
    """Raise UnknownMaster when no recording that can be read offers the master."""
    if master is None:
        return
    offered: set[str] = set()
    for path in recordings:
        try:
            offered |= names_of(read_manifest(path))
        except StorageError:
            continue  # said of the recording itself
        if master in offered:
            return
    if offered:
        raise UnknownMaster(master, sorted(offered))


def names_of(manifest: Mapping[str, Any]) -> set[str]:
    """Names of all streams with frames: of the index, of the recording, and the kinds `pv` and `gopro`."""
    full = {name for name in manifest.get("streams") or {} if name.rpartition("/")[2] not in RUNS}
    cameras = [n for n, d in (manifest.get("devices") or {}).items() if d.get("kind") in ("gopro", "video")]
    headsets = [n for n, d in (manifest.get("devices") or {}).items() if d.get("kind") == "hololens"]
    short = {name.rpartition("/")[2] for name in full} if len(headsets) == 1 else set()
    kinds = {FRONT_CAMERA for name in full if is_front_camera(name)} | {"gopro" for _ in cameras}
    return full | short | kinds | {name for one in cameras for name in (one, f"{one}/video")}
