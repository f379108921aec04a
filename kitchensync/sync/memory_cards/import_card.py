"""Copy proposed clips to their recordings, verified, and update media.json and manifest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kitchensync.sensors.gopro.files.card_names import card_name
from kitchensync.sensors.gopro.files.memory_card import copy_verified
from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.disk.media_blocks import block_checksums
from kitchensync.storage.installation.own_list import note_films
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.names import MEDIA
from kitchensync.storage.recording_files.media_file import load_media
from kitchensync.sync.memory_cards.match import Proposal


def import_clip(proposal: Proposal, meter: Callable[[int, int], None] = lambda _, __: None) -> list[str]:
    """Copy a clip, `meter` gets copied and total bytes; return file names. Raises DownloadFailed, StorageError."""
    assert proposal.recording is not None
    folder = proposal.recording / proposal.device
    folder.mkdir(exist_ok=True)
    try:
        media: dict[str, Any] = dict(load_media(folder / MEDIA))
    except (OSError, BadJson):  # missing or unreadable: write a new one
        media = {"schema": "media/1", "device": proposal.device, "shutter_on": None, "shutter_off": None}
        media |= {"problem": "", "serial": proposal.clip.serial, "files": []}
    entries: list[dict[str, Any]] = media.setdefault("files", [])
    names: list[str] = []
    sizes = [path.stat().st_size for path in proposal.clip.paths]
    stored = _stored_names(folder, entries, proposal.clip.paths)
    for number, (path, name) in enumerate(zip(proposal.clip.paths, stored, strict=True)):
        shown = partial(lambda before, here: meter(before + here, sum(sizes)), sum(sizes[:number]))
        digest = copy_verified(path, folder / name, shown)
        entry = {
            "file": name,
            "folder": path.parent.name,
            "bytes": path.stat().st_size,
            "sha256": digest,
            "created_s": proposal.clip.started_s,
        }
        entry |= {"stored_bytes": entry["bytes"], "imported": True}
        entry |= {"card_file": path.name} if name != path.name else {}
        entry["blocks"] = block_checksums(folder / name)
        entries[:] = [other for other in entries if other["file"] != name] + [entry]
        names.append(name)
    media["state"] = "done"
    media["import_evidence"] = proposal.evidence
    write_json(folder / MEDIA, media)
    taken = [entry for entry in entries if entry["file"] in names]
    note_films(proposal.recording, proposal.device, taken)
    with edit_manifest(proposal.recording) as manifest:  # the camera may not be in the recording
        device = manifest.setdefault("devices", {}).setdefault(proposal.device, {"kind": "gopro"})
        device.setdefault("serial", proposal.clip.serial)
        device.setdefault("model", proposal.clip.model)
    return names


def _stored_names(folder: Path, entries: list[dict[str, Any]], paths: Sequence[Path]) -> list[str]:
    """Return the names of the chapters: as on the card, or with a free number if another card's film has them."""
    stored = {(entry.get("card_file"), entry["bytes"]): str(entry["file"]) for entry in entries}
    before = [stored.get((path.name, path.stat().st_size)) for path in paths]
    if None not in before:
        return [name for name in before if name is not None]
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    if all(sizes.get(path.name, path.stat().st_size) == path.stat().st_size for path in paths):
        return [path.name for path in paths]
    numbers = [int(name_on_card.number) for name in sizes if (name_on_card := card_name(name)) is not None]
    return [f"{path.stem[:-4]}{max(numbers) + 1:04d}{path.suffix}" for path in paths]
