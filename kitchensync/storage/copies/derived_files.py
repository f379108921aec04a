"""Find and destroy the files that commands wrote from a recording, by the installation's list."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from socket import gethostname
from typing import Any, cast

from kitchensync.storage.copies.derived import Stamp, before_of, parts_of, stamps_of
from kitchensync.storage.errors import StorageError
from kitchensync.storage.installation.own_list import LineKind, ListLine, own_list, uuid_of
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import HUB, MANIFEST

CLOCKS_APART_NS = 86_400_000_000_000
"""Largest difference to the clock of a network drive, ns; it may use local time."""


def by_place(lines: Iterable[ListLine]) -> list[ListLine]:
    """Merge lines of the list into one for each place.

    `files` are those of all its lines, `of` is the largest number of recordings in them, `begun` has start, host and
    process of each command without an end.
    """
    merged_lines: dict[str, ListLine] = {}
    for line in lines:
        key = line.get("path") or line["server"]
        before, merged = merged_lines.get(key) or ListLine(), line.copy()
        begun = {tuple(command) for command in (*before.get("begun", ()), *line.get("begun", ()))}
        merged["files"] = before.get("files", {}) | line.get("files", {})
        merged["of"] = max(before.get("of", 1), line.get("of", 1))
        merged["begun"] = sorted(list(command) for command in begun if command[0] != line.get("ended"))
        kept = {name: value for name, value in merged.items() if name != "ended" and value not in ({}, [])}
        if merged["of"] == 1:
            del kept["of"]
        merged_lines[key] = cast(ListLine, kept)
    return [line for line in merged_lines.values() if line.keys() & {"server", "files", "begun"}]


def made_before(recording: Path, utc_ns: int) -> list[str]:
    """Return a line for each file that commands wrote from a recording before a time, with what to do."""
    written: dict[tuple[str, str], tuple[Stamp, int, str]] = {}
    servers: dict[str, ListLine] = {}
    lines = own_list(recording).outside(uuid_of(recording)).derived
    for line in lines:
        if "server" in line:
            servers[line["server"]] = line
        for name, stamp in line.get("files", {}).items():
            written[line["path"], name] = (tuple(stamp), line["utc_ns"], line["command"])
    current = {place: stamps_of(Path(place)) for place in {place for place, _ in written}}
    old = {
        place: command
        for (place, name), (stamp, at_ns, command) in written.items()
        if at_ns < utc_ns and current[place].get(name) == stamp
    }
    for line in by_place(lines):
        if "begun" in line and line["begun"][0][0] < utc_ns:
            place = Path(line["path"])
            left = [place] if _of_unended(line, stamps_of(place)) else []
            old |= {str(path): line["command"] for path in (*left, *_parts_of_unended(line))}
    outputs = [
        f"{place}: may show it; write it again with `{command}`, or remove it"
        for place, command in sorted(old.items())
    ]
    sent = [(place, line) for place, line in sorted(servers.items()) if line["utc_ns"] < utc_ns]
    return outputs + [
        f"{place}: {do}" for place, line in sent if (do := _where_sent(line, recording, "make it again"))
    ]


def destroy_derived(line: ListLine, recording: Path) -> tuple[int, str]:
    """Destroy the unchanged files of a line; return their number, and why the line is open.

    Files from several recordings stay and are open, until they are removed or written again from others; so do files
    of a command without an end, except incomplete ones.
    """
    if "server" in line:
        return 0, _where_sent(line, recording, "make it again without it")
    place = Path(line["path"])
    if not place.parent.is_dir():
        return 0, "it is away"
    if (place / MANIFEST).is_file():
        with suppress(StorageError):
            if "withdrawn" in read_manifest(place):
                return 0, ""
        return 0, "it was cut from it: withdraw it too, or remove it"
    count = sum(_destroy(part) for part in _parts_of_unended(line))
    current = stamps_of(place)
    logged = {name: tuple(stamp) for name, stamp in line.get("files", {}).items() if name in current}
    replaced = _made_anew(line, recording)
    reasons = [f"`{line['command']}` still runs (process {pid}): end it" for pid in _running(line)]
    if "of" in line:
        others = [name for name in logged if current[name] not in replaced[name]]
        count += len(others)
        if others:
            how = f"write them again with `{line['command']}`, or remove them"
            reasons.append(f"{len(others)} files hold other recordings too: {how}")
    else:
        ours = [name for name, stamp in logged.items() if current[name] == stamp]
        for name in ours:
            (place / name if name else place).unlink()
            del current[name]
        _remove_empty(place)
        count += len(ours)
        if changed := len(logged) - len(ours):
            reasons.append(f"{changed} files there were changed since they were written; look at them")
    if (before := before_of(place)).exists():
        reasons.append(f"{before} was being replaced: run `{line['command']}` again, or remove it")
    unended = [name for name in _of_unended(line, current) if name not in logged]
    if unended := [name for name in unended if current[name] not in replaced[name]]:
        how = "look at them, and remove what shows this recording"
        reasons.append(f"{len(unended)} files may be of `{line['command']}`, which noted no end: {how}")
    return count, "; ".join(reasons)


def _where_sent(line: ListLine, recording: Path, how: str) -> str:
    """Return what to do at a server that has a recording, or a data set with it; `how` to change the data set."""
    if "data_set" not in line:
        return "it was sent there: ask for its deletion"
    to, uuid, revisions = line["server"], line["uuid"], "delete the revisions there that have it"
    holds = [uuid]
    for entry in own_list(recording).entries():
        if entry["kind"] == LineKind.PUSHED and entry["where"] == to and entry["n"] > line["n"]:
            holds = entry["holds"]
    reasons = (
        [f"the data set {line['data_set']} with this recording was pushed there"] if uuid in holds else []
    )
    reasons += [f"{how} and run `kitchensync release push` again"] if reasons else []
    return "; ".join(reasons + [revisions] * to.startswith(HUB))


def _of_unended(line: ListLine, current: dict[str, Stamp]) -> list[str]:
    """Return the files at a place that a command without an end may have written."""
    if "begun" not in line:
        return []
    logged: Any = line.get("files", {})
    since_ns = line["begun"][0][0] - CLOCKS_APART_NS
    return [
        name
        for name, stamp in current.items()
        if stamp[1] >= since_ns and tuple(logged.get(name, ())) != stamp
    ]


def _parts_of_unended(line: ListLine) -> list[Path]:
    """Return the incomplete files of a command without an end."""
    if "begun" not in line:
        return []
    since_ns = line["begun"][0][0] - CLOCKS_APART_NS
    return [part for part in parts_of(Path(line["path"])) if part.lstat().st_mtime_ns >= since_ns]


def _destroy(part: Path) -> int:
    """Destroy an incomplete file or folder; return the number of files."""
    if not part.is_dir() or part.is_symlink():
        part.unlink(missing_ok=True)
        return 1
    count = len(stamps_of(part))
    shutil.rmtree(part)
    return count


def _running(line: ListLine) -> Iterator[int]:
    """Yield the other processes of commands without an end that still run on this computer."""
    for _, host, pid in line.get("begun", ()):
        if os.name == "posix" and host == gethostname() and pid != os.getpid():
            with suppress(ProcessLookupError):
                with suppress(PermissionError):  # it runs as another user
                    os.kill(pid, 0)
                yield pid


def _made_anew(line: ListLine, recording: Path) -> defaultdict[str, set[Stamp]]:
    """Return file -> size and time as written later from other recordings."""
    own: Any = line.get("files", {})
    begun = {entry[0] for entry in line.get("begun", ())}
    stamps: defaultdict[str, set[Stamp]] = defaultdict(set)
    for entry in own_list(recording).entries():
        is_of_others = entry["kind"] == LineKind.DERIVED and entry["uuid"] != line["uuid"]
        if is_of_others and entry.get("path") == line["path"] and entry.get("ended") not in begun:
            for name, stamp in entry.get("files", {}).items():
                if stamp != own.get(name):
                    stamps[name].add(tuple(stamp))
    return stamps


def _remove_empty(place: Path) -> None:
    folders = (path for path in place.rglob("*") if path.is_dir()) if place.is_dir() else ()
    for folder in (*sorted(folders, reverse=True), place):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
