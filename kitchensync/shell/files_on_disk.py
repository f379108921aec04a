"""Helpers for files on disk: regular files only, durable writes with permissions, hashes."""

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
"""Names of files and trash folders that operating systems and network storage create; they are never read or
copied."""


class NotPlainFile(OSError):
    """Not a regular file where a recording has one: a link leads elsewhere, a pipe never ends."""


def check_plain(path: Path) -> None:
    """Check that a path is a regular file, not a link. Raises NotPlainFile; OSError if it does not exist."""
    check_facts(os.lstat(path), path)


def check_facts(facts: os.stat_result, path: Path, most_bytes: int | None = None) -> None:
    """Check the result of `lstat` for a regular file of at most `most_bytes`. Raises NotPlainFile."""
    if not stat.S_ISREG(facts.st_mode):
        kind = _KINDS.get(stat.S_IFMT(facts.st_mode), "no file")
        raise NotPlainFile(errno.EINVAL, f"{kind}, not a file; put the file itself there", str(path))
    if most_bytes is not None and facts.st_size > most_bytes:
        why = f"too large: {facts.st_size} bytes, at most {most_bytes} are read; take it from a copy"
        raise NotPlainFile(errno.EINVAL, why, str(path))


def open_plain(path: Path) -> BinaryIO:
    """Open a regular file, not a link, for reading. Raises NotPlainFile, OSError."""
    check_plain(path)  # before opening, since opening a device may have effects
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        check_facts(os.fstat(handle), path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading, also through a link. Raises NotPlainFile, OSError."""
    check_facts(path.stat(), path)
    return path.open("rb")


NO_INODES = "no inodes left: the disk holds as many files as it can, whatever their size"


def lacks_inodes(folder: Path) -> bool:
    """Return whether a disk is out of inodes. Raises OSError.

    File systems without a limit, such as btrfs, report 0 inodes in total.
    """
    facts = os.statvfs(folder)
    return facts.f_files > 0 and facts.f_favail == 0


def read_plain(path: Path, most_bytes: int) -> bytes:
    """Read a regular file of at most `most_bytes`, not a link. Raises NotPlainFile, OSError."""
    with open_plain(path) as file:
        check_facts(os.fstat(file.fileno()), path, most_bytes)
        return file.read(most_bytes)


def is_left_by_system(name: str) -> bool:
    """Return whether a name is that of a system file or a trash folder."""
    return LEFT_BY_SYSTEMS.fullmatch(name) is not None


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the paths in a folder that match a pattern, sorted, without system files."""
    return sorted(path for path in folder.glob(pattern) if not is_left_by_system(path.name))


def files_below(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, sorted, without system files and trash.

    Linked folders are not entered; broken links, pipes and sockets are skipped.
    """
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_left_by_system(name))
        paths = (Path(place, name) for name in sorted(files) if not is_left_by_system(name))
        yield from (path for path in paths if path.is_file())


def sync_path(path: Path) -> None:
    """Flush the content of a file, or the names in a folder, to disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_sha256(path: Path, most_bytes: int | None = None) -> str:
    """Return the SHA-256 of a file, or of its first `most_bytes`."""
    with path.open("rb") as file:
        if most_bytes is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256()
        while piece := file.read(min(most_bytes, 1 << 20)):
            digest.update(piece)
            most_bytes -= len(piece)
        return digest.hexdigest()


def write_with_rights(path: Path, content: bytes, rights: int = 0o600) -> None:
    """Write a file atomically, with its permissions from the start. Raises OSError."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
