"""Sessions of the tablet: recordings that capture runs, and standalone ones without any device."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from recipe_app.errors import NotFound
from recipe_app.oplog import Event
from storage.errors import StorageError
from storage.events import EventLog, read_lines
from storage.manifest import edit_manifest, read_manifest, write_json
from storage.names import MANIFEST, check_recording_id

State = Literal["recording", "stopped", "unknown", "standalone"]

STANDALONE = "_standalone"
"""Folder of the standalone sessions beside the recordings; no recording id begins with an underscore."""

_STANDALONE_ID = re.compile(r"_[0-9a-f]{12}")
_WRITERS = ("tablet", "tablet_late")
"""While it records, and after: what capture has sealed with hashes is not appended to."""


@dataclass(frozen=True)
class Listed:
    """A session as the start page shows it."""

    recording: str
    state: State
    recipe: str | None
    started_utc_ns: int


class Session:
    """One recording or standalone session: its log, its state, its recipe."""

    def __init__(self, name: str, path: Path, *, standalone: bool) -> None:
        self.name, self.path, self.standalone = name, path, standalone
        self.lock = threading.RLock()

    @property
    def state(self) -> State:
        """Say what the manifest says now; `unknown` when it cannot be read."""
        if self.standalone:
            return "standalone"
        try:
            return "recording" if read_manifest(self.path).get("state") == "recording" else "stopped"
        except StorageError:
            return "unknown"

    def events(self) -> list[Event]:
        """Return the tablet's events as they were appended. Raises BadEventLog."""
        paths = (self.path / "events" / f"{writer}.jsonl" for writer in _WRITERS)
        return [event for path in paths if path.exists() for event, _ in read_lines(path)]

    def append(
        self, kind: str, *, host_ns: int, uncertainty_ns: int, op_id: str, body: dict[str, Any]
    ) -> Event:
        """Append an event that is synced to the disk when this returns."""
        writer = _WRITERS[self.state == "stopped"]
        return EventLog(self.path, writer).append(
            kind, host_ns=host_ns, uncertainty_ns=uncertainty_ns, op_id=op_id, body=body
        )

    def put_recipe(self, recipe: dict[str, Any]) -> None:
        """Write which recipe and order are shown into the manifest, or the standalone session's own file."""
        if not self.standalone:
            with edit_manifest(self.path) as manifest:
                manifest["recipe"] = recipe
            return
        session = _read_json(self.path / "session.json")
        write_json(self.path / "session.json", session | {"recipe": recipe})


class Sessions:
    """All sessions of one data folder. Names are checked before they become paths."""

    def __init__(self, data: Path, *, utc_ns: Callable[[], int]) -> None:
        self.data, self._utc_ns = data, utc_ns
        self._open: dict[str, Session] = {}
        self._listed: dict[Path, tuple[tuple[int, int], Listed]] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Session:
        """Find a session. Raises NotFound when there is none or the name could not be one."""
        with self._lock:
            if name not in self._open:
                self._open[name] = self._find(name)
            session = self._open[name]
        if not session.path.is_dir():
            raise _not_found(name)
        return session

    def _find(self, name: str) -> Session:
        if _STANDALONE_ID.fullmatch(name):
            path = self.data / STANDALONE / name
            present = (path / "session.json").is_file()
        else:
            try:
                path = self.data / check_recording_id(name)
            except StorageError as error:
                raise _not_found(name) from error
            present = (path / MANIFEST).is_file()
        if not present:
            raise _not_found(name)
        return Session(name, path, standalone=name.startswith("_"))

    def start_standalone(self, op_id: str) -> Session:
        """Make a session without devices; the same operation asked again finds the same session."""
        name = "_" + hashlib.sha256(op_id.encode()).hexdigest()[:12]
        path = self.data / STANDALONE / name
        with self._lock:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / "session.json").exists():
                fields = {"schema": "standalone/1", "session": name, "started": {"utc_ns": self._utc_ns()}}
                write_json(path / "session.json", fields)
        return self.get(name)

    def listed(self) -> list[Listed]:
        """Return the recordings that are running, newest first, then standalone sessions, newest first."""
        recordings = [self._peek(path / MANIFEST) for path in _folders(self.data)]
        standalone = [self._peek(path / "session.json") for path in _folders(self.data / STANDALONE)]
        running = [found for found in recordings if found and found.state == "recording"]
        return [
            *sorted(running, key=lambda found: -found.started_utc_ns),
            *sorted(filter(None, standalone), key=lambda found: -found.started_utc_ns),
        ]

    def _peek(self, path: Path) -> Listed | None:
        """Read what the list needs, again only when the file changed."""
        try:
            status = path.stat()
            key = (status.st_mtime_ns, status.st_ino)
            if path not in self._listed or self._listed[path][0] != key:
                self._listed[path] = (key, _listed(path.parent.name, _read_json(path)))
            return self._listed[path][1]
        except (OSError, ValueError):
            return None  # not a recording, or one being made


def _not_found(name: str) -> NotFound:
    return NotFound("recording", name[:80], "choose one on the start page")


def _folders(path: Path) -> list[Path]:
    return [child for child in path.iterdir() if child.is_dir()] if path.is_dir() else []


def _read_json(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} is not an object")
    return content


def _listed(name: str, content: dict[str, Any]) -> Listed:
    recipe, started = content.get("recipe"), content.get("started")
    running: State = "recording" if content.get("state") == "recording" else "stopped"
    return Listed(
        recording=name,
        state="standalone" if content.get("schema") == "standalone/1" else running,
        recipe=recipe.get("name") if isinstance(recipe, dict) else None,
        started_utc_ns=started.get("utc_ns", 0) if isinstance(started, dict) else 0,
    )
