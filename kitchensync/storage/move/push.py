"""Send a finished folder to a folder, a cloud store, or the Hugging Face hub.

Sent files are entered in a journal beside the folder, so that none is sent twice. Files are sent in the given order,
so that a copy with the last file is complete.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kitchensync.shell.files_on_disk import file_sha256, is_left_by_system
from kitchensync.storage.copies.cloud_store import CloudStore, check_address, refusals
from kitchensync.storage.copies.copy_log import COPIED, CopyLog, CopyRecord
from kitchensync.storage.copies.stored_copies import CopyStore
from kitchensync.storage.copies.target import Target
from kitchensync.storage.errors import CloudRefused, NotAsStated, SourceDiffers
from kitchensync.storage.installation.own_list import LineKind, OwnList
from kitchensync.storage.names import HUB

KIND = "datasets"


class HubStore:
    """A data set's repository, `hf://datasets/OWNER/NAME`; the hub's own settings have the login (HF_TOKEN)."""

    def __init__(self, url: str) -> None:
        """Create a missing repository as private; it is published by hand. Raises CloudRefused."""
        kind, _, repository = url.removeprefix(HUB).strip("/").partition("/")
        if kind != KIND or repository.count("/") != 1:
            raise CloudRefused(url, "", f"the address is {HUB}{KIND}/OWNER/NAME")
        try:
            self._hub: Any = importlib.import_module("huggingface_hub")
        except ImportError as error:
            raise CloudRefused(url, "", f"{error}; pip install 'kitchensync[hub]'") from error
        self._hub.utils.disable_progress_bars()  # we show our own
        self.identity, self._repository = url, repository
        self._added: list[Any] = []
        with refusals(url):
            self._api = self._hub.HfApi()
            self._api.create_repo(repository, repo_type="dataset", private=True, exist_ok=True)
            tree = self._api.list_repo_tree(self._repository, repo_type="dataset", recursive=True)
            large = ((entry.path, getattr(entry, "lfs", None)) for entry in tree)
            self._there = {path: (lfs.size, lfs.sha256) for path, lfs in large if lfs is not None}

    def holds(self, name: str, size: int, sha256: str, *, noted: bool) -> bool:
        """Compare a large file with the hub's list; a small file is present if it is logged."""
        return self._there[name] == (size, sha256) if name in self._there else noted

    def send(self, source: Path, name: str, sha256: str, tell: Callable[[int], None]) -> str:
        """Send a large file, which the hub stores by its hash; a small one is sent with the commit."""
        if file_sha256(source) != sha256:
            raise SourceDiffers(source)
        operation = self._hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=source)
        self._api.preupload_lfs_files(self._repository, [operation], repo_type="dataset")
        self._added.append(operation)
        tell(source.stat().st_size)
        return "hash known to the hub"

    def names(self) -> list[str]:
        """Return the files of the repository; earlier revisions keep theirs."""
        tree = self._api.list_repo_tree(self._repository, repo_type="dataset", recursive=True)
        files = (entry.path for entry in tree if isinstance(entry, self._hub.hf_api.RepoFile))
        return [path for path in files if path != ".gitattributes"]  # the hub's own

    def sha256_of(self, name: str) -> str | None:
        """Return the hash of a large file; the hub has none for small ones."""
        return self._there[name][1] if name in self._there else None

    def remove(self, name: str) -> None:
        """Remove a file with the next commit."""
        self._added.append(self._hub.CommitOperationDelete(path_in_repo=name))

    def finish(self) -> None:
        """Commit all sent and removed files."""
        words = "Release a data set"
        self._api.create_commit(self._repository, self._added, commit_message=words, repo_type="dataset")
        self._added = []


Tell = Callable[[int], None]
Progress = Callable[[str, int, int], None]
"""File, bytes sent so far, total bytes."""


@dataclass(frozen=True)
class Pushed:
    """The object `release-push/1`."""

    status: str = field(default="PASS", init=False)
    "Always PASS: a push that fails is refused."
    to: str
    files: int
    "Files of the folder: all are there."
    sent: int
    "Files sent by this push."
    sent_bytes: int
    removed: list[str]
    "Removed files of an earlier push that are no longer in the folder."
    kept_old: list[str]
    "The same, kept on request."
    foreign: list[str]
    "Files that no push of this installation sent; they are kept."


