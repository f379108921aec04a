"""A camera's card, or any folder of its files: which recordings lie there, and copies that are compared."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from kitchensync.sensors.errors import DownloadFailed, SensorError, UnsafeName
from kitchensync.sensors.gopro.files.card_names import card_name, check_safe, group_clips
from kitchensync.sensors.gopro.files.clip import Clip, open_clip
from kitchensync.shell.files_on_disk import file_sha256, files_below, sync_path

COPY_BYTES = 4 << 20


@dataclass(frozen=True)
class CardClip:
    """One recording on a card, all of its chapters readable."""

    paths: tuple[Path, ...]
    serial: str | None
    model: str | None
    started_s: float | None
    """Start by the camera's clock, Unix seconds as the file prints it: true UTC on newer cameras, local time on older
    ones; the sub-second part comes from the time code."""
    duration_s: float
    clip: Clip = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The first chapter's name."""
        return self.paths[0].name


class UnusableFiles(NamedTuple):
    """Files that cannot be imported, and why."""

    paths: tuple[Path, ...]
    why: str


def scan_card(folder: Path) -> tuple[list[CardClip], list[UnusableFiles]]:
    """Find the recordings below a folder; names are checked, links are not followed."""
    clips: list[CardClip] = []
    bad: list[UnusableFiles] = []
    videos = []
    for path in files_below(folder):
        if path.is_symlink() or path.suffix.upper() != ".MP4":
            continue
        if card_name(path.name) is None:
            bad.append(UnusableFiles((path,), "its name is none that a GoPro gives"))
            continue
        try:
            check_safe("", path.name) if not path.parent.name else check_safe("card", path.name)
        except UnsafeName as error:
            bad.append(UnusableFiles((path,), str(error)))
            continue
        videos.append(path)
    for group in group_clips(videos):
        try:
            clips.append(_read(group.paths, group.missing))
        except SensorError as error:
            bad.append(UnusableFiles(group.paths, str(error)))
    return clips, bad


def _read(paths: tuple[Path, ...], missing: tuple[int, ...]) -> CardClip:
    if missing:
        raise DownloadFailed(paths[0].name, f"chapter {missing[0]} is missing beside it")
    # One path would be widened to its siblings, which are these.
    clip = open_clip(*paths)
    first = clip.chapters[0]
    if not len(clip.frame_times_s):
        raise DownloadFailed(paths[0].name, "it holds no pictures")
    return CardClip(paths, first.serial, first.camera_model, _started_s(clip), float(clip.duration_s), clip)


def _started_s(clip: Clip) -> float | None:
    first = clip.chapters[0]
    if first.creation_time is None:
        return None
    try:
        whole_s = datetime.fromisoformat(first.creation_time).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    wall_s = first.tmcd_wall_seconds_since_midnight
    return whole_s + (wall_s % 1.0 if wall_s is not None else 0.5)


def copy_verified(source: Path, target: Path, progress: Callable[[int], None] = lambda _: None) -> str:
    """Copy a file under a partial name, sync it, read it back past the page cache, compare, rename; return its hash.

    A target that is there already with the same bytes is left alone; with others it is never written over.
    `progress` hears of the bytes copied so far.
    Raises `DownloadFailed`.
    """
    part = target.with_name(target.name + ".part")
    try:
        if target.exists():
            digest = file_sha256(source)
            if file_sha256(target) != digest:
                raise DownloadFailed(
                    source.name, f"{target} exists with other bytes; it is never written over"
                )
            return digest
        digest = _copy(source, part, progress)
        if _read_back(part) != digest:
            part.unlink()
            raise DownloadFailed(
                source.name, f"the copy in {target.parent} is not what was written; check that disk"
            )
        os.replace(part, target)
        sync_path(target.parent)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise DownloadFailed(source.name, (error.strerror or str(error)).lower()) from error
    return digest


def _copy(source: Path, part: Path, progress: Callable[[int], None]) -> str:
    digest, done = hashlib.sha256(), 0
    with source.open("rb") as reader, part.open("wb") as writer:
        while block := reader.read(COPY_BYTES):
            writer.write(block)
            digest.update(block)
            done += len(block)
            progress(done)
        writer.flush()
        os.fsync(writer.fileno())
    return digest.hexdigest()


def _read_back(path: Path) -> str:
    with path.open("rb") as file:
        if hasattr(os, "posix_fadvise"):  # what was just written must come from the disk, not from memory
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return hashlib.file_digest(file, "sha256").hexdigest()
