"""The recording folders of the data folder: running ones, their manifests, and the app's events filed into them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from kitchensync.recipe_app.store.anchors import Anchor
from kitchensync.storage.consent import Purpose, enter_consent, why_not
from kitchensync.storage.errors import StorageError
from kitchensync.storage.events import EventLog, read_lines
from kitchensync.storage.lab import Lab, lab_of
from kitchensync.storage.life import why_aborted
from kitchensync.storage.manifest import Manifest, edit_manifest, read_manifest
from kitchensync.storage.names import MANIFEST, check_recording_id
from kitchensync.storage.privacy import RESUME
from kitchensync.storage.redact.redaction import destroy_where_dropped
from kitchensync.task_graphs.errors import NotFound

PLACES = Path("sync") / "events.json"

FolderState = Literal["recording", "stopped", "unknown"]

_WRITERS = {False: "tablet", True: "tablet_late"}
"""Event files during a recording and after it, when the first one is sealed by hashes and must not change."""


@dataclass(frozen=True)
class FolderEvent:
    """A line of an event file."""

    kind: str
    host_ns: int
    uncertainty_ns: int
    op_id: str
    body: dict[str, Any]


class Folders:
    """The recordings of a data folder. Names are checked before they are used as paths."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[tuple[int, int], Any]] = {}

    @property
    def lab(self) -> Lab:
        """The settings of lab.toml. Raises BadLabFile."""
        return lab_of(self.data / "any")

    def state(self, name: str) -> FolderState:
        """Return the state in the manifest now; `unknown` if it cannot be read. Raises NotFound."""
        try:
            return "recording" if read_manifest(self.path(name)).get("state") == "recording" else "stopped"
        except StorageError:
            return "unknown"

    def manifest(self, name: str) -> Manifest:
        """Read the manifest of a recording. Raises NotFound, StorageError."""
        return read_manifest(self.path(name))

    def known_manifest(self, name: str) -> Manifest:
        """Return the manifest, cached until it changes, for pages that poll. Raises NotFound, StorageError."""
        path = self.path(name)
        try:
            status = (path / MANIFEST).stat()
        except OSError as error:
            raise _unknown(name) from error
        return _read_manifest(path, status.st_mtime_ns, status.st_ino)

    def seconds(self, name: str, utc_ns: int) -> int | None:
        """Return the seconds since a recording began; None if its start is unknown."""
        try:
            began = started_utc_ns(self.known_manifest(name))
        except (StorageError, NotFound):
            return None
        return max(utc_ns - began, 0) // 10**9 if began else None

    def why_aborted(self, name: str | None) -> str:
        """Return why a recording was aborted; empty if it was not, or its manifest cannot be read."""
        try:
            return why_aborted(self.known_manifest(name)) if name else ""
        except (StorageError, NotFound):
            return ""

    def lacking_consent(self, name: str | None) -> list[str]:
        """Return which of `annotate` and `release_raw` the consent of a recording lacks; empty without a folder."""
        try:
            manifest = self.known_manifest(name) if name else None
        except (StorageError, NotFound):
            return []
        if manifest is None or is_set_aside(manifest):
            return []
        return [str(what) for what in (Purpose.ANNOTATE, Purpose.RELEASE_RAW) if why_not(manifest, what)]

    def joinable(self, name: str) -> bool:
        """Return whether steps may be logged: it is recording, or was filmed elsewhere. Raises NotFound."""
        try:
            manifest = read_manifest(self.path(name))
        except StorageError:
            return False
        return manifest.get("state") == "recording" or bool(manifest.get("adopted"))

    def running(self) -> list[str]:
        """Return the recordings on which steps may be logged: running or filmed elsewhere, newest first."""
        names = []
        for path in self.data.glob(f"*/{MANIFEST}"):
            manifest = self._peek(path)
            open_ = manifest.get("state") == "recording" or manifest.get("adopted")
            if open_ and not path.parent.name.startswith(("_", ".")):
                names.append((-started_utc_ns(manifest), path.parent.name))
        return [name for _, name in sorted(names)]

    def append(self, name: str, events: Iterable[FolderEvent]) -> None:
        """Append events and sync them to disk; existing events are not repeated."""
        path = self.path(name)
        with self._lock:
            late = self.state(name) == "stopped"
            before = path / "events" / f"{_WRITERS[False]}.jsonl"
            early = (
                {event["op_id"] for event, _ in read_lines(before)} if late and before.is_file() else set()
            )
            events = list(events)
            for event in events:
                if event.op_id in early:
                    continue  # appended during the recording, but the app was killed before it marked it as filed
                EventLog(path, _WRITERS[late]).append(
                    event.kind,
                    host_ns=event.host_ns,
                    uncertainty_ns=event.uncertainty_ns,
                    op_id=event.op_id,
                    body=event.body,
                )
            if late and any(event.kind == RESUME for event in events):
                destroy_where_dropped(path)  # only now: without its end, the pause would cover the rest

    def put(self, name: str, fields: dict[str, Any]) -> None:
        """Write fields into the manifest that are not set yet; during the recording also replace them.

        A manifest that is withdrawn or aborted is not changed.
        """
        with edit_manifest(self.path(name)) as manifest:
            if is_set_aside(manifest):
                return
            is_running = manifest.get("state") == "recording"
            new = {key: value for key, value in fields.items() if is_running or not manifest.get(key)}
            manifest.update(cast(Manifest, new))

    def anchor(self, name: str, end: bool, anchor: Anchor) -> None:
        """Write an anchor of the app's log into the manifest: the first at the start, the last at the end."""
        with edit_manifest(self.path(name)) as manifest:
            if not manifest.get("withdrawn"):
                kept = manifest.setdefault("log_anchors", {})
                kept.update({"end": anchor} if end else {"start": kept.get("start", anchor)})

    def anchors(self) -> dict[str, list[Any]]:
        """Return the anchors of the app's log in the manifests, by recording."""
        by_name = {
            path.parent.name: self._peek(path).get("log_anchors") for path in self.data.glob(f"*/{MANIFEST}")
        }
        return {name: list(kept.values()) for name, kept in by_name.items() if isinstance(kept, dict)}

    def agree(self, name: str, consent: tuple[str, list[str]], facts: dict[str, Any]) -> None:
        """Write the reference and scopes of the consent given on the tablet into the manifest.

        Not after a withdrawal, and not for videos from elsewhere, whose labeller cannot consent for the people in it.
        """
        with edit_manifest(self.path(name)) as manifest:
            if not manifest.get("withdrawn") and not manifest.get("adopted"):
                enter_consent(manifest, *consent, by="tablet", **facts)

    def withdraw(self, name: str, *, host_ns: int) -> None:
        """Withdraw the consent in the manifest: exports refuse it from now on; its files stay."""
        with edit_manifest(self.path(name)) as manifest:
            manifest["consent"] = "none"
            manifest["withdrawn"] = manifest.get("withdrawn") or {"host_ns": host_ns}

    def keep(self, name: str) -> None:
        """Undo a withdrawal as long as nothing was destroyed; `agree` then restores the consent."""
        with edit_manifest(self.path(name)) as manifest:
            if not (manifest.get("withdrawn") or {}).get("utc_ns"):
                manifest.pop("withdrawn", None)

    def places(self, name: str | None) -> dict[str, str]:
        """Return the frames of each error by its id, from `kitchensync sync`; empty before synchronization."""
        if name is None:
            return {}
        try:
            content = json.loads((self.path(name) / PLACES).read_text(encoding="utf-8"))
            events = [event for event in content["events"] if event.get("kind") == "error"]
            return {str(event["error_id"]): _in_words(event["frames"]) for event in events}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, NotFound):
            return {}

    def path(self, name: str) -> Path:
        """Return the folder of a recording; a name from a restored log is untrusted. Raises NotFound."""
        try:
            path = self.data / check_recording_id(name)
        except StorageError as error:
            raise _unknown(name) from error
        if not (path / MANIFEST).is_file():
            raise _unknown(name)
        return path

    def _peek(self, path: Path) -> Manifest:
        """Return a manifest, cached until it changes; empty if it cannot be read."""
        try:
            status = path.stat()
            key = (status.st_mtime_ns, status.st_ino)
            if path not in self._read or self._read[path][0] != key:
                content = json.loads(path.read_text(encoding="utf-8"))
                self._read[path] = (key, content if isinstance(content, dict) else {})
            return self._read[path][1]
        except (OSError, ValueError):
            return {}  # not a recording, or still being created


