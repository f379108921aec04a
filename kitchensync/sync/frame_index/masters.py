"""Which names `--master` may have in a recording, by its manifest alone: a wrong one is refused before any work."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kitchensync.sensors.hololens.catalogue import FRONT_CAMERA, STREAMS, is_front_camera
from kitchensync.sensors.hololens.headset_stream import SAMPLES
from kitchensync.storage.errors import StorageError
from kitchensync.storage.manifest import Manifest, read_manifest
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
            offered |= _names_of(read_manifest(path))
        except StorageError:
            continue  # reported with the recording itself
        if master in offered:
            return
    if offered:
        raise UnknownMaster(master, sorted(offered))


def _names_of(manifest: Manifest) -> set[str]:
    """Names of all streams with frames: of the index, of the recording, and the kinds `pv` and `gopro`."""
    full = {name for name in manifest.get("streams") or {} if name.rpartition("/")[2] not in RUNS}
    kind_of = {name: device.get("kind") for name, device in (manifest.get("devices") or {}).items()}
    cameras = [name for name, kind in kind_of.items() if kind in ("gopro", "video")]
    has_one_headset = sum(kind == "hololens" for kind in kind_of.values()) == 1
    short = {name.rpartition("/")[2] for name in full} if has_one_headset else set()
    kinds = {FRONT_CAMERA for name in full if is_front_camera(name)} | {"gopro" for _ in cameras}
    return full | short | kinds | {name for one in cameras for name in (one, f"{one}/video")}
