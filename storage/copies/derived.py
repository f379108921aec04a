"""`derived.jsonl` of a recording: what commands wrote of it outside, so that a withdrawal finds it.

A command runs within `noting`; the gate says which recordings it asked for, the options say where it writes. Of an
output of one recording alone every file is named with its size and time; one of several is named as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kitchensync.storage.disk.self_check import append_line, read_sound_lines
from kitchensync.storage.names import DERIVED, MANIFEST

SCHEMA = "derived/1"
Stamp = tuple[int, int]
"""Bytes and modification time in ns of a file."""


@dataclass
class _Job:
    recordings: set[Path] = field(default_factory=set)
    before: dict[Path, dict[str, Stamp]] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)


_job: ContextVar[_Job | None] = ContextVar("job", default=None)


@contextmanager
def noting(command: str, say: Callable[[str], object]) -> Iterator[None]:
    """Note in each recording that is asked for inside what was written of it, also where the command failed.

    `say` tells of a recording in which that could not be noted: a withdrawal will not find it.
    """
    job = _Job()
    token = _job.set(job)
    try:
        yield
    finally:
        _job.reset(token)
        for why in _write(job, command):
            say(why)


def asked(recording: Path) -> None:
    """Say that the command that runs uses a recording."""
    if (job := _job.get()) is not None:
        job.recordings.add(recording)


def will_write(place: Path) -> None:
    """Report where the command that runs writes, before it does; what lies in a folder that was said is known."""
    if (job := _job.get()) is not None and job.before.keys().isdisjoint((place, *place.parents)):
        job.before[place] = _stamps(place)


def sent(where: str) -> None:
    """Say to which server the command that runs sent something, where nobody of us can take it back."""
    if (job := _job.get()) is not None:
        job.sent.append(where)


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


def _write(job: _Job, command: str) -> Iterator[str]:
    lines: list[dict[str, Any]] = [{"server": where} for where in job.sent]
    of = {"of": len(job.recordings)} if len(job.recordings) > 1 else {}
    for place, before in job.before.items():
        made = {name: stamp for name, stamp in _stamps(place).items() if before.get(name) != stamp}
        if made:
            lines.append({"path": str(place), "files": made, **of})
    said = {"schema": SCHEMA, "utc_ns": time.time_ns(), "command": command}
    for recording in job.recordings:
        outside = [line for line in lines if recording not in Path(line.get("path", "/")).parents]
        try:
            for line in outside if (recording / MANIFEST).exists() else ():
                append_line(recording / DERIVED, {**said, **line}, rights=0o640)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            yield f"{recording / DERIVED}: cannot be written ({why}); a withdrawal will not find what was written now"


def read_derived(recording: Path) -> list[dict[str, Any]]:
    """Return what was noted, each place once, with the files of all its lines, `of` how many recordings at most."""
    held: dict[str, dict[str, Any]] = {}
    for line in read_sound_lines(recording / DERIVED):
        key = line.get("path") or line["server"]
        before = held.get(key, line)
        files = before.get("files", {}) | line.get("files", {})
        held[key] = line | ({"files": files} if files else {})
        if of := max(before.get("of", 1), line.get("of", 1)) - 1:
            held[key]["of"] = of + 1
    return list(held.values())


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

    Files made of several recordings stay and are open, until they are gone or were made anew of others.
    """
    if "server" in line:
        return 0, "it was sent there: ask for its deletion"
    place = Path(line["path"])
    if not place.exists():
        gone = place.parent.is_dir()
        return 0, "" if gone else "it is away"
    there = _stamps(place)
    if "of" in line or "files" not in line:
        held = [name for name in line.get("files", there) if name in there]
        held = [name for name in held if not _is_anew(line, name, there[name], recording)]
        how = f"make them anew with `{line['command']}`, or remove them"
        return len(held), f"{len(held)} files hold other recordings too: {how}" if held else ""
    ours = [name for name, stamp in line["files"].items() if there.get(name) == tuple(stamp)]
    changed = [name for name in line["files"] if name in there and name not in ours]
    for name in ours:
        (place / name if name else place).unlink()
    for folder in (
        sorted((one for one in place.rglob("*") if one.is_dir()), reverse=True) if place.is_dir() else ()
    ):
        if not any(folder.iterdir()):
            folder.rmdir()
    if place.is_dir() and not any(place.iterdir()):
        place.rmdir()
    left = f"{len(changed)} files there were changed since they were written; look at them" if changed else ""
    return len(ours), left
