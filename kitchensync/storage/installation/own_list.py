"""`own.jsonl`: what this installation wrote outside its recordings, and its unfinished withdrawals.

A recording folder may be forged with correct checksums. So only this list decides what is deleted or contacted
outside a recording. Its lines are chained by HMAC with the installation's key.
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
"""Start of the chain."""


class LineKind(StrEnum):
    """Kinds of lines, with their facts besides the uuid of the recording."""

    STORE = "store"
    "Copies will be written there: `target`, `where`."
    COPY = "copy"
    "A file was copied: `file`, `sha256`, `target`, `where`."
    CAMERA = "camera"
    "A camera of the rig films it: `recording`, `device`, `address`, `serial`."
    FILMS = "films"
    "Films were added: `device`, `files` as in `media.json`, without a description of their content."
    MADE = "made"
    "It was made from other recordings: `made_from`, their uuids."
    DERIVED = "derived"
    "A command wrote files from it: `path` or `server`, `command`, `files`; `data_set` if one was pushed."
    PUSHED = "pushed"
    "A data set replaced any earlier one at `where`: `holds`, the uuids of its recordings."
    WITHDRAWING = "withdrawing"
    "Its withdrawal began: `recording`, its folder's name, and `policy`."
    WITHDRAWN = "withdrawn"
    "It settled all lines up to `upto`, except `stores`, `derived` and `cameras`; `recording`, `policy`."


class ListLine(TypedDict, total=False):
    """One line: common facts, its number `n`, and the facts of its kind."""

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
    "Start (UTC ns), computer and process of each command without an end."
    ended: int
    holds: list[str]
    policy: str
    upto: int
    stores: list[ListLine]
    derived: list[ListLine]
    cameras: list[ListLine]


@dataclass
class Outside:
    """Data outside of one recording: written since its last withdrawal, or left open by it."""

    stores: dict[tuple[str, str], ListLine] = field(default_factory=dict)
    "Last line by (target, where)."
    known_stores: set[tuple[str, str]] = field(default_factory=set)
    "Also those of before the last withdrawal."
    copied: set[tuple[str, str]] = field(default_factory=set)
    "Path and SHA-256 of all copied files, also of before the last withdrawal."
    derived: list[ListLine] = field(default_factory=list)
    cameras: dict[str, ListLine] = field(default_factory=dict)
    "Last line by device, with the `files` that came from it."
    films: set[str] = field(default_factory=set)
    "SHA-256 of each added film."
    made_from: set[str] = field(default_factory=set)
    last: ListLine | None = None
    "The last line about its withdrawal."
    upto: int = 0
    "Number of the last line about it."

    @property
    def is_unfinished(self) -> bool:
        """Whether a withdrawal was interrupted, or left lines open."""
        if self.last is None:
            return False
        open_lines = self.last.get("stores"), self.last.get("derived"), self.last.get("cameras")
        return self.last["kind"] == LineKind.WITHDRAWING or any(open_lines)

    def add(self, entry: ListLine) -> None:
        """Process the next line."""
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
            self.films |= {film["sha256"] for film in entry["files"]}
            if camera := self.cameras.get(entry["device"]):
                camera["files"] = entry["files"]
        elif kind == LineKind.MADE:
            self.made_from |= {*entry["made_from"]}
        elif kind in (LineKind.WITHDRAWING, LineKind.WITHDRAWN):
            self.last = entry
        if kind == LineKind.WITHDRAWN:
            since = (line for line in self.stores.values() if line["n"] > entry["upto"])
            self.stores = {(line["target"], line["where"]): line for line in (*entry["stores"], *since)}
            self.derived = [*entry["derived"], *(line for line in self.derived if line["n"] > entry["upto"])]
            self.cameras = {line["device"]: line for line in entry["cameras"]}


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
            # a last line without its end was interrupted, and the chain goes on from the one before
            if end < size:
                os.ftruncate(handle, end)
            before = os.pread(handle, 64, end - 67) if end else _FIRST
            line = text + _MARK + _mac(key, before, text) + b'"}\n'
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
            os.fsync(handle)

    @contextmanager
    def _locked(self) -> Iterator[tuple[int, bytes]]:
        """Lock the list and open it for appending."""
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
        """Return every line, oldest first, without an incomplete last one.

        Lines are only appended, so each line is read and verified once per object. Raises BadInstallation at the
        first line that this installation did not write, OSError.
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
        """Return the data outside of one recording. Raises BadInstallation, OSError."""
        return self.all_outside().get(uuid, Outside())

    def all_outside(self) -> dict[str, Outside]:
        """Return the data outside of each recording, by uuid. Raises BadInstallation, OSError."""
        outside: dict[str, Outside] = {}
        for entry in self.entries():
            outside.setdefault(entry["uuid"], Outside()).add(entry)
        return outside


_held: WeakValueDictionary[Path, OwnList] = WeakValueDictionary()


def list_in(data: Path) -> OwnList:
    """Return the list of a data folder: the same object as long as it is in use."""
    return _held.get(data.resolve()) or _held.setdefault(data.resolve(), OwnList(data.resolve()))


def own_list(recording: Path) -> OwnList:
    """Return the list beside a recording."""
    return list_in(recording.resolve().parent)


def note_films(recording: Path, device: str, files: Sequence[Mapping[str, Any]]) -> None:
    """Enter films that were added to a recording, by their entries in `media.json`. Raises StorageError, OSError."""
    keys = ("folder", "file", "bytes", "sha256")
    facts = [{key: film.get(key) for key in keys} for film in files if film.get("sha256")]
    own_list(recording).add(LineKind.FILMS, uuid_of(recording), device=device, files=facts)


def camera_address(recording: Path, device: str) -> str:
    """Return the address of a camera, never from `media.json`. Raises UnknownCamera, BadInstallation, OSError."""
    uuid = uuid_of(recording)
    by_name = uuid == f"name:{recording.name}"
    for line in reversed(own_list(recording).entries()):
        is_of_it = line["kind"] == LineKind.CAMERA and line["device"] == device
        if is_of_it and (line["recording"] == recording.name if by_name else line["uuid"] == uuid):
            return line["address"]
    raise UnknownCamera(recording, device)


def uuid_of(recording: Path, manifest: Manifest | None = None) -> str:
    """Return the uuid of a recording in the list; `name:` with its name if it has none, or no manifest."""
    try:
        content = read_manifest(recording) if manifest is None else manifest
    except NotARecording:
        content = {}
    return str(content.get("uuid") or f"name:{recording.name}")


def _mac(key: bytes, before: bytes, text: bytes) -> bytes:
    return hmac.new(key, before + b"\n" + text, hashlib.sha256).hexdigest().encode()
