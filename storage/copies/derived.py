"""`derived.jsonl` of a recording: what commands wrote of it outside, so that a withdrawal finds it.

A command runs within `noting`; the gate says which recordings it asked for, the options say where it writes. Two
lines name a place: one when the first file is begun there, one when the command ends, with each file's size and time.
Where only the first stands, the command was killed or still runs.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from glob import escape
from itertools import product
from pathlib import Path
from typing import Any

from kitchensync.storage.disk.self_check import append_line, read_sound_lines
from kitchensync.storage.names import DERIVED, MANIFEST

SCHEMA = "derived/1"
PART = ".kitchensync-part"
"""Behind the name of a file that is not whole yet; long, so that it is nobody else's file."""
Stamp = tuple[int, int]
"""Bytes and modification time in ns of a file."""
CLOCKS_APART_NS = 3_600_000_000_000
"""How much the clock of a network drive may be behind ours."""


@dataclass
class _Job:
    command: str
    began_utc_ns: int = field(default_factory=time.time_ns)
    recordings: set[Path] = field(default_factory=set)
    before: dict[Path, dict[str, Stamp]] = field(default_factory=dict)
    begun: set[Path] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)
    noted: set[tuple[Path, Path | str]] = field(default_factory=set)
    one: Path | None = None
    alone: dict[Path, Path] = field(default_factory=dict)
    kept: set[Path] = field(default_factory=set)

    def note(self, recordings: Iterable[Path], where: Iterable[Path | str]) -> None:
        """Note places that were begun, and servers, in recordings that were asked for."""
        for recording, place in product(recordings, where):
            with suppress(OSError):  # the lines at the end meet it too, and that is said
                if isinstance(place, str):
                    self.append(recording, {"server": place})
                elif recording in place.parents:
                    continue
                else:
                    self.append(recording, {"path": str(place), "begun": [self.began_utc_ns]})
                self.noted.add((recording, place))

    def append(self, recording: Path, line: dict[str, Any]) -> None:
        """Add a line to the notes of a recording that has a manifest. Raises OSError."""
        if (recording / MANIFEST).exists():
            said = {"schema": SCHEMA, "utc_ns": time.time_ns(), "command": self.command}
            append_line(recording / DERIVED, said | line, rights=0o640)


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
        job.before[place] = _stamps(place)


def will_write(place: Path) -> None:
    """Note where the command that runs writes, before it does."""
    if (job := _job.get()) is None:
        return
    may_write(place)
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
    """Say that what lies at a place would be written as it is: an earlier run made it, perhaps one that was killed."""
    if (job := _job.get()) is not None:
        will_write(place)
        job.kept.add(place)


def sent(where: str) -> None:
    """Note to which server the command that runs sends something, where nobody of us can take it back."""
    if (job := _job.get()) is not None:
        job.note(job.recordings, {where} - job.sent)
        job.sent.add(where)


def _stamps(place: Path) -> dict[str, Stamp]:
    """Return each file at a place, by its path below it; the place's own is the empty one."""
    files = [place] if place.is_file() else sorted(place.rglob("*")) if place.is_dir() else []
    held = {}
    for path in files:
        status = path.lstat()
        if path.is_file() and not path.is_symlink():
            name = "" if path == place else path.relative_to(place).as_posix()
            held[name] = (status.st_size, status.st_mtime_ns)
    return held


def _made(job: _Job) -> dict[Path, dict[str, Stamp]]:
    """Return the files that were made, by place; those of one recording alone by the place that was said for them."""
    found: dict[Path, dict[str, Stamp]] = {place: {} for place in (*job.before, *job.alone)}
    for root, before in job.before.items():
        for name, stamp in _stamps(root).items():
            path = root / name if name else root
            around = {path, *path.parents}
            if before.get(name) == stamp and job.kept.isdisjoint(around):
                continue
            place = max(around & job.alone.keys(), default=root)
            found[place]["" if path == place else path.relative_to(place).as_posix()] = stamp
    return found


def _note_ended(job: _Job) -> Iterator[str]:
    of = {"of": len(job.recordings)} if len(job.recordings) > 1 else {}
    made = _made(job)
    for recording in job.recordings:
        lines: list[dict[str, Any]] = [
            {"path": str(place), "files": files, "ended": job.began_utc_ns}
            | ({} if place in job.alone else of)
            for place, files in made.items()
            if (files and recording not in place.parents and job.alone.get(place, recording) == recording)
            or (recording, place) in job.noted
        ]
        lines += [{"server": where} for where in job.sent if (recording, where) not in job.noted]
        try:
            for line in lines:
                job.append(recording, line)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            yield f"{recording / DERIVED}: cannot be written ({why}); a withdrawal will not find what was written now"


