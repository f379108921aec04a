"""Log the files that commands write from a recording in the installation's list, so that a withdrawal finds them.

A command runs within `noting`; the consent check reports the recordings it uses, the options report where it writes.
A place has two lines in the list: one when the first file is begun, one when the command ends, with size and time of
each file. With only the first line, the command was killed or is still running.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from glob import escape
from itertools import product
from pathlib import Path
from socket import gethostname
from stat import S_ISREG
from typing import Any

from kitchensync.storage.errors import StorageError, words_of
from kitchensync.storage.installation.own_list import LineKind, own_list, uuid_of
from kitchensync.storage.names import MANIFEST

PART = ".kitchensync-part"
"""Suffix of an incomplete file; long, so that no other program uses it."""
OLD = "-old"
Stamp = tuple[int, int]
"""Bytes and modification time in ns of a file."""


@dataclass
class _Job:
    command: str
    began_utc_ns: int = field(default_factory=time.time_ns)
    recordings: set[Path] = field(default_factory=set)
    before: dict[Path, dict[str, Stamp]] = field(default_factory=dict)
    exact: set[Path] = field(default_factory=set)
    begun: set[Path] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)
    noted: set[tuple[Path, Path | str]] = field(default_factory=set)
    one: Path | None = None
    alone: dict[Path, Path] = field(default_factory=dict)
    kept: set[Path] = field(default_factory=set)

    @property
    def began(self) -> list[Any]:
        """Time of its start, host name and process id, to check later whether it still runs."""
        return [self.began_utc_ns, gethostname(), os.getpid()]

    def note(self, recordings: Iterable[Path], where: Iterable[Path | str]) -> None:
        """Log begun places, and servers, for the recordings in use."""
        for recording, place in product(recordings, where):
            with suppress(OSError, StorageError):  # the lines at the end fail too, which is reported
                if isinstance(place, str):
                    self.append(recording, {"server": place})
                elif recording in place.parents:
                    continue
                else:
                    self.append(recording, {"path": str(place), "begun": [self.began]})
                self.noted.add((recording, place))

    def append(self, recording: Path, line: dict[str, Any]) -> None:
        """Add a line about a recording that has a manifest. Raises OSError, StorageError."""
        if (recording / MANIFEST).exists():
            own_list(recording).add(LineKind.DERIVED, uuid_of(recording), command=self.command, **line)


_job: ContextVar[_Job | None] = ContextVar("job", default=None)


@contextmanager
def noting(command: str, say: Callable[[str], object]) -> Iterator[None]:
    """Log the files written from each recording used inside, also if the command fails.

    `say` reports recordings for which this failed: a withdrawal will not find their files.
    """
    job = _Job(command)
    token = _job.set(job)
    try:
        yield
    finally:
        _job.reset(token)
        for why in _note_ended(job):
            say(why)


def asked(recording: Path) -> None:
    """Report that the running command uses a recording."""
    if (job := _job.get()) is not None and recording not in job.recordings:
        job.recordings.add(recording)
        job.note([recording], job.begun | job.sent)


def may_write(place: Path) -> None:
    """Record the state of a place where the running command may write, unless it is inside a recorded place."""
    if (job := _job.get()) is not None and job.before.keys().isdisjoint((place, *place.parents)):
        job.before[place] = stamps_of(place)


def will_write(place: Path) -> None:
    """Log where the running command writes, before it writes."""
    if (job := _job.get()) is None:
        return
    may_write(place)
    job.exact.add(place)
    if job.one is not None:
        job.note([job.one], {place} - job.alone.keys())
        job.alone[place] = job.one
    else:
        new = job.before.keys() & {place, *place.parents} - job.begun
        job.begun |= new
        job.note(job.recordings, new)


@contextmanager
def of_one(recording: Path) -> Iterator[None]:
    """Attribute files written inside to one recording, even if the command uses others."""
    if (job := _job.get()) is None:
        yield
        return
    job.one = recording
    try:
        yield
    finally:
        job.one = None


def keeps(place: Path) -> None:
    """Report that a file is up to date and is not written again: an earlier run made it, maybe a killed one."""
    if (job := _job.get()) is not None:
        will_write(place)
        job.kept.add(place)


def pushed(recordings: Iterable[Path], data_set: Path, to: str) -> None:
    """Log that the running command pushes a data set with these recordings to a place."""
    if (job := _job.get()) is not None:
        for recording in recordings:
            job.append(recording, {"server": to, "data_set": str(data_set)})


def sent(where: str) -> None:
    """Log that the running command sends data to a server, where we cannot delete it."""
    if (job := _job.get()) is not None:
        job.note(job.recordings, {where} - job.sent)
        job.sent.add(where)


def stamps_of(place: Path) -> dict[str, Stamp]:
    """Return size and time of each file at a place, by relative path; "" for the place itself."""
    files = [place] if place.is_file() else sorted(_below(place))
    stamps = {}
    for path in files:
        with suppress(FileNotFoundError):  # another process's partial file, renamed meanwhile
            status = path.lstat()
            if S_ISREG(status.st_mode):
                name = "" if path == place else path.relative_to(place).as_posix()
                stamps[name] = (status.st_size, status.st_mtime_ns)
    return stamps


def _below(place: Path) -> Iterator[Path]:
    """Yield everything below a folder; a folder that is renamed meanwhile is skipped."""
    for folder, folders, files in os.walk(place):
        yield from (Path(folder, name) for name in (*folders, *files))


def before_of(place: Path) -> Path:
    """Return the temporary path of a folder that is being replaced."""
    return place.with_name(f"{place.name}{PART}{OLD}")


def parts_of(place: Path) -> list[Path]:
    """Return the incomplete files at a place, of a running or killed command."""
    beside = place.parent.glob(f"{escape(place.name)}{PART}*")
    inside = [path for path in _below(place) if PART in path.name]
    parts = {path for path in (*beside, *inside) if not path.name.endswith(PART + OLD)}
    return sorted(path for path in parts if parts.isdisjoint(path.parents))


def _note_ended(job: _Job) -> Iterator[str]:
    """Log the written files; an absent place, or one with incomplete files, stays logged as begun."""
    of = {"of": len(job.recordings)} if len(job.recordings) > 1 else {}
    files_by_place: dict[Path, dict[str, Stamp]] = {place: {} for place in (*job.before, *job.alone)}
    for root, before in job.before.items():
        exact = {place for place in job.exact if root in (place, *place.parents)}
        for name, stamp in stamps_of(root).items():
            path = root / name if name else root
            around = {path, *path.parents}
            if (before.get(name) == stamp and job.kept.isdisjoint(around)) or exact.isdisjoint(around):
                continue
            place = max(around & job.alone.keys(), default=root)
            files_by_place[place]["" if path == place else path.relative_to(place).as_posix()] = stamp
    complete_places = {place for place in files_by_place if place.parent.is_dir() and not parts_of(place)}
    for recording in job.recordings:
        lines: list[dict[str, Any]] = [
            {"path": str(place), "files": files}
            | ({"ended": job.began_utc_ns} if place in complete_places else {})
            | ({} if place in job.alone else of)
            for place, files in files_by_place.items()
            if (files and recording not in place.parents and job.alone.get(place, recording) == recording)
            or (recording, place) in job.noted
        ]
        lines += [{"server": where} for where in job.sent if (recording, where) not in job.noted]
        try:
            for line in lines:
                job.append(recording, line)
        except (OSError, StorageError) as error:
            yield f"{words_of(error)}; a withdrawal of {recording.name} will not find what was written now"
