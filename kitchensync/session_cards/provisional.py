"""Provisional alignment of a recording by the cameras' small copies, while the videos are still on the cards."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.card_names import proxy_name
from kitchensync.storage.errors import StorageError
from kitchensync.storage.names import MANIFEST, MEDIA, WORK
from kitchensync.storage.reading.shutter_openings import read_media
from kitchensync.sync.answers import RecordingAnswer
from kitchensync.sync.errors import SyncError
from kitchensync.sync.synchronize import synchronize

PROXIES = "proxies"
NOT_COPIED = ("sync", "annotations")
"""Folders of results, which are not linked."""


def provisional_alignment(recording: Path) -> RecordingAnswer | None:
    """Align a recording with small copies in place of its videos; None without small copies.

    A small copy has the same frame times, sound and motion data as its video.
    """
    small = _small_copies(recording)
    if not small:
        return None
    work = recording.parent / WORK  # on the same disk, so that files can be linked
    work.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="card-", dir=work) as folder:
        copy = Path(folder) / recording.name
        _copy_with_small(recording, copy, small)
        try:
            return synchronize(copy)
        except (SyncError, StorageError, SensorError, OSError) as error:
            return {"status": "not_aligned", "reasons": [str(error)]}


def _small_copies(recording: Path) -> dict[Path, str]:
    """Return the small copies, path -> name of the video."""
    copies = {}
    for media in sorted(recording.glob(f"*/{MEDIA}")):
        for entry in read_media(recording, media.parent.name).get("small") or []:
            path = media.parent / PROXIES / (proxy_name(str(entry)) or "")
            if path.is_file():
                copies[path] = str(entry)
    return copies


def _copy_with_small(recording: Path, folder: Path, small: dict[Path, str]) -> None:
    """Link a recording's files into a folder, with the small copies in place of the videos."""
    folder.mkdir()
    cameras = {path.parent.parent for path in small}
    for path in recording.iterdir():
        if path.is_dir() and path.name not in NOT_COPIED and path not in cameras:
            shutil.copytree(path, folder / path.name, copy_function=_link_or_copy)
    shutil.copyfile(recording / MANIFEST, folder / MANIFEST)
    for camera in cameras:
        (folder / camera.name).mkdir()
        shutil.copyfile(camera / MEDIA, folder / camera.name / MEDIA)
    for path, video in small.items():
        _link_or_copy(path, folder / path.parent.parent.name / video)


def _link_or_copy(path: str | Path, target: str | Path) -> None:
    """Hard-link a file, or copy it if the disk cannot link."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
