"""The cards of the cameras that filmed a recording: what is still on them is erased, where the camera answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.control.open_camera import open_camera
from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.installation.own_list import Entry
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.names import MEDIA
from kitchensync.storage.recording_files.media_file import load_media


def cards_of(recording: Path, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield device, serial and file names of the cards that a recording names; nobody is in a virtual kitchen's."""
    for path in sorted(recording.glob(f"*/{MEDIA}")) if manifest.get("virtual") is not True else ():
        try:
            media = load_media(path)
        except (BadJson, OSError):
            continue  # damaged: which files are there is not known, `verify` names it
        if media.get("address"):
            files = [str(one.get("file")) for one in media.get("files") or []]
            yield {"device": path.parent.name, "serial": str(media.get("serial") or ""), "files": files}


def erase(card: Entry) -> tuple[int, str]:
    """Erase the files of a card, by the installation's list; return how many were there, and why it is open."""
    names = ", ".join(str(one["file"]) for one in card["files"]) or "its film, which was never fetched"
    if not card["files"]:
        return 0, f"{names}, may be on it: erase it there"
    try:
        with open_camera(card["address"]) as camera:
            if camera.info().serial != card["serial"]:
                return 0, f"another camera answers; {names} may be on the card of {card['serial']}"
            known = [(one["folder"], one["file"], one["bytes"]) for one in card["files"]]
            found = [one for one in camera.media() if (one.folder, one.name, one.bytes) in known]
            for one in found:
                camera.delete(one)
    except (SensorError, OSError) as error:
        return 0, f"{names} may be on it: {' '.join(str(error).split())}"
    return len(found), ""
