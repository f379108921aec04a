"""Small copies of the videos: the low-resolution video (LRV) and the picture (THM) that a camera makes too."""

from __future__ import annotations

from pathlib import Path

from sensors.errors import CameraLost, CameraRefused
from sensors.gopro.camera_types import MediaFile
from sensors.gopro.download import download
from sensors.gopro.entry import CameraAddress
from sensors.gopro.http_reader import TROUBLE, reason
from sensors.gopro.names import check_safe, proxy_name, thumbnail_name


def fetch_small(entry: CameraAddress, file: MediaFile, folder: Path) -> list[Path]:
    """Fetch the small copy and the picture of one video into a folder; what the camera lacks is left out."""
    check_safe(file.folder, file.name)
    folder.mkdir(parents=True, exist_ok=True)
    got = []
    for name in (proxy_name(file.name), thumbnail_name(file.name)):
        size = _size(entry, file.folder, name) if name is not None else None
        if name is not None and size:
            got.append(download(entry, MediaFile(file.folder, name, size, file.created), folder).path)
    return got


def _size(entry: CameraAddress, folder: str, name: str) -> int | None:
    """Ask how long a file is that the media list does not name; None when it is not there."""
    try:
        answer = entry.ask(f"/videos/DCIM/{folder}/{name}", method="HEAD", timeout_s=60.0)
    except TROUBLE as error:
        raise CameraLost(entry.base_url, reason(error)) from error
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise CameraRefused(entry.base_url, f"to send {name}", answer.status)
    return int(answer.stated_length) if answer.stated_length.isdecimal() else None
