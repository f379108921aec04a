"""Fetch files that are still on the cameras, for one recording or all (`kitchensync gopro fetch`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from kitchensync.capture.camera.files import fetch_files, fetch_proxies, new_files, write_media
from kitchensync.capture.plan import is_running, runtime_folder
from kitchensync.sensors.errors import CameraBusy, CameraLost, SensorError
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.open_camera import open_camera
from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.disk.folder_lock import locked_folder
from kitchensync.storage.errors import StorageError
from kitchensync.storage.installation.own_list import camera_address, note_films
from kitchensync.storage.names import MEDIA, recordings_in
from kitchensync.storage.recording_files.kept_session_card import NOT_COPIED
from kitchensync.storage.recording_files.media_file import load_media

Print = Callable[[str], None]
Meter = Callable[[int, int], None]
"""Called with the fetched bytes of a clip and its total bytes."""


@dataclass
class Pending:
    """One camera's part of one recording."""

    recording: Path
    device: str
    media: dict[str, Any]

    @property
    def folder(self) -> Path:
        """Folder of its files."""
        return self.recording / self.device

    @property
    def is_open(self) -> bool:
        """Whether files are still to be fetched."""
        return self.media.get("state") in NOT_COPIED

    @property
    def is_live(self) -> bool:
        """Whether its recorder still runs on this computer, and will fetch the files itself."""
        try:
            return is_running(runtime_folder(self.recording))
        except OSError:
            return False  # the runtime folder is not ours, so no recorder of ours runs


@dataclass
class Fetched:
    """Result of fetching from one camera."""

    recording: str
    device: str
    files: list[str] = field(default_factory=list)
    proxies: list[str] = field(default_factory=list)
    problem: str = ""


def pending_in(root: Path) -> list[Pending]:
    """Return the cameras of a recording, or of all recordings in a folder, even if the manifest is lost."""
    paths = [path for recording in recordings_in(root) for path in sorted(recording.glob(f"*/{MEDIA}"))]
    cameras = map(_read_pending, paths)
    return [camera for camera in cameras if camera is not None]  # `verify` reports unreadable files


def _read_pending(path: Path) -> Pending | None:
    try:
        return Pending(path.parent.parent, path.parent.name, cast("dict[str, Any]", load_media(path)))
    except (OSError, BadJson):
        return None


def fetch_pending(
    pending: Pending, address: str | None, *, proxies: bool, print_line: Print, meter: Meter | None = None
) -> Fetched | None:
    """Fetch missing files of one clip from the camera that recorded it.

    Returns None for a clip that is being recorded: its recorder fetches the files.
    """
    if pending.is_live:
        return None
    result = Fetched(pending.recording.name, pending.device)
    with locked_folder(pending.folder):
        # Another process may have fetched the files while we waited for the lock.
        pending = _read_pending(pending.folder / MEDIA) or pending
        if pending.is_live:
            return None
        if not (pending.is_open or proxies):
            return result
        try:
            with open_camera(address or camera_address(pending.recording, pending.device)) as camera:
                _fetch(camera, pending, result, proxies=proxies, print_line=print_line, meter=meter)
        except (SensorError, StorageError, OSError) as error:
            result.problem = str(error)
    return result


def _fetch(
    camera: GoProHttp,
    pending: Pending,
    result: Fetched,
    *,
    proxies: bool,
    print_line: Print,
    meter: Meter | None,
) -> None:
    info = camera.info()
    expected = pending.media.get("serial")
    if expected and info.serial != expected:
        raise CameraLost(camera.base_url, f"it is camera {info.serial}, the clip was made by {expected}")
    state = camera.state()
    if state.encoding:  # it was not stopped because it was lost when the recording ended
        _check_not_in_use(camera, info.serial, pending.recording.parent)
        camera.shutter(False)
    camera.wait_idle()
    before = {(folder, name) for folder, name in pending.media.get("before", [])}
    files = new_files(camera.media(), before, pending.media)
    if not files:
        raise CameraLost(camera.base_url, "no file of this clip is on its card")
    entries = pending.media.setdefault("files", [])
    promised = sum(file.bytes for file in files)
    print_line(f"{pending.recording.name}/{pending.device}: {len(files)} files, {promised / 1e6:.1f} MB")
    try:
        if pending.is_open:
            shown = (lambda fetched: meter(fetched, promised)) if meter is not None else None
            fetch_files(camera, pending.folder, files, entries, shown)
            note_films(pending.recording, pending.device, entries)
            pending.media["state"] = "done"
            result.files = [file.name for file in files]
        if proxies:
            result.proxies = fetch_proxies(camera, pending.folder, files)
    finally:
        write_media(pending.folder, pending.media)


def _check_not_in_use(camera: GoProHttp, serial: str, data: Path) -> None:
    """Raise CameraBusy if another running recording uses the camera."""
    for other in pending_in(data):
        if other.media.get("serial") == serial and other.is_live:
            raise CameraBusy(
                camera.base_url, f"it records {other.recording.name} now; fetch again when that has ended"
            )
