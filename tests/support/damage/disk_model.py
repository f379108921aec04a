"""A model of a disk that loses its power: what the rules of fsync promise, and nothing more.

A `TracingDisk` does the real work and keeps a log. `remains` builds the disk as it may be found after a cut behind
any entry of the log:

- bytes of a file are there for sure up to its last sync; what was written later is there, or not, or torn;
- a name (made, renamed, removed) is there for sure once its folder was synced; later changes of a folder are each
  there or not, in any combination, but a rename happens whole.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kitchensync.storage.disk.durable import Disk


@dataclass(frozen=True)
class Entry:
    """One call: what, on which path or inode, with which content or second path."""

    what: str
    path: Path
    inode: int = 0
    data: Any = None


@dataclass
class TracingDisk(Disk):
    """Works on the real disk and logs what was asked; `note` puts other moments into the log."""

    log: list[Entry] = field(default_factory=list)
    _files: dict[int, tuple[int, Path]] = field(default_factory=dict)
    _count: int = 0

    def note(self, what: str, data: Any) -> None:
        self.log.append(Entry(what, Path(), 0, data))

    def make_folder(self, path: Path) -> None:
        if not path.exists():
            self.log.append(Entry("mkdir", path))
        super().make_folder(path)

    def create(self, path: Path, *, direct: bool = False) -> int:
        handle = super().create(path, direct=direct)
        self._count += 1
        self._files[handle] = (self._count, path)
        self.log.append(Entry("create", path, self._count))
        return handle

    def write(self, handle, buffers) -> None:
        super().write(handle, buffers)
        inode, path = self._files[handle]
        self.log.append(Entry("write", path, inode, b"".join(bytes(buffer) for buffer in buffers)))

    def sync(self, handle: int) -> None:
        super().sync(handle)
        inode, path = self._files[handle]
        self.log.append(Entry("sync", path, inode))

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self.log.append(Entry("rename", old, 0, new))

    def remove(self, path: Path) -> None:
        if path.exists():
            self.log.append(Entry("remove", path))
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        super().sync_folder(path)
        self.log.append(Entry("sync_folder", path))


def remains(log: list[Entry], root: Path, target: Path, choose: Callable[[], float]) -> None:
    """Build in `target` what may be left of `root` after a cut behind the last entry of `log`.

    `choose` returns numbers in [0, 1): below a half keeps what is not safe, above loses it.
    """
    content: dict[int, bytes] = {}
    safe: dict[int, int] = {}
    durable: dict[Path, int] = {}
    pending: list[Entry] = []
    for entry in log:
        if entry.what == "write":
            content[entry.inode] = content.get(entry.inode, b"") + entry.data
        elif entry.what == "sync":
            safe[entry.inode] = len(content.get(entry.inode, b""))
        elif entry.what == "sync_folder":
            now, pending = (
                [e for e in pending if e.path.parent == entry.path],
                [e for e in pending if e.path.parent != entry.path],
            )
            for change in now:
                _apply(durable, change)
        elif entry.what in ("mkdir", "create", "rename", "remove"):
            pending.append(entry)
    for change in pending:
        if choose() < 0.5:
            _apply(durable, change)
    _write_out(durable, content, safe, root, target, choose)


def _apply(names: dict[Path, int], change: Entry) -> None:
    if change.what == "mkdir":
        names[change.path] = 0
    elif change.what == "create":
        names[change.path] = change.inode
    elif change.what == "remove":
        names.pop(change.path, None)
    elif change.path in names:
        names[change.data] = names.pop(change.path)


def _write_out(
    names: dict[Path, int],
    content: dict[int, bytes],
    safe: dict[int, int],
    root: Path,
    target: Path,
    choose: Callable[[], float],
) -> None:
    folders = {path for path, inode in names.items() if inode == 0} | {root}
    for path, inode in sorted(names.items()):
        if any(parent not in folders for parent in path.parents if root in parent.parents):
            continue  # its folder did not survive
        place = target / path.relative_to(root)
        if inode == 0:
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        whole = content.get(inode, b"")
        least = safe.get(inode, 0)
        kept = least + int((len(whole) - least) * choose())
        tail = bytearray(whole[least:kept])
        if tail and choose() < 0.5:  # a size that came before its blocks
            tail[: len(tail) // 2] = bytes(len(tail) // 2)
        place.write_bytes(whole[:least] + bytes(tail))


def choices(seed: int) -> Callable[[], float]:
    """Return a seeded `choose`; seeds 0 and 1 keep all or lose all."""
    if seed < 2:
        return lambda: 0.0 if seed == 0 else 0.999999
    return random.Random(seed).random
