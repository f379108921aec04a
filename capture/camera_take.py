"""One GoPro during a recording: start, watch, stop, fetch; on a thread of its own, so that it stops nobody."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sensors.errors import SensorError
from sensors.gopro.camera import GoProHttp, MediaFile, ShutterEvent
from sensors.gopro.download import download
from storage.manifest import write_json
from storage.names import MEDIA

WATCH_S = 1.0
IDLE_LIMIT_S = 60.0


@dataclass
class CameraState:
    """What the operator sees of one camera."""

    state: str = "waiting"
    problem: str = ""
    fetched_bytes: int = 0
    promised_bytes: int = 0
    gaps: list[dict[str, Any]] = field(default_factory=list)


class CameraTake(threading.Thread):
    """Records one take on one camera and brings its files home."""

    def __init__(self, name: str, url: str, folder: Path) -> None:
        """`folder` takes the untouched originals and `media.json`."""
        super().__init__(name=f"camera {name}", daemon=True)
        self.device = name
        self.state = CameraState()
        self._url = url
        self._folder = folder
        self._camera = GoProHttp(url)
        self._ending = threading.Event()
        self._before: set[tuple[str, str]] = set()
        self._files: list[dict[str, Any]] = []

    def prepare(self) -> dict[str, Any]:
        """Reach the camera and see what is on its card; return what it says it is. Raises CameraError."""
        info = self._camera.info()
        self._before = {(file.folder, file.name) for file in self._camera.media()}
        return {
            "kind": "gopro",
            "address": self._url,
            "model": info.model_name,
            "firmware": info.firmware,
            "serial": info.serial,
        }

    def end(self) -> None:
        """Ask the end: the shutter is closed and the files are fetched."""
        self._ending.set()

    def run(self) -> None:
        """Shutter, wait for the end, shutter, fetch. A camera that fails is a red light, not a stopped session."""
        self._folder.mkdir(parents=True, exist_ok=True)
        started: ShutterEvent | None = None
        stopped: ShutterEvent | None = None
        try:
            self.state.state = "starting"
            started = self._camera.shutter(True)
            self.state.state = "recording"
            self._watch()
            self.state.state = "stopping"
            stopped = self._camera.shutter(False)
            self._camera.wait_idle(IDLE_LIMIT_S)
            self._fetch()
            self.state.state = "done"
        except (SensorError, OSError) as error:
            self.state.state = "failed"
            self.state.problem = str(error)
        finally:
            self._write_media(started, stopped)
            self._camera.close()

    def _watch(self) -> None:
        """Look at the camera now and then; say so when it stopped by itself."""
        while not self._ending.wait(WATCH_S):
            try:
                encoding = self._camera.state().encoding
            except SensorError as error:
                self.state.problem = str(error)
                continue
            self.state.problem = "" if encoding else "the camera stopped recording by itself"

    def _fetch(self) -> None:
        self.state.state = "fetching"
        new = [file for file in self._camera.media() if (file.folder, file.name) not in self._before]
        if not new:
            self.state.problem = "the camera made no file"
        self.state.promised_bytes = sum(file.bytes for file in new)
        for file in new:
            self._fetch_one(file)

    def _fetch_one(self, file: MediaFile) -> None:
        done = self.state.fetched_bytes
        entry: dict[str, Any] = {"file": file.name, "folder": file.folder, "bytes": file.bytes}
        self._files.append(entry)

        def progress(here: int, _: int) -> None:
            self.state.fetched_bytes = done + here

        fetched = download(self._url, file, self._folder / file.name, progress)
        entry |= {"sha256": fetched.sha256, "stored_bytes": fetched.bytes}
        self.state.fetched_bytes = done + fetched.bytes

    def _write_media(self, started: ShutterEvent | None, stopped: ShutterEvent | None) -> None:
        write_json(
            self._folder / MEDIA,
            {
                "schema": "media/1",
                "device": self.device,
                "shutter_on": started._asdict() if started else None,
                "shutter_off": stopped._asdict() if stopped else None,
                "problem": self.state.problem,
                "files": self._files,
            },
        )