@lru_cache(maxsize=4096)
def _read_manifest(recording: Path, _mtime_ns: int, _inode: int) -> Manifest:
    return read_manifest(recording)


def is_set_aside(manifest: Manifest) -> bool:
    """Return whether a recording is withdrawn (maybe destroyed) or aborted."""
    return bool(manifest.get("withdrawn") or why_aborted(manifest))


def _unknown(name: str) -> NotFound:
    return NotFound("no recording {name!r}; choose one that runs", name=name[:80])


def started_utc_ns(manifest: Manifest) -> int:
    """Return the start of a recording, UTC nanoseconds; 0 if its manifest has no valid start."""
    started = manifest.get("started")
    utc_ns = started.get("utc_ns") if isinstance(started, dict) else None
    return utc_ns if isinstance(utc_ns, int) else 0


def _in_words(frames: dict[str, Any]) -> str:
    """Format frames, for example `hololens/pv 512; GX010001.MP4 498, ± 12 ms`; empty if no frame shows it."""
    shown = [(name, place) for name, place in sorted(frames.items()) if place["frame"] is not None]
    texts = [
        f"{place.get('file', name).rpartition('/')[2] or name} {place['frame']}" for name, place in shown
    ]
    most_ms = max((float(place["uncertainty_ms"]) for _, place in shown), default=0.0)
    return f"{'; '.join(texts)}, ± {most_ms:.0f} ms" if texts else ""
