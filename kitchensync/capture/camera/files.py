"""Select the files on a card that belong to a clip, and fetch them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.control.camera import GoProHttp, MediaFile
from kitchensync.sensors.gopro.control.download import download, fetch_small
from kitchensync.storage.disk.media_blocks import BlockChecksums
from kitchensync.storage.manifest import write_json
from kitchensync.storage.names import MEDIA
from kitchensync.storage.reading.clip_starts import shutter_host_ns

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import FilmForm

NEAR_S = 30.0
"""Tolerance between the creation time of a file and the shutter times, after correction of the camera's clock."""
Progress = Callable[[int], None]


def new_files(
    listed: list[MediaFile], before: set[tuple[str, str]], media: dict[str, Any]
) -> list[MediaFile]:
    """Return the files of a clip: new files, and if several recordings are new, those that began during the clip.

    `media` is the clip's media.json with the shutter times and the offset of the camera's clock. Without them the
    first new recordings are taken, one for each time that the shutter was opened.
    """
    new = [file for file in listed if (file.folder, file.name) not in before]
    numbers = list(dict.fromkeys((file.folder, file.recording_number) for file in new))
    if len(numbers) <= 1:
        return new
    window = _window_local_s(media)
    if window is None:
        first = numbers[: 1 + len(media.get("shutters_on_again", []))]
        return [file for file in new if (file.folder, file.recording_number) in first]
    chosen = []
    for key in numbers:
        group = [file for file in new if (file.folder, file.recording_number) == key]
        created = [file.created for file in group if file.created is not None]
        if created and window[0] - NEAR_S <= min(created) <= window[1] + NEAR_S:
            chosen += group
    return chosen


def _window_local_s(media: dict[str, Any]) -> tuple[float, float] | None:
    """Return start and end of the clip by the camera's clock, in seconds since 1970 as if it were UTC."""
    started, anchor = media.get("shutter_on"), media.get("anchor")
    clock = (media.get("clock") or {}).get("start")
    if not started or not clock or not anchor:
        return None
    zero_ns = anchor["utc_ns"] - anchor["host_ns"] + clock.get("offset_ns", 0)
    stopped = media.get("shutter_off")
    end_ns = shutter_host_ns(stopped) if stopped else media.get("ended_host_ns") or shutter_host_ns(started)
    return (started["before_host_ns"] + zero_ns) / 1e9, (end_ns + zero_ns) / 1e9


def fetch_files(
    camera: GoProHttp,
    folder: Path,
    files: list[MediaFile],
    entries: list[FilmForm],
    progress: Progress | None = None,
) -> None:
    """Fetch complete files into a folder; `entries` (of media.json) is updated before and after each file."""
    done = 0
    for file in files:
        entry = next((entry for entry in entries if entry["file"] == file.name), None)
        if entry is None:
            entry = {"file": file.name, "folder": file.folder, "bytes": file.bytes}
            entries.append(entry)
        # Updated every time: a camera that lost power repairs its last file when it is switched on again.
        entry |= {"folder": file.folder, "bytes": file.bytes, "created_s": file.created}
        before = done
        shown = (lambda now, _, before=before: progress(before + now)) if progress is not None else None
        blocks = BlockChecksums()
        fetched = download(camera.entry, file, folder / file.name, shown, observer=blocks)
        rate = fetched.bytes / fetched.seconds if fetched.seconds > 0 else 0.0
        entry |= {"sha256": fetched.sha256, "stored_bytes": fetched.bytes, "bytes_per_s": round(rate)}
        entry["blocks"] = blocks.as_dict()
        done += fetched.bytes


def fetch_proxies(camera: GoProHttp, folder: Path, files: list[MediaFile]) -> list[str]:
    """Fetch low-resolution copies and thumbnails, if the camera has them, into `proxies/`; return their names."""
    fetched = []
    for file in files:
        try:
            fetched += [path.name for path in fetch_small(camera.entry, file, folder / "proxies")]
        except SensorError:
            continue  # proxies are optional
    return fetched


def write_media(folder: Path, media: dict[str, Any]) -> None:
    """Write media.json."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / MEDIA, media)
