"""The media of every recording of a data set: written here, in several processes, or by workers of a scheduler."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kitchensync.dataset.release.lacking import lacking_of
from kitchensync.dataset.release.release_media import HEADSET, Media, MediaWriter, Tell, Work, work_of
from kitchensync.dataset.source.own_members import Ready
from kitchensync.dataset.source.own_recording import NotReleasable, OwnRecording
from kitchensync.sensors.errors import SensorError
from kitchensync.storage.batch.runner import Job, Workforce, run_all
from kitchensync.storage.batch.workers import count_of
from kitchensync.storage.errors import StorageError, words_of

IN_THIS_PROCESS = Workforce(workers=1)


class MediaNotWritten(StorageError):
    """A film or synchronized data that a release could not write, with the reason."""


@dataclass(frozen=True)
class MediaOrder:
    """What is written of each recording, and where to."""

    out: Path
    media: tuple[str, ...]
    force: bool
    without_consent: str


def write_media(ready: list[Ready], order: MediaOrder, crew: Workforce, tell: Tell) -> list[dict[str, Any]]:
    """Write the media of each recording; return what is said of them, in the same order.

    Raises MediaNotWritten where a file could not be written or a worker wrote it elsewhere, NoDask, NoWorkers.
    """
    by_path = {one.path.absolute(): one for one in ready}
    ids = {path: one.member.published_id for path, one in by_path.items()}
    work = Work(tell, sum(work_of(order.media, one.pictures) for one in ready))
    is_here = crew.scheduler is None and count_of(len(ready), crew.workers) == 1
    do = partial(_write, order, ids, work if is_here else Work(_silent, 0))
    job = Job(do, _not_done, loads="kitchensync.dataset.release.media_of_all", writes=None)
    said: dict[Path, dict[str, Any]] = {}
    with closing(run_all(job, list(by_path), crew)) as results:
        for path, answer in results:
            if "error" in answer:
                raise MediaNotWritten(answer["error"])
            said[path] = answer
            _look_for(order.out, answer)
            if not is_here:
                work.part = work_of(order.media, by_path[path].pictures)
                work.finish(ids[path])
    return [said[path] for path in by_path]


def _write(order: MediaOrder, ids: dict[Path, str], work: Work, path: Path) -> dict[str, Any]:
    try:
        with OwnRecording.open(path, without_consent=order.without_consent) as own:
            made = MediaWriter(own, ids[path], order.out, order.force, work).write(order.media)
            lacking, covered = lacking_of(own, with_headset=HEADSET in order.media)
            return _said(own, ids[path], made) | {"lacking": lacking, "coverage": covered}
    except (StorageError, SensorError, NotReleasable, OSError) as error:
        return _not_done(path, words_of(error))


def _not_done(path: Path, reason: str) -> dict[str, Any]:
    return {"recording": path.name, "error": reason}


def _said(own: OwnRecording, published_id: str, made: Media) -> dict[str, Any]:
    """Say of a recording what of it is in the data set; `holes`: frames that have none of a kind.

    Holes of the frames themselves are those that were never taken while the film ran.
    """
    return {
        "recording": own.recording.id,
        "published_id": published_id,
        "streams": made.links,
        "absent": made.absent,
        "holes": made.holes,
    }


def _look_for(out: Path, said: dict[str, Any]) -> None:
    """Refuse what a worker says it wrote and is not here: its folder of that name is another one."""
    for path in said["streams"].values():
        if not (out / path).exists():
            raise MediaNotWritten(
                f"{out / path}: is not here; the workers must see the same folder at this path"
            )


def _silent(_done: int, _whole: int, _words: str) -> None:
    """Show nothing."""
