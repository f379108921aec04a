"""`own.jsonl`: what this installation wrote outside its recordings, and which withdrawals it has not finished.

A recording folder can come from anybody, and anybody can compute its checksums. So this list alone decides what is
deleted or contacted outside a recording. Its lines are chained by HMAC with the installation's key.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any, TypedDict, cast
from weakref import WeakValueDictionary

from kitchensync.shell.files_on_disk import open_plain
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.errors import BadInstallation, NotARecording, UnknownCamera
from kitchensync.storage.installation.key import check_own_folder, kept_key, own_key
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import APP_FOLDER

OWN_LIST = "own.jsonl"
_MARK = b', "mac": "'
_TAIL = len(_MARK) + 64 + len(b'"}\n')
_FIRST = b"own/1"
"""What the first line is chained to."""


class LineKind(StrEnum):
    """What a line is about; the facts that it has besides the uuid of the recording."""

    STORE = "store"
    "Copies will be written there: `target`, `where`."
    COPY = "copy"
    "A file was copied: `file`, `sha256`, `target`, `where`."
    CAMERA = "camera"
    "A camera of the rig films it: `recording`, `device`, `address`, `serial`."
    FILMS = "films"
    "Films were taken in: `device`, `files` as in `media.json`, without what describes their content."
    MADE = "made"
    "It was made from other recordings: `made_from`, their uuids."
    DERIVED = "derived"
    "A command wrote files of it: `path` or `server`, `command`, `files`; `data_set` where that was pushed."
    PUSHED = "pushed"
    "A data set is at `where` now, and nothing of an earlier one: `holds`, the uuids of its recordings."
    WITHDRAWING = "withdrawing"
    "Its withdrawal began: `recording`, its folder's name, and `policy`."
    WITHDRAWN = "withdrawn"
    "That dealt with all lines up to `upto`, but for `stores`, `derived` and `cameras`; `recording`, `policy`."


class ListLine(TypedDict, total=False):
    """One line: what all have, its number `n`, and what its kind has."""

    kind: str
    uuid: str
    utc_ns: int
    n: int
    target: str
    where: str
    file: str
    sha256: str
    recording: str
    device: str
    address: str
    serial: str
    files: Any
    made_from: list[str]
    path: str
    server: str
    command: str
    data_set: str
    of: int
    begun: list[list[Any]]
    "By each command that noted no end: when it began (UTC ns), on which computer, its process."
    ended: int
    holds: list[str]
    policy: str
    upto: int
    stores: list[ListLine]
    derived: list[ListLine]
    cameras: list[ListLine]


@dataclass
class Outside:
    """What is outside of one recording: all that was written since its last withdrawal, and what that left open."""

    stores: dict[tuple[str, str], ListLine] = field(default_factory=dict)
    "Last line by (target, where)."
    known_stores: set[tuple[str, str]] = field(default_factory=set)
    "All that there ever were."
    copied: set[tuple[str, str]] = field(default_factory=set)
    "Path and SHA-256 of each file that was ever copied."
    derived: list[ListLine] = field(default_factory=list)
    cameras: dict[str, ListLine] = field(default_factory=dict)
    "Last line by device, with the `files` that came from it."
    films: set[str] = field(default_factory=set)
    "SHA-256 of each film that was taken in."
    made_from: set[str] = field(default_factory=set)
    last: ListLine | None = None
    "The last line about its withdrawal."
    upto: int = 0
    "Number of the last line about it."

    @property
    def is_unfinished(self) -> bool:
        """Whether a withdrawal was interrupted, or left something open."""
        if self.last is None:
            return False
        left = self.last.get("stores"), self.last.get("derived"), self.last.get("cameras")
        return self.last["kind"] == LineKind.WITHDRAWING or any(left)

    def add(self, entry: ListLine) -> None:
        """Take in the next line."""
        kind, self.upto = entry["kind"], entry["n"]
        if kind in (LineKind.STORE, LineKind.COPY):
            self.stores[entry["target"], entry["where"]] = entry
            self.known_stores.add((entry["target"], entry["where"]))
        if kind == LineKind.COPY:
            self.copied.add((entry["file"], entry["sha256"]))
        elif kind == LineKind.DERIVED:
            self.derived.append(entry)
        elif kind == LineKind.CAMERA:
            self.cameras[entry["device"]] = {**entry, "files": []}
        elif kind == LineKind.FILMS:
            self.films |= {one["sha256"] for one in entry["files"]}
            if camera := self.cameras.get(entry["device"]):
                camera["files"] = entry["files"]
        elif kind == LineKind.MADE:
            self.made_from |= {*entry["made_from"]}
        elif kind in (LineKind.WITHDRAWING, LineKind.WITHDRAWN):
            self.last = entry
        if kind == LineKind.WITHDRAWN:
            since = (one for one in self.stores.values() if one["n"] > entry["upto"])
            self.stores = {(one["target"], one["where"]): one for one in (*entry["stores"], *since)}
            self.derived = [*entry["derived"], *(one for one in self.derived if one["n"] > entry["upto"])]
            self.cameras = {one["device"]: one for one in entry["cameras"]}


class OwnList:
    """The list of one data folder."""

    def __init__(self, data: Path) -> None:
        self.folder = data / APP_FOLDER
        self._path = self.folder / OWN_LIST
        self._reading = Lock()
        self._entries, self._mac, self._end, self._inode = list[ListLine](), _FIRST, 0, 0

    def add(self, kind: LineKind, uuid: str, **facts: Any) -> None:
        """Append a line and sync it. Raises OSError, BadInstallation."""
        entry = {"kind": kind, "uuid": uuid, "utc_ns": time.time_ns(), **facts}
        text = json.dumps(entry)[:-1].encode()
        with self._locked() as (handle, key):
            size, step, end = os.fstat(handle).st_size, 1 << 16, 0
            for start in range(max(size - step, 0), -step, -step):
                piece = os.pread(handle, step, max(start, 0))
                if (place := piece.rfind(b"\n")) >= 0:
                    end = max(start, 0) + place + 1
                    break
            if end < size:
                os.ftruncate(handle, end)
            before = os.pread(handle, 64, end - 67) if end else _FIRST
            line = text + _MARK + _mac(key, before, text) + b'"}\n'
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
            os.fsync(handle)

    @contextmanager
    def _locked(self) -> Iterator[tuple[int, bytes]]:
        """Open the list for appending, alone, behind its last whole line."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        check_own_folder(self.folder)
        key, is_new = kept_key(self.folder), not self._path.exists()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if is_new:
                LOCAL.sync_folder(self.folder)
            yield handle, key
        finally:
            os.close(handle)

    def entries(self) -> list[ListLine]:
        """Return every line, oldest first; one that has no end yet was never written.

        Lines are only appended: what was read and proved is not read again as long as this object lives. Raises
        BadInstallation at the first line that is not as this installation wrote it, OSError.
        """
        if not self._path.exists():
            return []
        key = own_key(self.folder)
        with self._reading, open_plain(self._path) as file:
            facts = os.fstat(file.fileno())
            if facts.st_ino != self._inode or facts.st_size < self._end:
                self._entries, self._mac, self._end, self._inode = [], _FIRST, 0, facts.st_ino
            file.seek(self._end)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                number, text, mac = len(self._entries) + 1, line[:-_TAIL], line[-_TAIL + len(_MARK) : -3]
                if not hmac.compare_digest(_mac(key, self._mac, text), mac):
                    why = f"line {number} was not written by this installation; move the list away to begin a new one"
                    raise BadInstallation(self._path, why)
                self._entries.append(cast(ListLine, json.loads(text + b"}") | {"n": number}))
                self._mac, self._end = mac, self._end + len(line)
            return [*self._entries]

    def outside(self, uuid: str) -> Outside:
        """Return what is outside of one recording. Raises BadInstallation, OSError."""
        return self.all_outside().get(uuid, Outside())

    def all_outside(self) -> dict[str, Outside]:
        """Return what is outside of each recording, by uuid. Raises BadInstallation, OSError."""
        found: dict[str, Outside] = {}
        for entry in self.entries():
            found.setdefault(entry["uuid"], Outside()).add(entry)
        return found


