"""Free the local files of a recording by rule, once enough copies stand the proof again."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kitchensync.shell.host_clock import utc_anchor
from kitchensync.storage.copies.copy_list import FileToCopy, files_of, is_heavy
from kitchensync.storage.copies.copy_log import FREED, CopyLog, CopyRecord
from kitchensync.storage.copies.target import Stopped, Target
from kitchensync.storage.disk.durable import LOCAL, Disk
from kitchensync.storage.errors import MoverBusy
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.timeline.utc_times import moment_utc_ns
from kitchensync.storage.verify import keep_verdict, verify


@dataclass(frozen=True)
class FreeRule:
    """When a local copy may go.

    Only files that have `copies_before_free` verified copies elsewhere, read back once more just before; and
    only when the recording is `keep_days` old (None: never for its age) or less than `room_bytes` are free.
    """

    copies_before_free: int = 2
    keep_days: float | None = 7.0
    room_bytes: int = 20_000_000_000

    def allows(self, copies: int, age_days: float, free_bytes: int) -> bool:
        """Decide; pure."""
        old = self.keep_days is not None and age_days >= self.keep_days
        return copies >= max(self.copies_before_free, 1) and (old or free_bytes < self.room_bytes)


DEFAULT_RULE = FreeRule()


def free(
    recording: Path,
    stores: Sequence[Path],
    proved: dict[Path, set[str]],
    rule: FreeRule,
    stop: threading.Event,
    disk: Disk = LOCAL,
) -> int:
    """Free the heavy local files of a closed recording, all or none; return how many.

    Every file must have its copies read back past the cache in this run: `proved` (store -> files) names those
    that were. Raises StorageError, OSError when a store fails; then nothing is freed.
    """
    manifest = read_manifest(recording)
    age_days, free_bytes = _age_days(manifest), shutil.disk_usage(recording).free
    if not rule.allows(len(stores), age_days, free_bytes):
        return 0
    try:
        with CopyLog(recording) as log:
            targets = [Target(where, log.target_of(where), disk) for where in stores]
            # The same store under two paths is one copy.
            different = {target.identity: target for target in targets}
            here = [
                item for item in files_of(recording, manifest) if item.source == recording / item.relative
            ]
            heavy = [item for item in here if is_heavy(item.relative)]
            standing: list[list[Target]] = []
            for item in heavy:
                copies = [t for t in different.values() if _stands(recording, item, t, log, proved, stop)]
                if not rule.allows(len(copies), age_days, free_bytes):
                    return 0
                standing.append(copies)
            # the last time that these files can be checked here
            if heavy:
                keep_verdict(recording, verify(recording))
            for item, copies in zip(heavy, standing, strict=True):
                _remove(recording, item, copies, log, disk)
            return len(heavy)
    except (Stopped, MoverBusy):
        return 0


def _stands(
    recording: Path,
    item: FileToCopy,
    target: Target,
    log: CopyLog,
    proved: dict[Path, set[str]],
    stop: threading.Event,
) -> bool:
    """Return whether a store has a copy that is the same, read past the cache in this run."""
    line = log.copies.get((item.relative, target.identity))
    if line is None:
        return False
    fresh = item.relative in proved.get(target.path, ())
    return fresh or target.holds(recording, item.relative, line.sha256, stop.is_set) is not None


def _remove(recording: Path, item: FileToCopy, targets: list[Target], log: CopyLog, disk: Disk) -> None:
    """Write where the copies of a file lie, then remove it."""
    for target in targets:
        line = log.copies[item.relative, target.identity]
        facts = (line.bytes, line.sha256, line.mtime_ns)
        log.write(CopyRecord(FREED, item.relative, *facts, target.identity, str(target.path), ""))
    disk.remove(recording / item.relative)


def _age_days(manifest: Manifest) -> float:
    ended_ns = moment_utc_ns(manifest, "stopped") or moment_utc_ns(manifest)
    return 0.0 if ended_ns is None else (utc_anchor().utc_ns - ended_ns) / 86_400e9