class FolderStore:
    """A folder in a store: a disk, a mounted one, or one that fsspec knows."""

    def __init__(self, store: CopyStore, folder: str) -> None:
        self._store, self._folder, self.identity = store, folder, store.identity

    def holds(self, name: str, size: int, sha256: str, *, noted: bool) -> bool:
        """Compare the size; a file that is not logged is read back."""
        place = self._folder + name
        return self._store.size_of(place) == size and (noted or self._store.sha256_of(place) == sha256)

    def send(self, source: Path, name: str, sha256: str, tell: Tell) -> str:
        """Write and read back."""
        return self._store.send(source, self._folder + name, sha256, tell).read

    def names(self) -> list[str]:
        """Return the files in the folder, without those of operating systems."""
        names = self._store.names_below(self._folder.rstrip("/"))
        return [name for name in names if not any(map(is_left_by_system, name.split("/")))]

    def sha256_of(self, name: str) -> str:
        """Read a file back."""
        return self._store.sha256_of(self._folder + name)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._store.remove(self._folder + name)


Store = HubStore | FolderStore


def push(
    folder: Path,
    files: Mapping[str, str],
    to: str,
    journal: Path,
    progress: Progress = lambda *_: None,
    *,
    data: Path,
    keep_old: bool = False,
    holds: Iterable[str] = (),
) -> Pushed:
    """Send files (relative path -> SHA-256, in this order) to a path or address; remove those of earlier pushes.

    The list of the installation in `data` has the files of earlier pushes; the uuids of the recordings that are there
    now (`holds`) are entered. An interrupted push is continued. Raises StorageError, OSError.
    """
    check_address(to)
    journal.mkdir(parents=True, exist_ok=True)
    sizes = {name: (folder / name).stat().st_size for name in files}
    total, safe = sum(sizes.values()), 0
    sent: list[CopyRecord] = []
    with CopyLog(journal) as log:
        store = _store(to, log)
        for name, sha256 in files.items():
            with refusals(to, name):
                tell = partial(lambda name, safe, here: progress(name, safe + here, total), name, safe)
                line = _bring(store, log, folder / name, name, sha256, to, tell)
            sent += [line] if line else []
            safe += sizes[name]
            progress(name, safe, total)
        ours = _enter(files, sent, log, store.identity, to, data)
        old, foreign = _others(store, files, ours)
        removed, kept = ([], old) if keep_old else (old, [])
        for name in removed:
            store.remove(name)
        if isinstance(store, HubStore) and (sent or removed):
            with refusals(to):
                store.finish()
            for line in sent:
                log.write(line)
        if data.is_dir() and not kept:
            OwnList(data).add(LineKind.PUSHED, f"pushed to {to.rstrip('/')}", where=to, holds=[*holds])
    size = sum(line.bytes for line in sent)
    return Pushed(to, len(files), len(sent), size, removed, kept, foreign)


def _enter(
    files: Mapping[str, str], sent: list[CopyRecord], log: CopyLog, identity: str, to: str, data: Path
) -> set[tuple[str, str]]:
    """Enter the files of this push in the installation's list; return path and hash of the files of all pushes."""
    if not data.is_dir():  # a published data set without our recordings
        return set()
    own, key = OwnList(data), f"pushed to {to.rstrip('/')}"
    copied = own.outside(key).copied
    brought = {(line.file, line.sha256) for line in sent}
    brought |= {(name, sha256) for name, sha256 in files.items() if (name, identity) in log.copies}
    for name, sha256 in sorted(brought - copied):
        own.add(LineKind.COPY, key, target=identity, where=to, file=name, sha256=sha256)
    return copied | brought


def _others(
    store: Store, files: Mapping[str, str], ours: set[tuple[str, str]]
) -> tuple[list[str], list[str]]:
    """Return the other files at the destination: those of our earlier pushes, and foreign ones."""
    names = {name for name, _ in ours}
    old, foreign = list[str](), list[str]()
    for name in sorted(set(store.names()) - files.keys()):
        sha256 = store.sha256_of(name) if name in names else ""
        is_ours = name in names and (sha256 is None or (name, sha256) in ours)
        (old if is_ours else foreign).append(name)
    return old, foreign


def _bring(
    store: Store, log: CopyLog, source: Path, name: str, sha256: str, to: str, tell: Tell
) -> CopyRecord | None:
    """Send a file unless it is there; return its line, which is written at once except for the hub."""
    facts = source.stat()
    logged = log.copies.get((name, store.identity))
    if store.holds(name, facts.st_size, sha256, noted=logged is not None and logged.sha256 == sha256):
        return None
    try:
        read = store.send(source, name, sha256, tell)
    except SourceDiffers as error:
        raise NotAsStated(source) from error
    line = CopyRecord(COPIED, name, facts.st_size, sha256, facts.st_mtime_ns, store.identity, to, read)
    if isinstance(store, FolderStore):  # files of the hub are entered after its commit
        log.write(line)
    return line


def _store(to: str, log: CopyLog) -> Store:
    if to.startswith(HUB):
        return HubStore(to)
    if "://" in to:
        return FolderStore(CloudStore(to), "")
    path = Path(to).resolve()  # its parent must exist
    return FolderStore(Target(path.parent, log.target_of(path)), f"{path.name}/")
