"""What commands write of a recording outside of it, noted in the installation's list: so a withdrawal finds it.

A command runs within `noting`; the gate says which recordings it asked for, the options say where it writes. Two
lines name a place: one when the first file is begun there, one when the command ends, with each file's size and time.
Where only the first stands, the command was killed or still runs.
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
"""Behind the name of a file that is not whole yet; long, so that it is nobody else's file."""
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
        """When it began, on which computer, and its process: whoever finds no end asks whether it still runs."""
        return [self.began_utc_ns, gethostname(), os.getpid()]

    def note(self, recordings: Iterable[Path], where: Iterable[Path | str]) -> None:
        """Note places that were begun, and servers, in recordings that were asked for."""
        for recording, place in product(recordings, where):
            with suppress(OSError, StorageError):  # the lines at the end meet it too, and that is reported
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
    """Note in each recording that is asked for inside what was written of it, also where the command failed.

    `say` tells of a recording in which that could not be noted: a withdrawal will not find it.
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
    """Say that the command that runs uses a recording."""
    if (job := _job.get()) is not None and recording not in job.recordings:
        job.recordings.add(recording)
        job.note([recording], job.begun | job.sent)


def may_write(place: Path) -> None:
    """Look at what lies where the command that runs may write; a place inside one that was said is known."""
    if (job := _job.get()) is not None and job.before.keys().isdisjoint((place, *place.parents)):
        job.before[place] = stamps_of(place)


def will_write(place: Path) -> None:
    """Note where the command that runs writes, before it does."""
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
    """Say that what is written inside is of one recording alone, though the command asked for others too."""
    if (job := _job.get()) is None:
        yield
        return
    job.one = recording
    try:
        yield
    finally:
        job.one = None


def keeps(place: Path) -> None:
    """Say that what lies at a place is what would be written: an earlier run made it, perhaps one that was killed."""
    if (job := _job.get()) is not None:
        will_write(place)
        job.kept.add(place)


def pushed(recordings: Iterable[Path], data_set: Path, to: str) -> None:
    """Note that the command that runs pushes a data set with these recordings to a place."""
    if (job := _job.get()) is not None:
        for recording in recordings:
            job.append(recording, {"server": to, "data_set": str(data_set)})


def sent(where: str) -> None:
    """Note to which server the command that runs sends something, where nobody of us can take it back."""
    if (job := _job.get()) is not None:
        job.note(job.recordings, {where} - job.sent)
        job.sent.add(where)


def stamps_of(place: Path) -> dict[str, Stamp]:
    """Return each file at a place, by its path below it; the place's own is the empty one."""
    files = [place] if place.is_file() else sorted(_below(place))
    held = {}
    for path in files:
        with suppress(FileNotFoundError):  # somebody else's part that has its name by now
            status = path.lstat()
            if S_ISREG(status.st_mode):
                name = "" if path == place else path.relative_to(place).as_posix()
                held[name] = (status.st_size, status.st_mtime_ns)
    return held


def _below(place: Path) -> Iterator[Path]:
    """Yield what lies below a folder; a folder in it that somebody else renames meanwhile is passed over."""
    for folder, folders, files in os.walk(place):
        yield from (Path(folder, name) for name in (*folders, *files))


def before_of(place: Path) -> Path:
    """Return where a folder lies that is being replaced, until the new one has its name."""
    return place.with_name(f"{place.name}{PART}{OLD}")


def parts_of(place: Path) -> list[Path]:
    """Return what has no name yet at a place: of a command that runs, or was killed."""
    beside = place.parent.glob(f"{escape(place.name)}{PART}*")
    inside = [path for path in _below(place) if PART in path.name]
    found = {path for path in (*beside, *inside) if not path.name.endswith(PART + OLD)}
    return sorted(path for path in found if found.isdisjoint(path.parents))


def _note_ended(job: _Job) -> Iterator[str]:
    """Note what was made; a place that is away, or holds what has no name yet, is left as one that was begun."""
    of = {"of": len(job.recordings)} if len(job.recordings) > 1 else {}
    made: dict[Path, dict[str, Stamp]] = {place: {} for place in (*job.before, *job.alone)}
    for root, before in job.before.items():
        exact = {place for place in job.exact if root in (place, *place.parents)}
        for name, stamp in stamps_of(root).items():
            path = root / name if name else root
            around = {path, *path.parents}
            if (before.get(name) == stamp and job.kept.isdisjoint(around)) or exact.isdisjoint(around):
                continue
            place = max(around & job.alone.keys(), default=root)
            made[place]["" if path == place else path.relative_to(place).as_posix()] = stamp
    known = {place for place in made if place.parent.is_dir() and not parts_of(place)}
    for recording in job.recordings:
        lines: list[dict[str, Any]] = [
            {"path": str(place), "files": files}
            | ({"ended": job.began_utc_ns} if place in known else {})
            | ({} if place in job.alone else of)
            for place, files in made.items()
            if (files and recording not in place.parents and job.alone.get(place, recording) == recording)
            or (recording, place) in job.noted
        ]
        lines += [{"server": where} for where in job.sent if (recording, where) not in job.noted]
        try:
            for line in lines:
                job.append(recording, line)
        except (OSError, StorageError) as error:
            yield f"{words_of(error)}; a withdrawal of {recording.name} will not find what was written now"
