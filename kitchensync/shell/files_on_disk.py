"""What everybody asks of a file on a disk: that it is durable, with its rights from the start, and its hash."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


LEFT_BY_SYSTEMS = re.compile(
    r"\._.*|\.DS_Store|\.AppleDouble|\.Trashes|\.Spotlight-V100|\.fseventsd|\.TemporaryItems"
    r"|\$RECYCLE\.BIN|System Volume Information|Thumbs\.db|desktop\.ini|\.Trash(-.*)?|@eaDir|#recycle"
)
"""Names of what operating systems and network storage put into other people's folders, and where what was deleted
lies: nothing of it is ever read, offered or copied."""


class NotPlainFile(OSError):
    """Something else than a file where a recording has one: a link leads elsewhere, a pipe never ends."""


def check_plain(path: Path) -> None:
    """Refuse what is no file of its own. Raises NotPlainFile; OSError where nothing is there."""
    check_facts(os.lstat(path), path)


def check_facts(facts: os.stat_result, path: Path, most_bytes: int | None = None) -> None:
    """Refuse what `lstat` tells to be no file, or one of more than `most_bytes`. Raises NotPlainFile."""
    if not stat.S_ISREG(facts.st_mode):
        kind = _KINDS.get(stat.S_IFMT(facts.st_mode), "no file")
        raise NotPlainFile(errno.EINVAL, f"{kind}, not a file; put the file itself there", str(path))
    if most_bytes is not None and facts.st_size > most_bytes:
        why = f"too large: {facts.st_size} bytes, at most {most_bytes} are read; take it from a copy"
        raise NotPlainFile(errno.EINVAL, why, str(path))


def open_plain(path: Path) -> BinaryIO:
    """Open a file of its own for reading; nothing else is opened. Raises NotPlainFile, OSError."""
    check_plain(path)  # opening a device may do something already
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        check_facts(os.fstat(handle), path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading, by a link too; a pipe or a device may never end. Raises NotPlainFile, OSError."""
    check_facts(path.stat(), path)
    return path.open("rb")


NO_INODES = "no inodes left: the disk holds as many files as it can, whatever their size"


def lacks_inodes(folder: Path) -> bool:
    """Return whether a disk with free space takes no more files. Raises OSError.

    Some file systems (btrfs) know no bound and state 0.
    """
    facts = os.statvfs(folder)
    return facts.f_files > 0 and facts.f_favail == 0


def read_plain(path: Path, most_bytes: int) -> bytes:
    """Read a file of its own whole, of at most `most_bytes`. Raises NotPlainFile, OSError."""
    with open_plain(path) as file:
        check_facts(os.fstat(file.fileno()), path, most_bytes)
        return file.read(most_bytes)


def is_left_by_system(name: str) -> bool:
    """Return whether a file or folder of this name was put there by an operating system, or was deleted."""
    return LEFT_BY_SYSTEMS.fullmatch(name) is not None


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return what matches a pattern in a folder, by name, but what systems left there."""
    return sorted(path for path in folder.glob(pattern) if not is_left_by_system(path.name))


def files_below(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, by name, but what systems left and what was deleted.

    Linked folders are not entered; a link that leads nowhere, a pipe or a socket is no file.
    """
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_left_by_system(name))
        paths = (Path(place, name) for name in sorted(files) if not is_left_by_system(name))
        yield from (path for path in paths if path.is_file())


def sync_path(path: Path) -> None:
    """Return when the content of a file, or the names in a folder, are on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_sha256(path: Path, most_bytes: int | None = None) -> str:
    """Hash a file, or its first bytes, by whatever way reading is quickest."""
    with path.open("rb") as file:
        if most_bytes is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256()
        while piece := file.read(min(most_bytes, 1 << 20)):
            digest.update(piece)
            most_bytes -= len(piece)
        return digest.hexdigest()


def write_with_rights(path: Path, content: bytes, rights: int = 0o600) -> None:
    """Write a file that nobody sees half-written nor, for a moment, with other rights. Raises OSError."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
