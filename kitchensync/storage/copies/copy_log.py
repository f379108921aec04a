"""`copies.jsonl`: verified copies of a recording's files, and freed local files; append-only.

It is part of the recording folder. Only the installation's own list decides what is deleted in a store.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kitchensync.shell.files_on_disk import read_plain
from kitchensync.shell.host_clock import utc_anchor
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.disk.self_check import MOST_LINES_BYTES, checked_json, checked_lines
from kitchensync.storage.errors import MoverBusy, UnreadableFile
from kitchensync.storage.installation.own_list import LineKind, Outside, own_list, uuid_of
from kitchensync.storage.manifest import note_change
from kitchensync.storage.names import COPIES as COPY_LOG
from kitchensync.storage.names import MANIFEST, is_path_inside

SCHEMA = "copy/1"
BEGUN, COPIED, FREED = "begun", "copied", "freed"
"""A store is logged as begun before the first byte is sent."""


@dataclass(frozen=True)
class CopyRecord:
    """One verified action."""

    kind: str
    file: str
    bytes: int
    sha256: str
    mtime_ns: int
    "Of the local file, to detect changes of events and reports."
    target: str
    "Identity of the store, independent of its mount path."
    where: str
    read: str
    "How it was read back: direct, dropped, cached."
    utc_ns: int = field(default_factory=lambda: utc_anchor().utc_ns)
    schema: str = SCHEMA


_RECORD = TypeAdapter(CopyRecord)


def read_copies(recording: Path) -> list[CopyRecord]:
    """Read all undamaged lines of a recording's copy log.

    A damaged line is ignored, so that its file is copied and verified again; `verify` reports it. Raises
    UnreadableFile for an undamaged line with other content.
    """
    path = recording / COPY_LOG
    if not path.exists():
        return []
    content = read_plain(path, MOST_LINES_BYTES)
    try:
        lines = [_RECORD.validate_json(text, strict=True) for text in checked_lines(content)]
    except ValidationError as error:
        raise UnreadableFile(path, "a line is none of a copy log") from error
    if any(line.kind != BEGUN and not is_path_inside(line.file) for line in lines):
        raise UnreadableFile(path, "a line names a file outside of the recording")
    return lines


def stores_of(recording: Path) -> list[CopyRecord]:
    """Return a line for each store in the copy log, the last one first."""
    return list({(line.target, line.where): line for line in reversed(read_copies(recording))}.values())


def is_uploaded(where: str, target: str) -> bool:
    """Return whether a store was written by `upload` or `push`; its address is then its identity."""
    return target == where or "://" in where


def folders_of(recording: Path) -> list[CopyRecord]:
    """Return a line for each folder with copies, the last one first."""
    return [line for line in stores_of(recording) if not is_uploaded(line.where, line.target)]


def freed_lines(recording: Path) -> list[CopyRecord]:
    """Return a line for each missing freed file and each of its stores."""
    freed = (line for line in read_copies(recording) if line.kind == FREED)
    return [line for line in freed if not (recording / line.file).exists()]


def freed_to(recording: Path) -> list[str]:
    """Return the stores of freed files that are missing here."""
    return sorted({line.where for line in freed_lines(recording)})


def is_store_of_another(recording: Path, where: Path) -> bool:
    """Return whether a store at this path is in the copy log of a recording beside this one."""
    words = b'"where": ' + json.dumps(str(where), ensure_ascii=False).encode() + b","
    for log in recording.parent.glob(f"*/{COPY_LOG}"):
        with suppress(OSError):  # unreadable, as of another user
            if log.parent != recording and words in read_plain(log, MOST_LINES_BYTES):
                return True
    return False


class CopyLog:
    """The copy log, opened by the only mover of a recording."""

    def __init__(self, recording: Path) -> None:
        """Lock it. Raises MoverBusy if another mover has it, OSError if it cannot be written."""
        self._recording = recording
        self._uuid = uuid_of(recording) if (recording / MANIFEST).is_file() else ""
        self._handle = os.open(
            recording / COPY_LOG, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
        )
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._handle)
            raise MoverBusy(recording) from error
        try:
            content = read_plain(recording / COPY_LOG, MOST_LINES_BYTES)
            # the files of torn and damaged lines are copied again
            sound = b"".join(checked_lines(content))
            if content.startswith(sound):
                os.ftruncate(self._handle, len(sound))
            else:
                os.ftruncate(self._handle, 0)
                os.write(self._handle, sound)
                os.fsync(self._handle)
            LOCAL.sync_folder(recording)
            lines = read_copies(recording)
        except BaseException:
            os.close(self._handle)  # otherwise it stays locked until the process ends
            raise
        self.copies = {(line.file, line.target): line for line in lines if line.kind == COPIED}

    def __enter__(self) -> CopyLog:
        """Return the open log."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close and unlock."""
        os.close(self._handle)
        note_change(self._recording)

    def write(self, line: CopyRecord) -> None:
        """Append a line and sync it. Raises OSError, also if only a part was written."""
        self.enter(line)
        text = checked_json(asdict(line))
        if os.write(self._handle, text) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._handle)
        if line.kind == COPIED:
            self.copies[line.file, line.target] = line
        else:
            note_change(self._recording)

    def enter(self, line: CopyRecord) -> None:
        """Enter data outside the recording in the installation's own list, before it is written or logged."""
        facts = {"target": line.target, "where": line.where}
        if self._uuid and line.kind == COPIED:
            own_list(self._recording).add(
                LineKind.COPY, self._uuid, **facts, file=line.file, sha256=line.sha256
            )
        elif self._uuid and line.kind == BEGUN:
            own_list(self._recording).add(LineKind.STORE, self._uuid, **facts)

    @cached_property
    def made_here(self) -> Outside:
        """What this installation copied; the log itself is untrusted, as it comes with the recording."""
        return own_list(self._recording).outside(self._uuid) if self._uuid else Outside()

    def begin(self, target: str, where: str) -> None:
        """Log a store before anything is written to it, so that a withdrawal finds it after any interruption."""
        self.write(CopyRecord(BEGUN, "", 0, "", 0, target, where, ""))

    def target_of(self, where: Path) -> str | None:
        """Return the earlier identity of a store at this path."""
        targets = [line.target for line in self.copies.values() if line.where == str(where)]
        return targets[-1] if targets else None
