"""Bring a finished folder to where others find it: a folder, a cloud store, the Hugging Face hub.

What was sent is noted in a journal beside the folder, so that nothing is sent twice; the file given last comes last,
so that a copy that has it is whole.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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
    """A data set's repository, `hf://datasets/OWNER/NAME`; who may write is for the hub's own settings (HF_TOKEN)."""

    def __init__(self, url: str) -> None:
        """Make the repository where there is none, private: publishing it is done by hand. Raises CloudRefused."""
        kind, _, repository = url.removeprefix(HUB).strip("/").partition("/")
        if kind != KIND or repository.count("/") != 1:
            raise CloudRefused(url, "", f"the address is {HUB}{KIND}/OWNER/NAME")
        try:
            self._hub: Any = importlib.import_module("huggingface_hub")
        except ImportError as error:
            raise CloudRefused(url, "", f"{error}; pip install 'kitchensync[hub]'") from error
        self._hub.utils.disable_progress_bars()  # there is one already
        self.identity, self._repository = url, repository
        self._added: list[Any] = []
        with refusals(url):
            self._api = self._hub.HfApi()
            self._api.create_repo(repository, repo_type="dataset", private=True, exist_ok=True)
            tree = self._api.list_repo_tree(self._repository, repo_type="dataset", recursive=True)
            large = ((one.path, getattr(one, "lfs", None)) for one in tree)
            self._there = {path: (lfs.size, lfs.sha256) for path, lfs in large if lfs is not None}

    def holds(self, name: str, size: int, sha256: str, *, noted: bool) -> bool:
        """Compare with what the hub says it has; a small file is as it is noted."""
        return self._there[name] == (size, sha256) if name in self._there else noted

    def send(self, source: Path, name: str, sha256: str, tell: Callable[[int], None]) -> str:
        """Send a large file, which the hub takes once, by its hash; a small one goes with the commit."""
        if file_sha256(source) != sha256:
            raise SourceDiffers(source)
        one = self._hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=source)
        self._api.preupload_lfs_files(self._repository, [one], repo_type="dataset")
        self._added.append(one)
        tell(source.stat().st_size)
        return "hash known to the hub"

    def names(self) -> list[str]:
        """Return the files of the repository; earlier revisions keep theirs."""
        tree = self._api.list_repo_tree(self._repository, repo_type="dataset", recursive=True)
        files = (one.path for one in tree if isinstance(one, self._hub.hf_api.RepoFile))
        return [path for path in files if path != ".gitattributes"]  # the hub's own

    def sha256_of(self, name: str) -> str | None:
        """Return the hash of a large file; of small ones the hub says none."""
        return self._there[name][1] if name in self._there else None

    def remove(self, name: str) -> None:
        """Take a file out with the next commit."""
        self._added.append(self._hub.CommitOperationDelete(path_in_repo=name))

    def finish(self) -> None:
        """Commit everything that was sent or taken out."""
        words = "Release a data set"
        self._api.create_commit(self._repository, self._added, commit_message=words, repo_type="dataset")
        self._added = []


Tell = Callable[[int], None]
Progress = Callable[[str, int, int], None]
"""File, bytes that are there (a file on its way in part), bytes in all."""


@dataclass(frozen=True)
class Pushed:
    """What was done."""

    to: str
    files: int
    sent: int
    sent_bytes: int
    removed: list[str]
    "Files of an earlier push that the folder no longer has, removed there."
    kept_old: list[str]
    "The same, left there because it was asked for."
    foreign: list[str]
    "Files there that no push of this installation brought; they are left."


class FolderStore:
    """A folder in a store: a disk, a mounted one, or one that fsspec knows."""

    def __init__(self, store: CopyStore, folder: str) -> None:
        self._store, self._folder, self.identity = store, folder, store.identity

    def holds(self, name: str, size: int, sha256: str, *, noted: bool) -> bool:
        """Ask for the size; a file that is not noted is read back."""
        place = self._folder + name
        return self._store.size_of(place) == size and (noted or self._store.sha256_of(place) == sha256)

    def send(self, source: Path, name: str, sha256: str, tell: Tell) -> str:
        """Write and read back."""
        return self._store.send(source, self._folder + name, sha256, tell).read

    def names(self) -> list[str]:
        """Return the files in the folder, but what systems left there."""
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
    """Bring files (relative path -> SHA-256, in this order) to `to`: a path, or an address; remove what left them.

    The list of the installation over `data` tells what earlier pushes brought there, and is told which recordings
    are there now (`holds`, their uuids). Run again, it goes on. Raises StorageError, OSError.
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
    """Enter what this push brought into the installation's list; return path and hash of all that pushes brought."""
    if not data.is_dir():  # a published data set without recordings of ours
        return set()
    own, key = OwnList(data), f"pushed to {to.rstrip('/')}"
    known = own.outside(key).copied
    brought = {(line.file, line.sha256) for line in sent}
    brought |= {(name, sha256) for name, sha256 in files.items() if (name, identity) in log.copies}
    for name, sha256 in sorted(brought - known):
        own.add(LineKind.COPY, key, target=identity, where=to, file=name, sha256=sha256)
    return known | brought


def _others(
    store: Store, files: Mapping[str, str], ours: set[tuple[str, str]]
) -> tuple[list[str], list[str]]:
    """Return which files there are of earlier pushes of ours, and which are others'."""
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
    """Send a file unless it is there; return its line, which is written at once where the file counts at once."""
    facts = source.stat()
    known = log.copies.get((name, store.identity))
    if store.holds(name, facts.st_size, sha256, noted=known is not None and known.sha256 == sha256):
        return None
    try:
        read = store.send(source, name, sha256, tell)
    except SourceDiffers as error:
        raise NotAsStated(source) from error
    line = CopyRecord(COPIED, name, facts.st_size, sha256, facts.st_mtime_ns, store.identity, to, read)
    if isinstance(store, FolderStore):  # the hub's count after its commit
        log.write(line)
    return line


def _store(to: str, log: CopyLog) -> Store:
    if to.startswith(HUB):
        return HubStore(to)
    if "://" in to:
        return FolderStore(CloudStore(to), "")
    path = Path(to).resolve()  # the folder around it must be there
    return FolderStore(Target(path.parent, log.target_of(path)), f"{path.name}/")