def read_derived(recording: Path, known: Iterable[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return what was noted after lines that are `known`, as they were returned, each place once.

    `files` are those of all its lines, `of` how many recordings they hold at most, `begun` says when each command
    began that noted no end.
    """
    held: dict[str, dict[str, Any]] = {}
    for line in (*known, *read_sound_lines(recording / DERIVED)):
        key = line.get("path") or line["server"]
        before = held.get(key, {})
        begun = {*before.get("begun", ()), *line.get("begun", ())} - {line.get("ended")}
        merged = {
            "files": before.get("files", {}) | line.get("files", {}),
            "of": max(before.get("of", 1), line.get("of", 1)),
            "begun": sorted(begun),
        }
        held[key] = {name: value for name, value in line.items() if name not in (*merged, "ended")}
        held[key] |= {name: value for name, value in merged.items() if value not in ({}, [], 1)}
    return [line for line in held.values() if line.keys() & {"server", "files", "begun"}]


def before_of(place: Path) -> Path:
    """Return where a folder lies that is being replaced, until the new one has its name."""
    return place.with_name(f"{place.name}{PART}-old")


def _parts(place: Path) -> list[Path]:
    """Return what a command that was killed left at a place that has no name yet."""
    beside = set(place.parent.glob(f"{escape(place.name)}{PART}*")) - {before_of(place)}
    inside = place.rglob(f"*{PART}*") if place.is_dir() else ()
    return sorted((*beside, *inside))


def _of_unended(line: dict[str, Any], there: dict[str, Stamp]) -> list[str]:
    """Return the files at a place that a command may have written that noted no end."""
    since_ns = min(line["begun"], default=0) - CLOCKS_APART_NS
    noted = line.get("files", {})
    return [
        name for name, stamp in there.items() if stamp[1] >= since_ns and tuple(noted.get(name, ())) != stamp
    ]


def older_than(recording: Path, utc_ns: int) -> list[tuple[str, str]]:
    """Return places that hold what was written before a time, with the command; for a server the command is empty."""
    written: dict[tuple[str, str], tuple[Stamp, int, str]] = {}
    servers = {}
    for line in read_sound_lines(recording / DERIVED):
        if "server" in line:
            servers[line["server"]] = line["utc_ns"]
        for name, stamp in line.get("files", {}).items():
            written[line["path"], name] = (tuple(stamp), line["utc_ns"], line["command"])
    there = {place: _stamps(Path(place)) for place in {place for place, _ in written}}
    old = {
        place: command
        for (place, name), (stamp, at_ns, command) in written.items()
        if at_ns < utc_ns and there[place].get(name) == stamp
    }
    for line in read_derived(recording):
        if "begun" in line and min(line["begun"]) < utc_ns:
            place = Path(line["path"])
            left = [place] if _of_unended(line, _stamps(place)) else []
            old |= {str(path): line["command"] for path in (*left, *_parts(place))}
    return sorted(old.items()) + [(server, "") for server, at_ns in sorted(servers.items()) if at_ns < utc_ns]


def _is_anew(line: dict[str, Any], name: str, stamp: Stamp, recording: Path) -> bool:
    """Return whether a file was written again since, of recordings beside this one that noted it."""
    if tuple(line.get("files", {}).get(name, ())) == stamp:
        return False
    beside = (path for path in recording.parent.glob(f"*/{DERIVED}") if path.parent != recording)
    lines = (one for path in beside for one in read_sound_lines(path) if one.get("path") == line["path"])
    return any(tuple(one.get("files", {}).get(name, ())) == stamp for one in lines)


def destroy_derived(line: dict[str, Any], recording: Path) -> tuple[int, str]:
    """Destroy the files of a line that are as they were written; return how many were there, and what is open.

    Files made of several recordings stay and are open, until they are gone or were made anew of others; so do those
    of a command that noted no end, except the ones that were not whole yet.
    """
    if "server" in line:
        return 0, "it was sent there: ask for its deletion"
    place = Path(line["path"])
    if not place.parent.is_dir():
        return 0, "it is away"
    found = sum(_destroy(part) for part in _parts(place)) if "begun" in line else 0
    there = _stamps(place)
    noted = {name: tuple(stamp) for name, stamp in line.get("files", {}).items() if name in there}
    left = []
    if "of" in line:
        others = [name for name in noted if not _is_anew(line, name, there[name], recording)]
        found += len(others)
        if others:
            how = f"make them anew with `{line['command']}`, or remove them"
            left.append(f"{len(others)} files hold other recordings too: {how}")
    else:
        ours = [name for name, stamp in noted.items() if there[name] == stamp]
        for name in ours:
            (place / name if name else place).unlink()
            del there[name]
        _remove_empty(place)
        found += len(ours)
        if changed := len(noted) - len(ours):
            left.append(f"{changed} files there were changed since they were written; look at them")
    if "begun" in line and (before := before_of(place)).exists():
        left.append(f"{before} was being replaced: run `{line['command']}` again, or remove it")
    unended = [name for name in _of_unended(line, there) if name not in noted] if "begun" in line else []
    if unended := [name for name in unended if not _is_anew(line, name, there[name], recording)]:
        how = "look at them, and remove what shows this recording"
        left.append(f"{len(unended)} files may be of `{line['command']}`, which noted no end: {how}")
    return found, "; ".join(left)


def _destroy(part: Path) -> int:
    """Destroy a file or folder that is not whole; return how many files it was."""
    if not part.is_dir() or part.is_symlink():
        part.unlink(missing_ok=True)
        return 1
    found = len(_stamps(part))
    shutil.rmtree(part)
    return found


def _remove_empty(place: Path) -> None:
    folders = (one for one in place.rglob("*") if one.is_dir()) if place.is_dir() else ()
    for folder in (*sorted(folders, reverse=True), place):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
