"""Synchronize many recordings in this process, in several, or on a Dask cluster, with the same result.

A failure does not stop the others. Finished recordings have a `sync/state.json`, which is written last, so that a
killed run can be continued.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, cast

from kitchensync.sensors.errors import SensorError
from kitchensync.storage.batch.runner import Job, Workforce, run_all
from kitchensync.storage.copies.read_through import readable_folder
from kitchensync.storage.errors import FilesFreed, NotFinished, StorageError, Unusable, is_trouble, words_of
from kitchensync.storage.life import Life, life_by, usable_manifest
from kitchensync.storage.names import recordings_in
from kitchensync.sync.answers import RecordingAnswer, SyncAnswer
from kitchensync.sync.errors import BadLatencyStore, NoSuchMaster, SyncError
from kitchensync.sync.frame_index.masters import check_master
from kitchensync.sync.result.state import OWN, finished, forget, kept_answer

REFUSALS = (Unusable, NoSuchMaster, BadLatencyStore)
"""Errors that need an action of the user first, before data is judged."""


SCHEMA = "sync/1"
NOT_DONE = "not_done"
"""Status of a recording without an answer because of a problem other than its data."""
NOTHING = "nothing_to_align"  # status of a recording that was aborted at its start
LOADED = "kitchensync.sync.batch.loaded"
Progress = Callable[[int, int, RecordingAnswer], None]


def synchronize_all(
    paths: Iterable[Path],
    *,
    master: str | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> SyncAnswer:
    """Synchronize the recordings at `paths`; return the object `sync/1` in order of `paths` and name.

    `scheduler` is the address of a Dask scheduler; without one, `workers` processes of this computer are used
    (default: one per core). Finished recordings of a folder are skipped, unless `again`. Raises NoDask, NoWorkers,
    UnknownMaster before any work.
    """
    recordings: list[Path] = []
    todo: list[Path] = []
    answers: dict[Path, RecordingAnswer] = {}
    for path in paths:
        inside = recordings_in(path)
        recordings += inside
        for recording in inside:
            known = None if again or inside == [path] else finished(recording, master)
            if known is not None:
                answers[recording] = known
            elif recording not in todo:
                todo.append(recording)
    check_master(recordings, master)
    work, stand_in = cast(Any, partial(synchronize_one, master=master)), cast(Any, not_done)
    job = Job(work, stand_in, loads=LOADED, writes=OWN)
    with closing(run_all(job, todo, Workforce(scheduler, workers))) as results:
        for done, (recording, result) in enumerate(results, start=1):
            answer = cast(RecordingAnswer, result)
            if answer.get("failed"):
                print(f"kitchensync: {answer.get('error') or answer['reasons'][0]}", file=sys.stderr)
            if "path" in answer:
                answer["path"] = str(recording)  # a worker elsewhere may use another path
            answers[recording] = answer
            if progress is not None:
                progress(done + len(recordings) - len(todo), len(recordings), answer)
    return {"schema": SCHEMA, "recordings": [answers[recording] for recording in recordings]}


def synchronize_one(path: Path, master: str | None) -> RecordingAnswer:
    """Synchronize one recording without raising; a problem other than of its data keeps its last answer."""
    from kitchensync.sync.synchronize import synchronize

    try:
        return settled_by_life(path) or synchronize(path, master=master)
    except REFUSALS as error:
        return not_done(path, str(error))
    except (SyncError, StorageError, SensorError) as error:
        if is_trouble(error):
            return not_done(path, str(error))
        forget(path)
        return failed(path, str(error))
    except MemoryError:
        return not_done(path, "not enough memory; run it with fewer --workers")
    except OSError as error:
        return not_done(path, words_of(error))
    except Exception as error:  # noqa: BLE001  a fault in one recording must not stop four hundred
        return not_done(path, f"unforeseen {type(error).__name__}: {error}")


def failed(path: Path, reason: str) -> RecordingAnswer:
    """Return the answer for a recording with unusable data."""
    return _without_pairs(path, "not_aligned", reason) | {"failed": True}


def not_done(path: Path, reason: str) -> RecordingAnswer:
    """Return the last answer with a problem other than of the data; without one the status is `not_done`."""
    answer = _without_pairs(path, NOT_DONE, reason)
    (error,) = answer["reasons"]
    if (kept := kept_answer(path)) is not None:
        answer = kept | {"reasons": [*kept.get("reasons", []), f"not computed again: {error}"]}
    return answer | {"checked": False, "error": error, "failed": True}


def _without_pairs(path: Path, status: str, reason: str) -> RecordingAnswer:
    """Return an answer with the reason in one line, without the path of the folder."""
    reason = " ".join(reason.split()).replace(f"{path}/", "").replace(str(path), path.name)
    return {"recording": path.name, "status": status, "reasons": [reason], "pairs": []}


def settled_by_life(path: Path) -> RecordingAnswer | None:
    """Return the answer for a recording that cannot be synchronized now, else None.

    If its files are elsewhere and not available, it is the last answer with `checked` false. Raises Unusable if the
    recording is refused, or there is no last answer.
    """
    manifest = usable_manifest(path)
    life = life_by(path, manifest)
    if life == Life.RECORDING:
        raise NotFinished(path)
    if life == Life.ABORTED:
        reason = "it was given up at its start: there is nothing to align"
        return {
            "recording": path.name,
            "status": NOTHING,
            "path": str(path),
            "reasons": [reason],
            "pairs": [],
        }
    try:
        readable_folder(path, manifest)
    except FilesFreed as error:
        kept = kept_answer(path)
        if kept is None:
            raise
        return kept | {
            "checked": False,
            "reasons": [*kept.get("reasons", []), f"not computed again: {error}"],
        }
    return None
