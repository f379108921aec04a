"""Output files of commands: never among recorded files, never over a file without `--force`.

Every file is written under a temporary name, synced, then renamed.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from kitchensync.shell.files_on_disk import sync_path
from kitchensync.storage.copies.derived import PART, before_of, may_write, will_write
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.errors import StorageError
from kitchensync.storage.names import (
    CLOCK_STREAMS,
    COPIES,
    LEDGER_STREAMS,
    MANIFEST,
    MEDIA,
    WORK,
    check_new_recording,
    chunk_range,
)

DERIVED = "sync"
"""The only folder of a recording with computed files alone."""


class OutputRefused(StorageError):
    """An output path that must not or cannot be written."""

    def __init__(self, path: Path | str, why: str, advice: str) -> None:
        super().__init__(f"{path}: {why}; {advice}")


def check_output(path: Path, *, force: bool = False) -> Path:
    """Return the path of an output with links resolved; `force` allows to replace a file. Raises OutputRefused."""
    place = check_place(path)
    mode = _mode(place)
    if mode is None:
        return place
    if stat.S_ISDIR(mode):
        raise OutputRefused(path, "is a folder", "give the name of a file")
    if not stat.S_ISREG(mode):
        raise OutputRefused(path, "is no ordinary file", "give the name of a file")
    if chunk_range(place) is not None:
        raise OutputRefused(path, "is a sealed file of a recording", "choose another name")
    if not force:
        raise OutputRefused(path, "exists and is not written over", "choose another name, or give --force")
    return place


def check_place(path: Path, *, among_derived: bool = True) -> Path:
    """Return a path with its links resolved, if it is not among recorded files. Raises OutputRefused.

    `among_derived` allows the folder of a recording with computed files.
    """
    try:
        place = path.resolve()
    except (OSError, RuntimeError) as error:  # such as circular links
        raise OutputRefused(path, f"cannot be resolved ({error})", "choose another place") from error
    if _is_sealed(place) or _is_sealed(place.parent):
        raise OutputRefused(path, "lies among sealed files", "choose another place")
    for folder in (place, *place.parents):
        if folder.name == WORK:
            raise OutputRefused(path, "lies among the work files of recordings", "choose another place")
        if is_recorded(folder) and not (among_derived and _is_derived(place, folder)):
            if folder == place:
                raise OutputRefused(path, "is a recording", "choose another name")
            raise OutputRefused(
                path, f"lies inside the recording {folder.name}", "choose a place outside of it"
            )
    return place


def check_recording_place(place: Path) -> None:
    """Refuse a name that a recording must not have, and a place inside another one. Raises BadName, OutputRefused."""
    check_new_recording(place)
    check_place(place, among_derived=False)


def is_recorded(folder: Path) -> bool:
    """Return whether a folder is a recording, even without its manifest."""
    with suppress(OSError):
        has_list = (folder / MANIFEST).exists() or (folder / COPIES).exists()
        return has_list or any(
            any((folder / name).glob("*/*.h5")) for name in (LEDGER_STREAMS, CLOCK_STREAMS)
        )
    return False


def _is_sealed(folder: Path) -> bool:
    """Return whether a folder has sealed chunks or camera files."""
    with suppress(OSError):
        return (folder / MEDIA).exists() or any(chunk_range(path) for path in folder.glob("*.h5"))
    return False


def _is_derived(place: Path, recording: Path) -> bool:
    """Return whether a place is below `sync/` of a recording, also on a case-insensitive disk."""
    derived = recording / DERIVED
    if place.is_relative_to(derived):
        return True
    with suppress(OSError):
        return any(folder.samefile(derived) for folder in place.parents if folder.exists())
    return False


def _mode(place: Path) -> int | None:
    """Return the mode of a file, None if it is missing. Raises OutputRefused."""
    try:
        return place.lstat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise cannot_write(place, error) from error


def cannot_write(path: Path, error: OSError) -> OutputRefused:
    """Convert an error of the disk at a file or its temporary file."""
    file = error.filename if isinstance(error.filename, str) and error.filename else str(path)
    where = path if file.startswith(f"{path}{PART}") else file
    reason = (error.strerror or str(error)).lower()
    return OutputRefused(where, f"cannot be written ({reason})", "make room or choose another place")


@contextmanager
def written(path: Path, *, force: bool = False, ending: str = "") -> Iterator[Path]:
    """Yield a temporary file that is synced and renamed at the end of the block, or removed after an error.

    `ending` is for writers that need a file suffix. Raises OutputRefused, also for errors of the disk inside.
    """
    place = check_output(path, force=force)
    will_write(place)
    part = place.with_name(place.name + PART + ending)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)  # it could be a link
        yield part
        publish(part, path, force=force)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def publish(part: Path, path: Path, *, force: bool = False) -> None:
    """Rename a complete file durably; the destination is checked again. Raises OutputRefused."""
    place = check_output(path, force=force)
    try:
        # the content first: after a power cut the name must not lead to an empty file
        sync_path(part)
        LOCAL.rename(part, place)
        LOCAL.sync_folder(place.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def written_folder(path: Path, *, proof: str, force: bool = False) -> Iterator[Path]:
    """Yield an empty temporary folder that is synced and renamed at the end of the block, or removed after an error.

    `force` replaces only a folder with the file `proof`. Raises OutputRefused, also for errors of the disk inside.
    """
    place = _check_folder(path, proof, force=force)
    will_write(place)
    part, old = place.with_name(place.name + PART), before_of(place)
    try:
        if old.exists() and not place.exists():  # an earlier call was killed between two renames
            LOCAL.rename(old, place)
        for old_folder in (part, old):
            shutil.rmtree(old_folder, ignore_errors=True)
        part.mkdir(parents=True)
        yield part
        for path_below in (*part.rglob("*"), part):
            sync_path(path_below)
        # a folder with content cannot be renamed onto, so the old one steps aside
        if _check_folder(path, proof, force=force).exists():
            LOCAL.rename(place, old)
        LOCAL.rename(part, place)
        LOCAL.sync_folder(place.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        if old.exists() and not place.exists():
            LOCAL.rename(old, place)
        raise cannot_write(path, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _check_folder(path: Path, proof: str, *, force: bool) -> Path:
    """Return the path of an output folder, if nothing would be lost there. Raises OutputRefused."""
    place = check_place(path)
    mode = _mode(place)
    if mode is None:
        return place
    if not stat.S_ISDIR(mode):
        raise OutputRefused(path, "is no folder", "choose another name")
    try:
        is_empty = not any(place.iterdir())
    except OSError as error:
        raise cannot_write(place, error) from error
    if not is_empty and not force:
        advice = "choose another name" + ("" if proof == MANIFEST else ", or give --force")
        raise OutputRefused(path, "exists and is not written over", advice)
    if not is_empty and not (place / proof).is_file():
        raise OutputRefused(path, "holds something else, which is never replaced", "choose another name")
    return place


def write_output(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a file atomically. Raises OutputRefused."""
    with written(path, force=force) as part:
        part.write_bytes(content)


def write_into(folder: Path, files: Mapping[str, bytes], *, force: bool = False) -> None:
    """Write changed files into a folder; none if one needs `force`. Raises OutputRefused."""
    place = check_place(folder)
    contents = {folder / name: content for name, content in files.items()}
    missing = [path for path, content in contents.items() if not _holds(path, content)]
    for path in missing:
        check_output(path, force=force)
    if missing:
        may_write(place)
    for path in missing:
        write_output(path, contents[path], force=force)


def _holds(path: Path, content: bytes) -> bool:
    with suppress(OSError):
        return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content
    return False
