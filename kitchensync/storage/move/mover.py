"""The mover: copies recordings to network stores, verifies every copy, and frees the local disk by rule."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kitchensync.storage.chunks.chunk_reader import is_archive
from kitchensync.storage.consent import Purpose, StillPermitted, require_consent
from kitchensync.storage.copies.copy_list import FileToCopy, files_of, is_as_sent, is_closed
from kitchensync.storage.copies.copy_log import COPIED, CopyLog, CopyRecord, is_store_of_another
from kitchensync.storage.copies.store_states import StoreState, state_by
from kitchensync.storage.copies.stored_copies import begin_copy
from kitchensync.storage.copies.target import MARKER, Stopped, Target
from kitchensync.storage.disk.durable import LOCAL, Disk
from kitchensync.storage.errors import StorageError, TargetAway, words_of
from kitchensync.storage.life import usable_manifest
from kitchensync.storage.move.freeing import DEFAULT_RULE, FreeRule, free
from kitchensync.storage.names import CHUNK_SUFFIX, chunk_number, chunk_range

FOLLOW_S = 1.0
WAIT_FIRST_S, WAIT_LONGEST_S = 1.0, 60.0  # a store that is back is used within a minute


@dataclass
class StoreProgress:
    """Progress of one recording with one store."""

    recording: str
    target: str
    files: int = 0
    files_done: int = 0
    bytes: int = 0
    "Of all files to copy so far."
    bytes_safe: int = 0
    "Of verified files, and of the sent part of the current one."
    bytes_done: int = 0
    "Copied and verified in this run."
    finished: bool = False
    state: StoreState = StoreState.UNFINISHED
    problem: str = ""
    warning: str = ""
    freed: int = 0


Report = Callable[[StoreProgress], None]


@dataclass
class _Work:
    """One recording and one store, between passes."""

    recording: Path
    where: Path
    state: StoreProgress
    wait_s: float = WAIT_FIRST_S
    proved: set[str] = field(default_factory=set)
    is_ours: bool = False
    """Whether the place in the store was checked and reserved."""
    identity: str | None = None
    """First identity of the store, so that an empty mount point is not a new one, even with an empty copy log."""


def run_mover(
    recordings: Iterable[Path],
    targets: Iterable[Path],
    *,
    rule: FreeRule | None = DEFAULT_RULE,
    follow: bool = False,
    stop: threading.Event | None = None,
    report: Report = lambda _: None,
    disk: Disk = LOCAL,
) -> list[StoreProgress]:
    """Copy recordings to every store, verify the copies, free by rule (None: never).

    Without `follow` every store is tried once. With it the mover follows running recordings, waits for unavailable
    stores, and ends when every recording is closed and copied, or soon after `stop` is set.
    """
    stop = stop or threading.Event()
    work = [
        _Work(recording, where.absolute(), StoreProgress(recording.name, str(where)))
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


def _one_pass(task: _Work, stop: threading.Event, report: Report, disk: Disk = LOCAL) -> None:
    """Copy the current files; a failing store is tried again at growing intervals."""
    state = task.state
    state.problem = ""
    try:
        permitted = StillPermitted(task.recording)
        # Before any write, including the copy log.
        require_consent(task.recording, Purpose.COPY_TO_OWN_STORE)
        with CopyLog(task.recording) as log:
            _copy_all(task, log, permitted, stop, report, disk)
        task.wait_s = WAIT_FIRST_S
        state.state = StoreState.COPIED if state.finished else StoreState.UNFINISHED
    except Stopped:
        return
    except (StorageError, OSError) as error:
        state.problem, state.state = words_of(error), state_by(error)
        state.finished = False
        task.wait_s = min(task.wait_s * 2, WAIT_LONGEST_S)


def _copy_all(
    task: _Work, log: CopyLog, permitted: StillPermitted, stop: threading.Event, report: Report, disk: Disk
) -> None:
    state, recording = task.state, task.recording
    permitted.check()
    _check_mounted(recording, task.where)
    target = Target(task.where, log.target_of(task.where) or task.identity, disk)
    task.identity = target.identity
    if os.stat(target.path).st_dev == os.stat(recording).st_dev:
        state.warning = f"{target.path} lies on the same disk as the recording: no help if that disk fails"
    manifest = usable_manifest(recording)
    items = files_of(recording, manifest)
    begin_copy(target, recording, manifest, items, log, is_ours=task.is_ours)
    task.is_ours = True

    def check_and_report(now: StoreProgress) -> None:
        permitted.check()
        report(now)

    sizes = [item.source.stat().st_size for item in items]
    state.files, state.files_done = len(items), 0
    state.bytes, state.bytes_safe = sum(sizes), 0
    for item, size in zip(items, sizes, strict=True):
        if stop.is_set():
            raise Stopped
        safe = state.bytes_safe
        if not _is_copied(recording, item, log, target):
            _copy_one(task, item, log, target, stop, check_and_report)
        state.bytes_safe = safe + size
        state.files_done += 1
        check_and_report(state)
    _drop_packed(recording, items, log, target, disk)
    state.finished = is_closed(manifest)


def _check_mounted(recording: Path, where: Path) -> None:
    """Raise TargetAway for a bare folder on the computer's own disks if other recordings had a store there.

    The copy log of a new recording is empty, so an empty mount point would look like a new store.
    """
    if not where.is_dir() or (where / MARKER).exists():
        return
    own_disks = {os.stat(path).st_dev for path in (where.anchor, recording)}
    if os.stat(where).st_dev in own_disks and is_store_of_another(recording, where):
        raise TargetAway(where, f"its {MARKER} is gone (is the store mounted?)")


def _is_copied(recording: Path, item: FileToCopy, log: CopyLog, target: Target) -> bool:
    """Return whether the content is in the copy log, and a file of its size is in the store."""
    line = log.copies.get((item.relative, target.identity))
    if line is None or not is_as_sent(item, line, recording):
        return False
    place = target.place_of(recording, item.relative)
    return place.is_file() and place.stat().st_size == line.bytes


def _copy_one(
    task: _Work, item: FileToCopy, log: CopyLog, target: Target, stop: threading.Event, report: Report
) -> None:
    safe = task.state.bytes_safe

    def tell(here: int) -> None:
        task.state.bytes_safe = safe + here
        report(task.state)

    item.check_size()
    before = item.source.stat()
    copied = target.copy(item.source, task.recording, item.relative, item.expected, stop.is_set, tell)
    task.state.bytes_done += copied.bytes
    task.proved.add(item.relative)
    line = CopyRecord(
        COPIED, item.relative, copied.bytes, copied.sha256, before.st_mtime_ns, target.identity,
        str(target.path), copied.read,
    )  # fmt: skip
    log.write(line)


def _drop_packed(recording: Path, items: list[FileToCopy], log: CopyLog, target: Target, disk: Disk) -> None:
    """Remove chunks that this installation copied from the store if they are in an archive."""
    for item in items:
        archive = target.place_of(recording, item.relative)
        if archive.suffix != CHUNK_SUFFIX or not is_archive(archive):
            continue
        if (item.relative, target.identity) not in log.copies:
            continue
        first, last = chunk_range(archive) or (1, 0)
        for file, digest in sorted(log.made_here.copied):
            chunk = target.path / recording.name / file
            is_inside = chunk.parent == archive.parent and first <= (chunk_number(chunk) or 0) <= last
            if is_inside and not is_archive(chunk) and target.holds(recording, file, digest, lambda: False):
                disk.remove(chunk)


def _free(recording: Path, tasks: list[_Work], rule: FreeRule, stop: threading.Event, disk: Disk) -> None:
    """Free files by the rule, once every store has all of them."""
    if not all(task.state.finished for task in tasks):
        return
    try:
        proved = {task.where: task.proved for task in tasks}
        freed = free(recording, [task.where for task in tasks], proved, rule, stop, disk)
        for task in tasks:
            task.state.freed = freed
    except (StorageError, OSError) as error:
        tasks[0].state.problem = f"nothing was freed: {error}"
