"""Erase a camera's files, but only with enough verified copies elsewhere."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.open_camera import open_camera
from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.copies.verified_places import verified_places
from kitchensync.storage.errors import UnreadableFile
from kitchensync.storage.installation.own_list import camera_address, own_list, uuid_of
from kitchensync.storage.names import MEDIA
from kitchensync.storage.recording_files.media_file import load_media


class ErasedFile(TypedDict):
    """One file of a camera: whether it was erased, the reason against it, and its copies."""

    recording: str
    file: str
    erased: bool
    why: str
    copies: list[str]


@dataclass(frozen=True)
class EraseRule:
    """Required number of verified copies; `roots` are folders with copies that are in no list."""

    copies: int = 2
    roots: tuple[Path, ...] = ()


def free_recording(recording: Path, rule: EraseRule, addresses: dict[str, str]) -> list[ErasedFile]:
    """Erase the files of the cameras of one recording by the rule; return a row for each file.

    Copies are counted before the camera is contacted. Raises CameraError, StorageError.
    """
    rows = []
    recording = recording.resolve()
    own = own_list(recording)  # kept as a variable, so that it is read once
    taken_in = own.outside(uuid_of(recording)).films
    for path in sorted(recording.glob(f"*/{MEDIA}")):
        try:
            media = cast("dict[str, Any]", load_media(path))
        except (OSError, BadJson) as error:
            raise UnreadableFile(path, str(error)) from error
        judged = [
            _judge(recording, path.parent.name, entry, rule, taken_in) for entry in media.get("files") or []
        ]
        if any(not row["why"] for row in judged):
            device = path.parent.name
            with open_camera(addresses.get(device) or camera_address(recording, device)) as camera:
                _erase(camera, media, judged)
        rows += judged
    return rows


def _judge(
    recording: Path, device: str, entry: dict[str, Any], rule: EraseRule, taken_in: Set[str]
) -> ErasedFile:
    """Count the copies of one file; `why` is the reason against erasing it.

    A recording from elsewhere may name any file, so only files that this installation added are erased.
    """
    name = Path(str(entry["file"])).name
    row: ErasedFile = {"recording": recording.name, "file": name, "erased": False, "why": "", "copies": []}
    if not entry.get("sha256") or entry["sha256"] not in taken_in:
        row["why"] = "this installation did not take it in; erase it with the camera"
        if not entry.get("sha256"):
            row["why"] = "it was never fetched whole"
        return row
    places = verified_places(recording, f"{device}/{name}", str(entry["sha256"]), list(rule.roots))
    row["copies"] = [str(place) for place in places.found]
    if len(places.found) < rule.copies:
        row["why"] = "; ".join(
            [f"{len(places.found)} verified copies, {rule.copies} are needed", *places.problems]
        )
    return row


def _erase(camera: GoProHttp, media: dict[str, Any], rows: list[ErasedFile]) -> None:
    """Erase the files without a reason against it, if this is their camera."""
    same_camera = camera.info().serial == media.get("serial")
    on_card = {(file.folder, file.name): file for file in camera.media()}
    for row, entry in zip(rows, media["files"], strict=True):
        file = on_card.get((str(entry.get("folder")), row["file"]))
        if row["why"]:
            continue
        if not same_camera:
            row["why"] = f"this is another camera than {media.get('serial')}"
        elif file is None:
            row["why"] = "it is not on the card"
        elif file.bytes != entry["bytes"]:
            row["why"] = "the file on the card has another size"
        else:
            camera.delete(file)
            row["erased"] = True
