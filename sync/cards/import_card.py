"""Copy proposed takes into their recordings, verified, with media.json and manifest kept true."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sensors.gopro.card import copy_verified
from storage.manifest import edit_manifest, write_json
from storage.media_blocks import block_checksums
from storage.names import MEDIA
from sync.cards.match import Proposal


def import_take(proposal: Proposal, meter: Callable[[int, int], None] = lambda _, __: None) -> list[str]:
    """Copy all chapters of a take; return their names. Raises DownloadFailed, StorageError.

    `meter` hears of the bytes copied so far, and of how many it will be.
    """
    assert proposal.recording is not None
    folder = proposal.recording / proposal.device
    folder.mkdir(exist_ok=True)
    media = _media(folder, proposal)
    entries: list[dict[str, Any]] = media.setdefault("files", [])
    names: list[str] = []
    sizes = [path.stat().st_size for path in proposal.take.paths]
    for number, path in enumerate(proposal.take.paths):
        shown = partial(_shown, meter, sum(sizes[:number]), sum(sizes))
        digest = copy_verified(path, folder / path.name, shown)
        entry = {
            "file": path.name,
            "folder": path.parent.name,
            "bytes": path.stat().st_size,
            "sha256": digest,
        }
        entry |= {"stored_bytes": entry["bytes"], "imported": True}
        entry["blocks"] = block_checksums(folder / path.name)
        entries[:] = [known for known in entries if known["file"] != path.name] + [entry]
        names.append(path.name)
    media["state"] = "done"
    media["import_evidence"] = proposal.evidence
    write_json(folder / MEDIA, media)
    _arm(proposal)
    return names


def _shown(meter: Callable[[int, int], None], before: int, promised: int, here: int) -> None:
    meter(before + here, promised)


def _media(folder: Path, proposal: Proposal) -> dict[str, Any]:
    try:
        media = json.loads((folder / MEDIA).read_text(encoding="utf-8"))
        if isinstance(media, dict):
            return media
    except (OSError, ValueError):
        pass  # none yet, or one that cannot be read: it is written anew from what is here
    empty = {
        "schema": "media/1",
        "device": proposal.device,
        "shutter_on": None,
        "shutter_off": None,
        "problem": "",
    }
    return empty | {"serial": proposal.take.serial, "files": []}


def _arm(proposal: Proposal) -> None:
    """Name the camera in the manifest where it was not recorded with us, and keep what we now know of it."""
    assert proposal.recording is not None
    with edit_manifest(proposal.recording) as manifest:
        device = manifest.setdefault("devices", {}).setdefault(proposal.device, {"kind": "gopro"})
        device.setdefault("serial", proposal.take.serial)
        device.setdefault("model", proposal.take.model)
