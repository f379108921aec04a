"""What commands wrote of a recording outside of it, by the installation's list: found again, destroyed with it."""

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
"""How much the clock of a network drive may be behind ours; one that keeps local time is, too."""


def by_place(lines: Iterable[ListLine]) -> list[ListLine]:
    """Merge lines of the list into one for each place.

    `files` are those of all its lines, `of` how many recordings they hold at most, `begun` says of each command that
    noted no end when it began, on which computer, and its process.
    """
    held: dict[str, ListLine] = {}
    for line in lines:
        key = line.get("path") or line["server"]
        before, merged = held.get(key) or ListLine(), line.copy()
        begun = {tuple(one) for one in (*before.get("begun", ()), *line.get("begun", ()))}
        merged["files"] = before.get("files", {}) | line.get("files", {})
        merged["of"] = max(before.get("of", 1), line.get("of", 1))
        merged["begun"] = sorted(list(one) for one in begun if one[0] != line.get("ended"))
        kept = {name: value for name, value in merged.items() if name != "ended" and value not in ({}, [])}
        if merged["of"] == 1:
            del kept["of"]
        held[key] = cast(ListLine, kept)
    return [line for line in held.values() if line.keys() & {"server", "files", "begun"}]


def made_before(recording: Path, utc_ns: int) -> list[str]:
    """Name what commands wrote of a recording before a time and is still there, with what is to do."""
    written: dict[tuple[str, str], tuple[Stamp, int, str]] = {}
    servers: dict[str, ListLine] = {}
    lines = own_list(recording).outside(uuid_of(recording)).derived
    for line in lines:
        if "server" in line:
            servers[line["server"]] = line
        for name, stamp in line.get("files", {}).items():
            written[line["path"], name] = (tuple(stamp), line["utc_ns"], line["command"])
    there = {place: stamps_of(Path(place)) for place in {place for place, _ in written}}
    old = {
        place: command
        for (place, name), (stamp, at_ns, command) in written.items()
        if at_ns < utc_ns and there[place].get(name) == stamp
    }
    for line in by_place(lines):
        if "begun" in line and line["begun"][0][0] < utc_ns:
            place = Path(line["path"])
            left = [place] if _of_unended(line, stamps_of(place)) else []
            old |= {str(path): line["command"] for path in (*left, *_parts_of_unended(line))}
    made = [
        f"{place}: may show it; make it anew with `{command}`, or remove it"
        for place, command in sorted(old.items())
    ]
    sent = [(place, line) for place, line in sorted(servers.items()) if line["utc_ns"] < utc_ns]
    return made + [
        f"{place}: {do}" for place, line in sent if (do := _where_sent(line, recording, "make it anew"))
    ]


def destroy_derived(line: ListLine, recording: Path) -> tuple[int, str]:
    """Destroy the files of a line that are as they were written; return how many were there, and what is open.

    Files made of several recordings stay and are open, until they are gone or were made anew of others; so do those
    of a command that noted no end, except the ones that were not whole yet.
    """
    if "server" in line:
        return 0, _where_sent(line, recording, "make it anew without it")
    place = Path(line["path"])
    if not place.parent.is_dir():
        return 0, "it is away"
    if (place / MANIFEST).is_file():
        with suppress(StorageError):
            if "withdrawn" in read_manifest(place):
                return 0, ""
        return 0, "it was cut from it: withdraw it too, or remove it"
    found = sum(_destroy(part) for part in _parts_of_unended(line))
    there = stamps_of(place)
    noted = {name: tuple(stamp) for name, stamp in line.get("files", {}).items() if name in there}
    anew = _made_anew(line, recording)
    left = [f"`{line['command']}` still runs (process {pid}): end it" for pid in _running(line)]
    if "of" in line:
        others = [name for name in noted if there[name] not in anew[name]]
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
    if (before := before_of(place)).exists():
        left.append(f"{before} was being replaced: run `{line['command']}` again, or remove it")
    unended = [name for name in _of_unended(line, there) if name not in noted]
    if unended := [name for name in unended if there[name] not in anew[name]]:
        how = "look at them, and remove what shows this recording"
        left.append(f"{len(unended)} files may be of `{line['command']}`, which noted no end: {how}")
    return found, "; ".join(left)


def _where_sent(line: ListLine, recording: Path, how: str) -> str:
    """Return what is to do where a recording, or a data set with it, was sent; `how` a data set is changed."""
    if "data_set" not in line:
        return "it was sent there: ask for its deletion"
    to, uuid, revisions = line["server"], line["uuid"], "delete the revisions there that have it"
    holds = [uuid]
    for one in own_list(recording).entries():
        if one["kind"] == LineKind.PUSHED and one["where"] == to and one["n"] > line["n"]:
            holds = one["holds"]
    left = [f"the data set {line['data_set']} with this recording was pushed there"] if uuid in holds else []
    left += [f"{how} and run `kitchensync release push` again"] if left else []
    return "; ".join(left + [revisions] * to.startswith(HUB))


def _of_unended(line: ListLine, there: dict[str, Stamp]) -> list[str]:
    """Return the files at a place that a command may have written that noted no end."""
    if "begun" not in line:
        return []
    noted: Any = line.get("files", {})
    since_ns = line["begun"][0][0] - CLOCKS_APART_NS
    return [
        name for name, stamp in there.items() if stamp[1] >= since_ns and tuple(noted.get(name, ())) != stamp
    ]


def _parts_of_unended(line: ListLine) -> list[Path]:
    """Return what a command that noted no end left without a name."""
    if "begun" not in line:
        return []
    since_ns = line["begun"][0][0] - CLOCKS_APART_NS
    return [part for part in parts_of(Path(line["path"])) if part.lstat().st_mtime_ns >= since_ns]


def _destroy(part: Path) -> int:
    """Destroy a file or folder that is not whole; return how many files it was."""
    if not part.is_dir() or part.is_symlink():
        part.unlink(missing_ok=True)
        return 1
    found = len(stamps_of(part))
    shutil.rmtree(part)
    return found


def _running(line: ListLine) -> Iterator[int]:
    """Yield the processes of commands that noted no end and still run on this computer, but for this one."""
    for _, host, pid in line.get("begun", ()):
        if os.name == "posix" and host == gethostname() and pid != os.getpid():
            with suppress(ProcessLookupError):
                with suppress(PermissionError):  # it runs, for somebody else
                    os.kill(pid, 0)
                yield pid


def _made_anew(line: ListLine, recording: Path) -> defaultdict[str, set[Stamp]]:
    """Return by file how later commands wrote it of other recordings, without this one."""
    own: Any = line.get("files", {})
    begun = {one[0] for one in line.get("begun", ())}
    found: defaultdict[str, set[Stamp]] = defaultdict(set)
    for one in own_list(recording).entries():
        is_of_others = one["kind"] == LineKind.DERIVED and one["uuid"] != line["uuid"]
        if is_of_others and one.get("path") == line["path"] and one.get("ended") not in begun:
            for name, stamp in one.get("files", {}).items():
                if stamp != own.get(name):
                    found[name].add(tuple(stamp))
    return found


def _remove_empty(place: Path) -> None:
    folders = (one for one in place.rglob("*") if one.is_dir()) if place.is_dir() else ()
    for folder in (*sorted(folders, reverse=True), place):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
