"""Write the media of all recordings of a data set: in this process, in several, or by workers of a scheduler."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from kitchensync.dataset.release.lacking import lacking_of
from kitchensync.dataset.release.release_media import HEADSET, MediaWriter, Tell, Work, work_of
from kitchensync.dataset.source.data_set import ReleasedMember
from kitchensync.dataset.source.own_members import Ready
from kitchensync.dataset.source.own_recording import NotReleasable, OwnRecording
from kitchensync.sensors.errors import SensorError
from kitchensync.storage.batch.runner import Job, Workforce, run_all
from kitchensync.storage.batch.workers import JobResult, count_of
from kitchensync.storage.errors import StorageError, words_of

IN_THIS_PROCESS = Workforce(workers=1)


class MediaNotWritten(StorageError):
    """A release could not write a video or synchronized data."""


@dataclass(frozen=True)
class MediaOrder:
    """The media to write of each recording, and the folder of the data set."""

    out: Path
    media: tuple[str, ...]
    force: bool
    without_consent: str


def write_media(ready: list[Ready], order: MediaOrder, crew: Workforce, tell: Tell) -> list[ReleasedMember]:
    """Write the media of each recording; return its members in the same order.

    Raises MediaNotWritten if a file could not be written or a worker wrote it elsewhere, NoDask, NoWorkers.
    """
    by_path = {recording.path.absolute(): recording for recording in ready}
    ids = {path: recording.member.published_id for path, recording in by_path.items()}
    work = Work(tell, sum(work_of(order.media, recording.pictures) for recording in ready))
    is_here = crew.scheduler is None and count_of(len(ready), crew.workers) == 1
    do = partial(_write, order, ids, work if is_here else Work(_silent, 0))
    job = Job(do, _not_done, loads="kitchensync.dataset.release.media_of_all", writes=None)
    members: dict[Path, ReleasedMember] = {}
    with closing(run_all(job, list(by_path), crew)) as results:
        for path, answer in results:
            if "error" in answer:
                raise MediaNotWritten(answer["error"])
            members[path] = cast(ReleasedMember, answer)
            for place in members[path]["streams"].values():
                if not (order.out / place).exists():  # the path is another folder on the worker
                    raise MediaNotWritten(
                        f"{order.out / place}: is not here; the workers must see the same folder at this path"
                    )
            if not is_here:
                work.part = work_of(order.media, by_path[path].pictures)
                work.finish(ids[path])
    return [members[path] for path in by_path]


def _write(order: MediaOrder, ids: dict[Path, str], work: Work, path: Path) -> JobResult:
    try:
        with OwnRecording.open(path, without_consent=order.without_consent) as own:
            made = MediaWriter(own, ids[path], order.out, order.force, work).write(order.media)
            lacking, covered = lacking_of(own, with_headset=HEADSET in order.media)
            member: ReleasedMember = {
                "recording": own.recording.id,
                "published_id": ids[path],
                "streams": made.links,
                "absent": made.absent,
                "holes": made.holes,
                "lacking": lacking,
                "coverage": covered,
            }
            return cast(JobResult, member)
    except (StorageError, SensorError, NotReleasable, OSError) as error:
        return _not_done(path, words_of(error))


def _not_done(path: Path, reason: str) -> JobResult:
    return {"recording": path.name, "error": reason}


def _silent(_done: int, _whole: int, _text: str) -> None:
    """Show nothing; a lambda could not be sent to workers."""
