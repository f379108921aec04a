"""Names of files, folders and queue keys that are shared by processes and versions."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from kitchensync.storage.errors import BadName

MANIFEST = "recording.json"
CHUNK_SUFFIX = ".h5"
PART_SUFFIX = ".part"
REVIEW = "sync/review"
"""Small films for the browser, made of the camera's; they are not copied."""
MEDIA = "media.json"
COPIES = "copies.jsonl"
"""Verified copies of the files of a recording."""
STORES = "stores.json"
"""State of the copies at the end of the recording."""
COPYING: Final = "copying"
"""Key of the manifest in an incomplete copy."""
HUB = "hf://"
"""Beginning of an address at the Hugging Face hub."""
DERIVED = "derived.jsonl"
"""Files that commands wrote from a recording outside of it."""
MADE_FROM: Final = "made_from"
PART_OF: Final = "part_of"
"""Keys in the manifest of a cut or replayed recording: uuids of its sources, and the span of a cut."""
LOGS = "logs"
"""Logs of the processes of a recording, without payloads."""

WORK = ".kitchensync"
"""Private folder beside the recordings: queue files, parts, logs of running recordings."""

APP_FOLDER = "_app"
"""Folder of the installation beside the recordings: its key and list, the recipe app's database."""

CLOCK_STREAMS = "clock"
LEDGER_STREAMS = "ledger"
"""Folders of the streams without a sensor: `clock/<device>`, `ledger/<device>`."""

_RECORDING_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NOT_IN_PATHS = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")
_LONGEST_PATH, _LONGEST_PART = 1024, 255  # lowest of common systems: PATH_MAX of macOS, NAME_MAX of Linux
_CHUNK = re.compile(r"(?:(\d{6,})-)?(\d{6,})\.h5")


def check_recording_id(name: str) -> str:
    """Return the id, or raise BadName if it is not a valid folder name on every system."""
    if not _RECORDING_ID.fullmatch(name):
        raise BadName(name)
    return name


_OF_WINDOWS = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def check_new_recording(folder: Path) -> None:
    """Refuse a folder for a new recording that is invalid on Windows, SMB or a case-insensitive store.

    Raises BadName for such a name, or one that differs from a neighbour only in case, and OSError.
    """
    name = check_recording_id(folder.name)
    if name.endswith(".") or _OF_WINDOWS.fullmatch(name):
        raise BadName(name, "Windows and SMB shares cannot hold a folder of this name; choose another id")
    others = os.listdir(folder.parent) if folder.parent.is_dir() else []
    if same := next((other for other in others if other != name and other.lower() == name.lower()), None):
        raise BadName(name, f"it differs from {same} only in case; choose another id")


def is_path_inside(name: str) -> bool:
    """Return whether a name from a file of a recording is a path below its folder on every system."""
    if len(name) > _LONGEST_PATH or _NOT_IN_PATHS.search(name):
        return False
    return all(
        part not in ("", ".", "..") and len(part.encode()) <= _LONGEST_PART for part in name.split("/")
    )


def stream_folder(recording: Path, stream: str) -> Path:
    """Folder of a stream's sealed chunks, for example `<recording>/hololens/gyroscope`."""
    return recording.joinpath(*stream.split("/"))


def chunk_range(path: Path) -> tuple[int, int] | None:
    """First and last chunk number in a sealed file, None for a foreign name."""
    match = _CHUNK.fullmatch(path.name)
    return (int(match.group(1) or match.group(2)), int(match.group(2))) if match else None


def chunk_number(path: Path) -> int | None:
    """Last chunk number in a sealed file, None for a foreign name."""
    numbers = chunk_range(path)
    return numbers[1] if numbers else None


def chunk_name(number: int) -> str:
    """File name of the n-th sealed chunk of a stream, counted from 1."""
    return f"{number:06d}{CHUNK_SUFFIX}"


def archive_name(first: int, last: int) -> str:
    """File name of the archive of the chunks from `first` to `last`."""
    return f"{first:06d}-{last:06d}{CHUNK_SUFFIX}"


def stream_key(recording_uuid: str, stream: str) -> str:
    """Queue key of one stream; the braces keep a stream's keys on one node of a cluster."""
    return f"ks:{{{recording_uuid}:{stream}}}:packets"


def files_key(recording_uuid: str, stream: str) -> str:
    """Queue key of the sealed files of one stream: file name -> bytes and hash."""
    return f"ks:{{{recording_uuid}:{stream}}}:files"


DRAINERS = "drainers"
"""Name of the consumer group that empties every stream."""


def recordings_in(path: Path) -> list[Path]:
    """Return the recordings at a path: itself, or those in the folder, in order of name.

    A folder of recorded files without `recording.json` counts, so that it is reported.
    """
    if not path.is_dir() or (path / MANIFEST).exists() or holds_recorded_files(path):
        return [path]
    return sorted(folder for folder in path.glob("*") if is_recording(folder)) or [path]


def is_recording(folder: Path) -> bool:
    """Return whether a folder is a recording, even without its `recording.json`."""
    if (folder / MANIFEST).exists():
        return True
    return _RECORDING_ID.fullmatch(folder.name) is not None and holds_recorded_files(folder)


def holds_recorded_files(folder: Path) -> bool:
    """Return whether there are sealed files, films or a list of copies, which only a recording has."""
    sealed = (path for path in folder.glob(f"*/*/*{CHUNK_SUFFIX}") if chunk_range(path) is not None)
    films = folder.glob(f"*/{MEDIA}")
    return any(sealed) or any(films) or (folder / COPIES).is_file()
