"""The mover: copies recordings to network stores, proves every copy, and frees the local disk by rule.

    python -P -m storage.mover RECORDING --to DIR [--to DIR] [--parent PID]

It is a process of its own with the lowest priority: a store that is absent, read-only, full or slow lets the
spool grow and disturbs nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sensors.host_clock import utc_anchor
from storage.chunk import chunk_paths, is_archive
from storage.copies import BOOK, COPIED, FREED, Book, Line
from storage.disk import LOCAL, Disk
from storage.errors import MoverBusy, StorageError
from storage.manifest import Manifest, read_manifest
from storage.names import CHUNK_SUFFIX, MANIFEST, MEDIA, PART_SUFFIX, chunk_name, chunk_range
from storage.target import Stopped, Target

FOLLOW_S = 2.0
WAIT_FIRST_S, WAIT_LONGEST_S = 1.0, 60.0
HEAVY = (CHUNK_SUFFIX, ".mp4")
"""What is freed: manifest, events and reports are small and stay."""


@dataclass(frozen=True)
class FreeRule:
    """When a local copy may go.

    Only files that have `copies_before_free` verified copies elsewhere, read back once more just before; and
    only when the recording is `keep_days` old (None: never for its age) or less than `room_bytes` are free.
    """

    copies_before_free: int = 2
    keep_days: float | None = 7.0
    room_bytes: int = 20 << 30

    def allows(self, copies: int, age_days: float, free_bytes: int) -> bool:
        """Decide; pure."""
        old = self.keep_days is not None and age_days >= self.keep_days
        return copies >= max(self.copies_before_free, 1) and (old or free_bytes < self.room_bytes)


@dataclass
class Progress:
    """How far one recording is with one store."""

    recording: str
    target: str
    files: int = 0
    files_done: int = 0
    bytes_done: int = 0
    finished: bool = False
    problem: str = ""
    warning: str = ""
    freed: int = 0


@dataclass(frozen=True)
class Item:
    """One file to copy and what it must be."""

    relative: str
    expected: str | None


@dataclass
class _Work:
    """One recording and one store, between passes."""

    recording: Path
    where: Path
    state: Progress
    wait_s: float = WAIT_FIRST_S
    proved: set[str] = field(default_factory=set)


def is_closed(manifest: Manifest) -> bool:
    """Tell whether nothing more will come into a recording."""
    return manifest["state"] in ("complete", "aborted")


def files_of(recording: Path, manifest: Manifest) -> list[Item]:
    """List what is to be copied now, in order: sealed files as they come, all the rest once it is closed.

    The manifest comes last, so that a copy that has one is whole.
    """
    folders = sorted({path.parent for path in recording.rglob(f"*{CHUNK_SUFFIX}")})
    sealed = [path for folder in folders for path in chunk_paths(folder)]
    if not is_closed(manifest):
        return [Item(path.relative_to(recording).as_posix(), None) for path in sealed]
    known = {name: facts["sha256"] for name, facts in manifest["files"].items()} | _media_hashes(recording)
    others = [
        path
        for path in sorted(recording.rglob("*"))
        if path.is_file()
        and path.suffix not in (CHUNK_SUFFIX, PART_SUFFIX)
        and path not in (recording / MANIFEST, recording / BOOK)
    ]
    paths = [path.relative_to(recording).as_posix() for path in [*sealed, *others, recording / MANIFEST]]
    return [Item(path, known.get(path)) for path in paths]


def _media_hashes(recording: Path) -> dict[str, str]:
    """Return the hashes that camera files were fetched with."""
    known = {}
    for media in recording.glob(f"*/{MEDIA}"):
        with contextlib.suppress(ValueError, KeyError, TypeError):  # verify names a damaged media.json
            for entry in json.loads(media.read_text(encoding="utf-8"))["files"]:
                if "sha256" in entry:
                    known[f"{media.parent.name}/{entry['file']}"] = str(entry["sha256"])
    return known


def run_mover(
    recordings: Iterable[Path],
    targets: Iterable[Path],
    *,
    rule: FreeRule | None = FreeRule(),
    follow: bool = False,
    stop: threading.Event | None = None,
    report: Callable[[Progress], None] = lambda _: None,
    disk: Disk = LOCAL,
) -> list[Progress]:
    """Copy recordings to every store, prove the copies, free by rule (None: never).

    Without `follow` every store is tried once. With it the mover goes along with running recordings, waits for
    stores that are away, and ends when every recording is closed and copied, or soon after `stop` is set.
    """
    stop = stop or threading.Event()
    work = [
        _Work(recording, where.absolute(), Progress(recording.name, str(where)))
        for recording in recordings
        for where in targets
    ]
    open_work = list(work)
    while open_work and not stop.is_set():
        for task in open_work:
            _one_pass(task, stop, report, disk)
            report(task.state)
        open_work = [task for task in open_work if not task.state.finished]
        if not follow:
            break
        if open_work:
            stop.wait(min(task.wait_s if task.state.problem else FOLLOW_S for task in open_work))
    if rule is not None and not stop.is_set():
        for recording in dict.fromkeys(task.recording for task in work):
            _free(recording, [task for task in work if task.recording == recording], rule, stop, disk)
    return [task.state for task in work]


def _one_pass(
    task: _Work, stop: threading.Event, report: Callable[[Progress], None], disk: Disk = LOCAL
) -> None:
    """Copy what is there now; a store that fails is tried again later, ever more seldom."""
    state = task.state
    state.problem = ""
    try:
        with Book(task.recording) as book:
            _copy_all(task, book, stop, report, disk)
        task.wait_s = WAIT_FIRST_S
    except Stopped:
        return
    except (StorageError, OSError) as error:
        state.problem = str(error)
        state.finished = False
        task.wait_s = min(task.wait_s * 2, WAIT_LONGEST_S)


def _copy_all(
    task: _Work, book: Book, stop: threading.Event, report: Callable[[Progress], None], disk: Disk
) -> None:
    state, recording = task.state, task.recording
    target = Target(task.where, book.target_of(task.where), disk)
    if target.shares_disk_with(recording):
        state.warning = f"{target.path} lies on the same disk as the recording: no help if that disk fails"
    manifest = read_manifest(recording)
    items = files_of(recording, manifest)
    state.files, state.files_done = len(items), 0
    for item in items:
        if stop.is_set():
            raise Stopped
        if not _is_copied(recording, item, book, target):
            _copy_one(task, item, book, target, stop)
            report(state)
        state.files_done += 1
    _drop_packed(recording, items, book, target, disk)
    state.finished = is_closed(manifest)


def _is_copied(recording: Path, item: Item, book: Book, target: Target) -> bool:
    """Tell whether the book holds this very content, and the store still something of its size."""
    line = book.copies.get((item.relative, target.identity))
    if line is None or item.expected not in (None, line.sha256):
        return False
    facts = (recording / item.relative).stat()
    if (line.bytes, line.mtime_ns) != (facts.st_size, facts.st_mtime_ns):
        return False
    place = target.place_of(recording, item.relative)
    return place.is_file() and place.stat().st_size == line.bytes


def _copy_one(task: _Work, item: Item, book: Book, target: Target, stop: threading.Event) -> None:
    before = (task.recording / item.relative).stat()
    copied = target.copy(task.recording, item.relative, item.expected, stop.is_set)
    task.state.bytes_done += copied.bytes
    task.proved.add(item.relative)
    line = Line(
        COPIED, item.relative, copied.bytes, copied.sha256, before.st_mtime_ns, target.identity,
        str(target.path), copied.read,
    )  # fmt: skip
    book.write(line)


def _drop_packed(recording: Path, items: list[Item], book: Book, target: Target, disk: Disk) -> None:
    """Remove chunks from the store that lie there in an archive now."""
    for item in items:
        archive = target.place_of(recording, item.relative)
        if archive.suffix != CHUNK_SUFFIX or not is_archive(archive):
            continue
        if (item.relative, target.identity) not in book.copies:
            continue
        first, last = chunk_range(archive) or (1, 0)
        for number in range(first, last + 1):
            if (archive.parent / chunk_name(number)).exists():
                disk.remove(archive.parent / chunk_name(number))


def _free(recording: Path, tasks: list[_Work], rule: FreeRule, stop: threading.Event, disk: Disk) -> None:
    """Free the heavy local files of a closed recording whose copies stand the proof once more."""
    if not all(task.state.finished for task in tasks):
        return
    manifest = read_manifest(recording)
    age_days = _age_days(manifest)
    free_bytes = shutil.disk_usage(recording).free
    if not rule.allows(len(tasks), age_days, free_bytes):
        return
    try:
        with Book(recording) as book:
            targets = {target.identity: target for target in _present(tasks, book, disk)}
            heavy = [item for item in files_of(recording, manifest) if item.relative.lower().endswith(HEAVY)]
            for item in heavy:
                copies = _proved_copies(recording, item, tasks, targets, book, stop)
                if not rule.allows(len(copies), age_days, free_bytes):
                    return  # all of a recording or nothing
            _remove_all(recording, heavy, targets, book, disk)
            for task in tasks:
                task.state.freed = len(heavy)
    except (Stopped, MoverBusy):
        return
    except (StorageError, OSError) as error:
        tasks[0].state.problem = f"nothing was freed: {error}"


def _present(tasks: list[_Work], book: Book, disk: Disk) -> list[Target]:
    return [Target(task.where, book.target_of(task.where), disk) for task in tasks]


def _proved_copies(
    recording: Path,
    item: Item,
    tasks: list[_Work],
    targets: dict[str, Target],
    book: Book,
    stop: threading.Event,
) -> list[str]:
    """Return the stores whose copy is the same, read past the cache in this run."""
    proved = []
    for identity, target in targets.items():
        line = book.copies.get((item.relative, identity))
        if line is None:
            continue
        fresh = any(item.relative in task.proved and task.where == target.path for task in tasks)
        if fresh or target.holds(recording, item.relative, line.sha256, stop.is_set) is not None:
            proved.append(identity)
    return proved


def _remove_all(
    recording: Path, items: list[Item], targets: dict[str, Target], book: Book, disk: Disk
) -> None:
    for item in items:
        for identity, target in targets.items():
            line = book.copies[item.relative, identity]
            book.write(
                Line(
                    FREED,
                    item.relative,
                    line.bytes,
                    line.sha256,
                    line.mtime_ns,
                    identity,
                    str(target.path),
                    "",
                )
            )
        disk.remove(recording / item.relative)


def _age_days(manifest: Manifest) -> float:
    ended = manifest.get("stopped") or manifest.get("started")
    return (utc_anchor().utc_ns - int(ended["utc_ns"])) / 86_400e9 if ended else 0.0


class MoverProcess:
    """The mover of a running recording, started and ended by the recorder."""

    def __init__(self, recording: Path, targets: list[Path], log: Path) -> None:
        """Start it; its progress goes to `log`, one JSON object a line."""
        command = [sys.executable, "-P", "-m", "storage.mover", str(recording), "--parent", str(os.getpid())]
        for target in targets:
            command += ["--to", str(target)]
        with log.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)

    def stop(self, timeout_s: float = 3.0) -> bool:
        """Ask the end and wait a moment; one that hangs in a dead store is killed. Tell whether it was done."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout_s) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # not even a kill ends a hanging network write
            self.process.wait(1)
        return False


def lower_priority() -> None:
    """Step behind everything else: only what the recorder leaves over is used."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> int:
    """Go along with one recording; exit 0 when all of it is copied."""
    parser = argparse.ArgumentParser(prog="storage.mover")
    parser.add_argument("recording", type=Path)
    parser.add_argument("--to", type=Path, action="append", required=True)
    parser.add_argument("--parent", type=int)
    options = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    lower_priority()
    if options.parent is not None:
        threading.Thread(target=_watch_parent, args=(options.parent, stop), daemon=True).start()
    last: list[dict[str, Any]] = []

    def say(state: Progress) -> None:
        if not last or last[0] != asdict(state):
            last[:] = [asdict(state)]
            print(json.dumps(last[0]), flush=True)

    states = run_mover([options.recording], options.to, rule=None, follow=True, stop=stop, report=say)
    return 0 if all(state.finished for state in states) else 3


def _watch_parent(pid: int, stop: threading.Event) -> None:
    while os.getppid() == pid and not stop.wait(1.0):
        pass
    stop.set()


if __name__ == "__main__":
    sys.exit(main())
