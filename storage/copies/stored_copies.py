"""The copy of a recording in a store, file by file: only files that are the recording's are destroyed there."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kitchensync.sensors.files_on_disk import NotPlainFile, check_plain, file_sha256
from kitchensync.storage.copies.cloud_store import CloudStore
from kitchensync.storage.copies.copy_log import is_uploaded
from kitchensync.storage.copies.owner import uuid_in
from kitchensync.storage.copies.target import Target
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.errors import TargetAway
from kitchensync.storage.installation.own_list import Entry, Outside
from kitchensync.storage.names import MANIFEST, PART_SUFFIX


@dataclass(frozen=True)
class Destroyed:
    """What became of a copy: how many files of the recording were there, and still are; how many are others'."""

    found: int = 0
    kept: int = 0
    foreign: int = 0

    @property
    def open(self) -> str:
        """What is left to do there; empty where nothing is."""
        kept = f"{self.kept} files are still there" if self.kept else ""
        foreign = f"{self.foreign} files there are no copies made here; look at them" if self.foreign else ""
        return "; ".join(filter(None, (kept, foreign)))


class CopyStore(Protocol):
    """A place with copies of recordings, one folder each."""

    def names_below(self, name: str) -> list[str]:
        """Return the files below a name, by their path there."""

    def size_of(self, name: str) -> int | None:
        """Return the size of a file."""

    def sha256_of(self, name: str) -> str:
        """Return the hash of a file; empty where it is no file of its own."""

    def manifest_of(self, name: str) -> bytes | None:
        """Return the `recording.json` in a recording's place, None where there is none."""

    def remove(self, name: str) -> None:
        """Destroy a file."""

    def tidy(self, name: str, files: set[str]) -> None:
        """Remove empty folders below a name, and the old versions of these files in it."""


class FolderStore:
    """A store that is a folder. No link is followed below it."""

    def __init__(self, where: Path, target: str) -> None:
        """Raises TargetAway where it is another store than the one that took the copies."""
        self._target, self.root = Target(where, target), where

    def names_below(self, name: str) -> list[str]:
        """Return the files below a folder, links among them."""
        home = self.root / name
        if home.is_symlink():
            raise TargetAway(home, "it is a link now")
        found = []
        for place, folders, files in os.walk(home):
            links = [one for one in folders if Path(place, one).is_symlink()]
            found += [Path(place, one).relative_to(home).as_posix() for one in (*files, *links)]
        return sorted(found)

    def size_of(self, name: str) -> int:
        """Return the size of a file."""
        return (self.root / name).lstat().st_size

    def sha256_of(self, name: str) -> str:
        """Return the hash of a file; empty for a link, a pipe or a device."""
        with suppress(NotPlainFile):
            check_plain(self.root / name)
            return file_sha256(self.root / name)
        return ""

    def manifest_of(self, name: str) -> bytes | None:
        """Return the `recording.json` in a recording's place, None where there is none."""
        return self._target.manifest_of(Path(name))

    def remove(self, name: str) -> None:
        """Destroy a file."""
        LOCAL.remove(self.root / name)

    def tidy(self, name: str, files: set[str]) -> None:
        """Remove a folder and those in it that hold nothing; old versions are not kept here."""
        for place, *_ in os.walk(self.root / name, topdown=False):
            with suppress(OSError):  # it holds something
                Path(place).rmdir()
        LOCAL.sync_folder(self.root)


@dataclass(frozen=True)
class Content:
    """Which files are a recording's: those that the list names as copied, and what its own folder holds now."""

    recording: Path
    copied: set[tuple[str, str]]

    def has(self, store: CopyStore, folder: str, name: str) -> bool:
        """Return whether a file of a store is the recording's, or the beginning of one that was on its way."""
        place = f"{folder}/{name}"
        sha256 = store.sha256_of(place)
        if (name, sha256) in self.copied:
            return True
        return bool(sha256) and self._begins(name, sha256, store.size_of(place) or 0)

    def _begins(self, name: str, sha256: str, size: int) -> bool:
        here = self.recording / name.removesuffix(PART_SUFFIX)
        try:
            check_plain(here)
            return file_sha256(here, size) == sha256
        except OSError:
            return False


def destroy_copy(entry: Entry, recording: Path, outside: Outside) -> Destroyed:
    """Destroy the copy of a recording in a store of the list; where another recording has its name, nothing.

    Raises OSError, StorageError.
    """
    where, name = entry["where"], recording.name
    store: CopyStore = (
        CloudStore(where)
        if is_uploaded(where, entry["target"])
        else FolderStore(Path(where), entry["target"])
    )
    names, content = store.names_below(name), Content(recording, outside.copied)
    if uuid_in(store.manifest_of(name)) not in (entry["uuid"], ""):
        return Destroyed()
    ours = [one for one in names if content.has(store, name, one)]
    for one in sorted(ours, key=lambda path: path == MANIFEST):  # last, since it tells whose copy it is
        store.remove(f"{name}/{one}")
    store.tidy(name, {file for file, _ in outside.copied})
    left = {*store.names_below(name)}
    return Destroyed(len(ours), len(left.intersection(ours)), len(left.difference(ours)))
