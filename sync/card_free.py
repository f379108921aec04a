"""Erase a camera's files, by one rule: never before `copies_before_free` verified copies exist elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sensors.gopro.camera import GoProHttp
from sensors.gopro.open_camera import open_camera
from storage.names import MEDIA
from sync.card_import import copies_of


def free_recording(
    recording: Path, roots: list[Path], copies: int, addresses: dict[str, str]
) -> list[dict[str, Any]]:
    """Erase what may be erased of every camera of one recording; return a row for each file. Raises CameraError."""
    rows = []
    for path in sorted(recording.glob(f"*/{MEDIA}")):
        media = json.loads(path.read_text(encoding="utf-8"))
        device = path.parent.name
        with open_camera(addresses.get(device) or str(media.get("address", ""))) as camera:
            rows += _free(camera, media, recording, device, roots, copies)
    return rows


def _free(
    camera: GoProHttp, media: dict[str, Any], recording: Path, device: str, roots: list[Path], copies: int
) -> list[dict[str, Any]]:
    same_camera = camera.info().serial == media.get("serial")
    on_card = {(file.folder, file.name): file for file in camera.media()}
    rows = []
    for entry in media.get("files", []):
        row = {"recording": recording.name, "file": entry["file"], "erased": False, "why": ""}
        rows.append(row)
        relative = Path(device) / Path(entry["file"]).name
        places = [recording / relative, *(root / recording.name / relative for root in roots)]
        found = copies_of(entry, list(dict.fromkeys(place.resolve() for place in places)))
        file = on_card.get((entry["folder"], entry["file"]))
        row["copies"] = [str(place) for place in found]
        if not same_camera:
            row["why"] = f"this is another camera than {media.get('serial')}"
        elif len(found) < copies:
            row["why"] = f"{len(found)} verified copies, {copies} are needed"
        elif file is None:
            row["why"] = "it is not on the card"
        elif file.bytes != entry["bytes"]:
            row["why"] = "the file on the card has another size"
        else:
            camera.delete(file)
            row["erased"] = True
    return rows
