"""The alignment of a recording whose films are still on their cards, by the small copies that came before them."""

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
KEPT_APART = ("sync", "annotations")


def provisional_alignment(recording: Path) -> RecordingAnswer | None:
    """Align with small copies in the place of films; None where there is none.

    They hold the pictures at the same times, the same sound and the same motion as the film.
    """
    small = _small_copies(recording)
    if not small:
        return None
    work = recording.parent / WORK  # on the same disk, where a file can have a second name
    work.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="card-", dir=work) as folder:
        stand_in = Path(folder) / recording.name
        _stand_in(recording, stand_in, small)
        try:
            return synchronize(stand_in)
        except (SyncError, StorageError, SensorError, OSError) as error:
            return {"status": "not_aligned", "reasons": [str(error)]}


def _small_copies(recording: Path) -> dict[Path, str]:
    """Return the small copies by path, with the names of their films."""
    found = {}
    for media in sorted(recording.glob(f"*/{MEDIA}")):
        for entry in read_media(recording, media.parent.name).get("small") or []:
            path = media.parent / PROXIES / (proxy_name(str(entry)) or "")
            if path.is_file():
                found[path] = str(entry)
    return found


def _stand_in(recording: Path, folder: Path, small: dict[Path, str]) -> None:
    """Make a folder that is the recording, but for its films."""
    folder.mkdir()
    cameras = {path.parent.parent for path in small}
    for path in recording.iterdir():
        if path.is_dir() and path.name not in KEPT_APART and path not in cameras:
            shutil.copytree(path, folder / path.name, copy_function=_name_again)
    shutil.copyfile(recording / MANIFEST, folder / MANIFEST)
    for camera in cameras:
        (folder / camera.name).mkdir()
        shutil.copyfile(camera / MEDIA, folder / camera.name / MEDIA)
    for path, film in small.items():
        _name_again(path, folder / path.parent.parent.name / film)


def _name_again(path: str | Path, target: str | Path) -> None:
    """Give a file a second name; where the disk has no such names it is copied."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