_held: WeakValueDictionary[Path, OwnList] = WeakValueDictionary()


def list_in(data: Path) -> OwnList:
    """Return the list of a data folder: the same one, which was read already, as long as somebody holds it."""
    return _held.get(data.resolve()) or _held.setdefault(data.resolve(), OwnList(data.resolve()))


def own_list(recording: Path) -> OwnList:
    """Return the list that a recording belongs to: the one beside it."""
    return list_in(recording.resolve().parent)


def note_films(recording: Path, device: str, files: Sequence[Mapping[str, Any]]) -> None:
    """Note films that were taken into a recording, by their entries in `media.json`. Raises StorageError, OSError."""
    keys = ("folder", "file", "bytes", "sha256")
    known = [{key: one.get(key) for key in keys} for one in files if one.get("sha256")]
    own_list(recording).add(LineKind.FILMS, uuid_of(recording), device=device, files=known)


def camera_address(recording: Path, device: str) -> str:
    """Return where a camera was reached, never by `media.json`. Raises UnknownCamera, BadInstallation, OSError."""
    uuid = uuid_of(recording)
    by_name = uuid == f"name:{recording.name}"
    for one in reversed(own_list(recording).entries()):
        is_of_it = one["kind"] == LineKind.CAMERA and one["device"] == device
        if is_of_it and (one["recording"] == recording.name if by_name else one["uuid"] == uuid):
            return one["address"]
    raise UnknownCamera(recording, device)


def uuid_of(recording: Path, manifest: Manifest | None = None) -> str:
    """Return by what the list knows a recording: its uuid; its name where it has none, or its manifest is lost."""
    try:
        known = read_manifest(recording) if manifest is None else manifest
    except NotARecording:
        known = {}
    return str(known.get("uuid") or f"name:{recording.name}")


def _mac(key: bytes, before: bytes, text: bytes) -> bytes:
    return hmac.new(key, before + b"\n" + text, hashlib.sha256).hexdigest().encode()
