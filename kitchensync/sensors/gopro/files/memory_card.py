"""A camera's card, or any folder of its files: its recordings, and verified copies."""

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
    """One recording on a card, with all chapters readable."""

    paths: tuple[Path, ...]
    serial: str | None
    model: str | None
    started_s: float | None
    """Start by the camera's clock, Unix seconds of the time in the file: UTC on newer cameras, local time on older
    ones; the fraction of a second is from the time code."""
    duration_s: float
    clip: Clip = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The first chapter's name."""
        return self.paths[0].name


class UnusableFiles(NamedTuple):
    """Files that cannot be imported, and the reason."""

    paths: tuple[Path, ...]
    why: str


def scan_card(folder: Path) -> tuple[list[CardClip], list[UnusableFiles]]:
    """Find the recordings below a folder; links are not followed."""
    clips: list[CardClip] = []
    bad: list[UnusableFiles] = []
    videos = []
    for path in files_below(folder):
        if path.is_symlink() or path.suffix.upper() != ".MP4":
            continue
        if card_name(path.name) is None:
            bad.append(UnusableFiles((path,), "its name is not that of a GoPro file"))
            continue
        try:
            check_safe("card" if path.parent.name else "", path.name)
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
        raise DownloadFailed(paths[0].name, f"its chapter {missing[0]} is missing")
    clip = open_clip(*paths)
    first = clip.chapters[0]
    if not len(clip.frame_times_s):
        raise DownloadFailed(paths[0].name, "it has no frames")
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
    """Copy a file to a temporary name, sync it, read it back from the disk, compare, and rename; return its hash.

    An existing target with the same content is kept; with other content it is never overwritten. `progress` is called
    with the bytes copied so far. Raises `DownloadFailed`.
    """
    part = target.with_name(target.name + ".part")
    try:
        if target.exists():
            digest = file_sha256(source)
            if file_sha256(target) != digest:
                why = f"{target} exists with other content and is never overwritten"
                raise DownloadFailed(source.name, why)
            return digest
        digest = _copy(source, part, progress)
        if _read_back(part) != digest:
            part.unlink()
            why = f"the copy in {target.parent} differs from what was written; check that disk"
            raise DownloadFailed(source.name, why)
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
        if hasattr(os, "posix_fadvise"):  # drop the page cache, so that the bytes are read from the disk
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return hashlib.file_digest(file, "sha256").hexdigest()
