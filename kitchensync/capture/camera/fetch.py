"""`kitchensync gopro fetch`: bring home what cameras still hold, for one recording or for all of an evening."""

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

Say = Callable[[str], None]
Meter = Callable[[int, int], None]
"""Called with bytes of this clip here, and in all."""


@dataclass
class Pending:
    """One camera's part of one recording."""

    recording: Path
    device: str
    media: dict[str, Any]

    @property
    def folder(self) -> Path:
        """Where its files go."""
        return self.recording / self.device

    @property
    def is_open(self) -> bool:
        """Whether files are still to be fetched."""
        return self.media.get("state") in NOT_COPIED

    @property
    def is_live(self) -> bool:
        """Whether its recorder runs on this computer now: then camera and files are the recorder's."""
        try:
            return is_running(runtime_folder(self.recording))
        except OSError:
            return False  # the folder of sockets is not ours: no recorder of ours runs


@dataclass
class Fetched:
    """What came of one of them."""

    recording: str
    device: str
    files: list[str] = field(default_factory=list)
    proxies: list[str] = field(default_factory=list)
    problem: str = ""


def pending_in(root: Path) -> list[Pending]:
    """List the cameras of a recording, or of all recordings in a folder, also where the manifest is lost."""
    paths = [path for recording in recordings_in(root) for path in sorted(recording.glob(f"*/{MEDIA}"))]
    found = (_read_pending(path) for path in paths)
    return [one for one in found if one is not None]  # `verify` names the others


def _read_pending(path: Path) -> Pending | None:
    try:
        return Pending(path.parent.parent, path.parent.name, cast("dict[str, Any]", load_media(path)))
    except (OSError, BadJson):
        return None


def fetch_pending(
    pending: Pending, address: str | None, *, proxies: bool, say: Say, meter: Meter | None = None
) -> Fetched | None:
    """Fetch what is missing of one clip from its camera, which must be the very camera that recorded it.

    None for a clip that is being recorded now: its files come by themselves.
    """
    if pending.is_live:
        return None
    result = Fetched(pending.recording.name, pending.device)
    with locked_folder(pending.folder):
        # While we waited, others may have written and fetched.
        pending = _read_pending(pending.folder / MEDIA) or pending
        if pending.is_live:
            return None
        if not (pending.is_open or proxies):
            return result
        try:
            with open_camera(address or camera_address(pending.recording, pending.device)) as camera:
                _fetch(camera, pending, result, proxies=proxies, say=say, meter=meter)
        except (SensorError, StorageError, OSError) as error:
            result.problem = str(error)
    return result


def _fetch(
    camera: GoProHttp, pending: Pending, result: Fetched, *, proxies: bool, say: Say, meter: Meter | None
) -> None:
    info = camera.info()
    expected = pending.media.get("serial")
    if expected and info.serial != expected:
        raise CameraLost(camera.base_url, f"it is camera {info.serial}, the clip was made by {expected}")
    state = camera.state()
    if state.encoding:  # nobody stopped it: it was gone when the session ended
        _refuse_to_stop_another(camera, info.serial, pending.recording.parent)
        camera.shutter(False)
    camera.wait_idle()
    before = {(folder, name) for folder, name in pending.media.get("before", [])}
    files = new_files(camera.media(), before, pending.media)
    if not files:
        raise CameraLost(camera.base_url, "no file of this clip is on its card")
    entries = pending.media.setdefault("files", [])
    promised = sum(file.bytes for file in files)
    say(f"{pending.recording.name}/{pending.device}: {len(files)} files, {promised / 1e6:.1f} MB")
    try:
        if pending.is_open:
            shown = (lambda here: meter(here, promised)) if meter is not None else None
            fetch_files(camera, pending.folder, files, entries, shown)
            note_films(pending.recording, pending.device, entries)
            pending.media["state"] = "done"
            result.files = [file.name for file in files]
        if proxies:
            result.proxies = fetch_proxies(camera, pending.folder, files)
    finally:
        write_media(pending.folder, pending.media)


def _refuse_to_stop_another(camera: GoProHttp, serial: str, data: Path) -> None:
    """Raise CameraBusy while the camera films for another recording that runs now."""
    for other in pending_in(data):
        if other.media.get("serial") == serial and other.is_live:
            raise CameraBusy(
                camera.base_url, f"it films {other.recording.name} now; fetch again when that has ended"
            )
