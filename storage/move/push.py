"""Bring a finished folder to where others find it: a folder, a cloud store, the Hugging Face hub.

What was sent is noted in a journal beside the folder, so that nothing is sent twice; the file given last comes last,
so that a copy that has it is whole.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from kitchensync.sensors.files_on_disk import file_sha256
from kitchensync.storage.copies.cloud_store import CloudStore, check_address, why
from kitchensync.storage.copies.copy_log import COPIED, CopyLog, CopyRecord
from kitchensync.storage.copies.target import Target
from kitchensync.storage.errors import CloudRefused, NotAsStated, SourceDiffers, StorageError

HUB = "hf://"
KIND = "datasets"


class HubStore:
    """A data set's repository, `hf://datasets/OWNER/NAME`; who may write is for the hub's own settings (HF_TOKEN)."""

    commits = True

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
        try:
            self._api = self._hub.HfApi()
            self._api.create_repo(repository, repo_type="dataset", private=True, exist_ok=True)
            self._there = self._hashes()
        except Exception as error:
            raise CloudRefused(url, "", why(error)) from error

    def _hashes(self) -> dict[str, tuple[int, str]]:
        """Return size and hash of the large files that are there; of small ones the hub says no SHA-256."""
        tree = self._api.list_repo_tree(self._repository, repo_type="dataset", recursive=True)
        large = ((one.path, getattr(one, "lfs", None)) for one in tree)
        return {path: (lfs.size, lfs.sha256) for path, lfs in large if lfs is not None}

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

    def finish(self) -> None:
        """Commit everything that was sent."""
        words = "Release a data set"
        self._api.create_commit(self._repository, self._added, commit_message=words, repo_type="dataset")


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


class Store(Protocol):
    """A place that takes files; `commits` where they count only after `finish`, and not at once."""

    identity: str
    commits: bool = False

    def holds(self, name: str, size: int, sha256: str, *, noted: bool) -> bool:
        """Return whether a file is there as it must be; one that is noted in the journal need not be read again."""

    def send(self, source: Path, name: str, sha256: str, tell: Tell) -> str:
        """Bring a file there, prove it, and say how it was read back. Raises SourceDiffers, CopyDiffers."""

    def finish(self) -> None:
        """Make what was sent count, where it does not at once."""
        return


def push(
    folder: Path, files: Mapping[str, str], to: str, journal: Path, progress: Progress = lambda *_: None
) -> Pushed:
    """Bring files (relative path -> SHA-256, in this order) to `to`: a path, or an address.

    Run again, it goes on. Raises StorageError.
    """
    check_address(to)
    journal.mkdir(parents=True, exist_ok=True)
    sizes = {name: (folder / name).stat().st_size for name in files}
    total, safe = sum(sizes.values()), 0
    sent: list[CopyRecord] = []
    with CopyLog(journal) as log:
        store = _store(to, log)
        for name, sha256 in files.items():
            try:
                tell = partial(_part_of, progress, name, safe, total)
                line = _bring(store, log, folder / name, name, sha256, to, tell)
            except StorageError:
                raise
            except Exception as error:
                raise CloudRefused(to, name, why(error)) from error
            sent += [line] if line else []
            safe += sizes[name]
            progress(name, safe, total)
        _finish(store, log, sent, to)
    return Pushed(to, len(files), len(sent), sum(line.bytes for line in sent))


def _part_of(progress: Progress, name: str, safe: int, total: int, here: int) -> None:
    progress(name, safe + here, total)


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
    if not store.commits:
        log.write(line)
    return line


def _finish(store: Store, log: CopyLog, sent: list[CopyRecord], to: str) -> None:
    if store.commits and sent:
        try:
            store.finish()
        except Exception as error:
            raise CloudRefused(to, "", why(error)) from error
        for line in sent:
            log.write(line)


def _store(to: str, log: CopyLog) -> Store:
    if to.startswith(HUB):
        return HubStore(to)
    if "://" in to:
        return _Cloud(to)
    return _Folder(Path(to).absolute(), log)


class _Folder(Store):
    """A folder of a disk or a mounted store; the folder around it must be there."""

    def __init__(self, path: Path, log: CopyLog) -> None:
        """Look whether the store is the one of the last time. Raises TargetAway."""
        self._target = Target(path.parent, log.target_of(path))
        self._name = Path(path.name)
        self.identity = self._target.identity

    def holds(self, name: str, size: int, sha256: str, *, noted: bool) -> bool:
        """Read the copy back past the cache, unless it is noted and of the same size."""
        place = self._target.place_of(self._name, name)
        if not place.is_file() or place.stat().st_size != size:
            return False
        return noted or self._target.holds(self._name, name, sha256, lambda: False) is not None

    def send(self, source: Path, name: str, sha256: str, tell: Tell) -> str:
        """Copy, sync, read back past the cache; an interrupted copy goes on where it was."""
        return self._target.copy(source, self._name, name, sha256, lambda: False, tell).read


class _Cloud(Store):
    """A store that fsspec knows."""

    def __init__(self, url: str) -> None:
        """Open it. Raises CloudRefused."""
        self._store = CloudStore(url)
        self.identity = url

    def holds(self, name: str, size: int, sha256: str, *, noted: bool) -> bool:
        """Ask for the size; a file that is not noted is read back."""
        return self._store.size_of(name) == size and (noted or self._store.sha256_of(name) == sha256)

    def send(self, source: Path, name: str, sha256: str, tell: Tell) -> str:
        """Write and read back."""
        self._store.send(source, name, sha256, tell)
        return "downloaded"
