"""A folder for copies of recordings: a network store, a second disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kitchensync.shell.files_on_disk import NotPlainFile, check_plain, read_plain
from kitchensync.shell.untrusted_json import parse_object
from kitchensync.storage.disk.durable import LOCAL, Disk, make_durable_folders, write_whole
from kitchensync.storage.disk.read_back import STEP_BYTES, stored_sha256
from kitchensync.storage.errors import CopyDiffers, PlaceTaken, SourceDiffers, TargetAway, words_of
from kitchensync.storage.manifest import MOST_BYTES
from kitchensync.storage.names import MANIFEST, PART_SUFFIX

MARKER = ".kitchensync-target"


class Stopped(Exception):
    """The mover was stopped; the copied part is kept for the next time."""


@dataclass(frozen=True)
class Copied:
    """A file in the store that was read back and compared."""

    bytes: int
    sha256: str
    read: str


class Target:
    """One available store."""

    def __init__(self, path: Path, known: str | None = None, disk: Disk = LOCAL) -> None:
        """Check that the store is available; `known` is its earlier identity.

        Raises TargetAway, so that the disk below an unmounted store is not filled.
        """
        self.path = path
        self.disk = disk
        try:
            self.identity = self._identity(known)
        except (OSError, ValueError, KeyError) as error:
            raise TargetAway(path, words_of(error)) from error

    def _identity(self, known: str | None) -> str:
        marker = self.path / MARKER
        if not self.path.is_dir():
            raise TargetAway(self.path, "there is no such folder (is the store mounted?)")
        if not marker.exists():
            if known is not None:
                raise TargetAway(self.path, f"its {MARKER} is gone (is the store mounted?)")
            content = json.dumps({"schema": "target/1", "target": str(uuid.uuid4())}) + "\n"
            write_whole(marker, [content.encode()], PART_SUFFIX, self.disk)
        identity = str(parse_object(read_plain(marker, 1 << 16))["target"])
        if known is not None and identity != known:
            raise TargetAway(self.path, "another store is mounted there than before")
        return identity

    def place_of(self, recording: Path, relative: str) -> Path:
        """Return the path of a file of a recording in the store."""
        return self.path / recording.name / relative

    @property
    def url(self) -> str:
        """Return its path."""
        return str(self.path)

    def has(self, name: str) -> bool:
        """Return whether a path exists."""
        return os.path.lexists(self.path / name)

    def names_below(self, name: str) -> list[str]:
        """Return the files below a folder, with links. Raises TargetAway if the folder is a link."""
        home = self.path / name
        if home.is_symlink():
            raise TargetAway(home, "it is a link now")
        names = []
        for place, folders, files in os.walk(home):
            links = [name for name in folders if Path(place, name).is_symlink()]
            names += [Path(place, name).relative_to(home).as_posix() for name in (*files, *links)]
        return sorted(names)

    def size_of(self, name: str) -> int | None:
        """Return the size of a file, None if it is missing."""
        place = self.path / name
        return place.lstat().st_size if os.path.lexists(place) else None

    def sha256_of(self, name: str) -> str:
        """Return the hash of a file, read past the page cache; empty for a link, a pipe or a device."""
        with contextlib.suppress(NotPlainFile):
            check_plain(self.path / name)
            return stored_sha256(self.path / name)[0]
        return ""

    def send(self, source: Path, name: str, expected: str | None, tell: Callable[[int], None]) -> Copied:
        """Copy a file by `copy`, without interruption."""
        folder, _, relative = name.partition("/")
        return self.copy(source, Path(folder), relative, expected, lambda: False, tell)

    def tidy(self, name: str, files: set[str]) -> None:
        """Remove a folder and its subfolders if they are empty; there are no old versions of files."""
        for place, *_ in os.walk(self.path / name, topdown=False):
            with contextlib.suppress(OSError):  # not empty
                Path(place).rmdir()
        self.disk.sync_folder(self.path)

    def manifest_of(self, name: str) -> bytes | None:
        """Return the `recording.json` in a recording's place, or None. Raises OSError."""
        try:
            return read_plain(self.path / name / MANIFEST, MOST_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def announce(self, name: str, content: bytes, *, is_new: bool) -> None:
        """Write the manifest of an incomplete copy; a new one must not replace another.

        Raises PlaceTaken if another copy has begun meanwhile, TargetAway, OSError.
        """
        self._look_again()
        place = self.path / name / MANIFEST
        make_durable_folders(place.parent, self.path, self.disk)
        if is_new:
            try:
                place.touch(exist_ok=False)  # refuses one of two concurrent copies
            except FileExistsError as error:
                raise PlaceTaken(str(place.parent), "another copy, which has just begun") from error
        write_whole(place, [content], PART_SUFFIX, self.disk)
        self._check_kept(place)

    def _check_kept(self, place: Path) -> None:
        """Remove a file that did not reach the store. Raises TargetAway if the store was replaced."""
        try:
            self._look_again()
        except TargetAway:
            self.remove(place.relative_to(self.path).as_posix())
            raise

    def holds(self, recording: Path, relative: str, sha256: str, stopping: Callable[[], bool]) -> str | None:
        """Read a copy back past the cache; return how it was read if it is equal, else None."""
        place = self.place_of(recording, relative)
        if not place.is_file():
            return None
        digest, how = stored_sha256(place, stopping)
        if not digest:
            raise Stopped
        return how if digest == sha256 else None

    def copy(
        self,
        source: Path,
        recording: Path,
        relative: str,
        expected: str | None,
        stopping: Callable[[], bool],
        progress: Callable[[int], None] = lambda _: None,
    ) -> Copied:
        """Copy `source` as a file of a recording, sync it, read it back past the page cache, and rename it.

        An interrupted copy is continued. `expected` is the sealed hash. Raises Stopped, SourceDiffers (the local file
        is damaged), CopyDiffers (the store has other bytes), TargetAway (it was unmounted meanwhile; files below its
        mount point are removed), OSError.
        """
        self._look_again()
        place = self.place_of(recording, relative)
        make_durable_folders(place.parent, self.path, self.disk)
        part = place.with_name(place.name + PART_SUFFIX)
        size, digest = self._transfer(source, part, stopping, progress)
        if expected is not None and digest != expected:
            self.disk.remove(part)
            raise SourceDiffers(source)
        stored, how = stored_sha256(part, stopping)
        if not stored:
            raise Stopped
        if stored != digest:
            self.disk.remove(part)
            raise CopyDiffers(place)
        self.disk.rename(part, place)
        self.disk.sync_folder(place.parent)
        self._check_kept(place)
        return Copied(size, digest, how)

    def _look_again(self) -> None:
        """Raise TargetAway if the store is no longer the same."""
        try:
            self._identity(self.identity)
        except (OSError, ValueError, KeyError) as error:
            raise TargetAway(self.path, words_of(error)) from error

    def remove(self, name: str) -> None:
        """Destroy a file, and remove its empty parent folders."""
        place = self.path / name
        self.disk.remove(place)
        for folder in place.parents:
            if folder == self.path:
                break
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()

    def _transfer(
        self, source: Path, part: Path, stopping: Callable[[], bool], progress: Callable[[int], None]
    ) -> tuple[int, str]:
        """Transfer the content, continuing an interrupted transfer; return its size and hash."""
        sent = part.stat().st_size // STEP_BYTES * STEP_BYTES if part.exists() else 0
        sent = min(sent, source.stat().st_size // STEP_BYTES * STEP_BYTES)
        digest, size = hashlib.sha256(), 0
        handle = self.disk.reopen(part, sent)
        try:
            with source.open("rb") as file:
                while piece := file.read(STEP_BYTES):
                    digest.update(piece)
                    if size >= sent:
                        self.disk.write(handle, [piece])
                    size += len(piece)
                    progress(size)
                    if stopping():
                        raise Stopped
            self.disk.sync(handle)
        finally:
            self.disk.close(handle)
        return size, digest.hexdigest()
