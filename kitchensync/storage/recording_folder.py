"""Check the folder of a recording: only files and folders, with limits for sizes.

A recording is untrusted: a link leads to other files, a pipe or device may never end, and a huge file may fill the
memory. Such a folder is refused before anything in it is used, and so is one with other recordings inside, as after
an archive was unpacked into the data folder.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from kitchensync.shell.files_on_disk import NotPlainFile, check_facts, is_left_by_system, read_plain
from kitchensync.shell.untrusted_json import MOST_BYTES
from kitchensync.storage.disk.self_check import MOST_LINES_BYTES
from kitchensync.storage.errors import UnsafeFile
from kitchensync.storage.names import APP_FOLDER, LOGS, MANIFEST, MEDIA, is_path_inside

MOST_OF = {
    ".json": MOST_BYTES,
    ".jsonl": MOST_LINES_BYTES,
    ".html": 1 << 28,
    ".npz": 1 << 30,
    ".parquet": 2 << 30,
}
"""Maximum bytes of a file by its suffix; ten times those of a day with every sensor."""
MOST_DEPTH = 16
"""Maximum depth of folders; this software creates four."""
MOST_LOG = 2 << 30


def check_folder(recording: Path) -> None:
    """Refuse a folder with links, pipes or other recordings; it may itself be a link. Raises UnsafeFile, OSError."""
    folders = [""]
    while folders:
        folder = folders.pop()
        for entry in _entries(recording, folder):
            file = f"{folder}/{entry.name}" if folder else entry.name
            if (folder and entry.name == MANIFEST) or file == APP_FOLDER:
                why = f"lies inside another recording; move it out, or remove {recording / MANIFEST}"
                raise UnsafeFile(recording, file, why)
            if entry.is_dir(follow_symlinks=False):
                folders.append(file)
            else:
                _check_file(recording, file, entry)
    for path in recording.glob(f"*/{MEDIA}"):
        _check_media(recording, path)


def _entries(recording: Path, folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, without those of operating systems."""
    if folder.count("/") >= MOST_DEPTH:
        raise UnsafeFile(recording, folder, f"lies more than {MOST_DEPTH} folders deep; remove it")
    try:
        with os.scandir(recording / folder) as entries:
            return [entry for entry in entries if not is_left_by_system(entry.name)]
    except FileNotFoundError:  # a running recorder renames and removes folders
        return []


def _check_file(recording: Path, file: str, entry: os.DirEntry[str]) -> None:
    top = file.partition("/")[0]
    most = MOST_LOG if top == LOGS else MOST_OF.get(os.path.splitext(entry.name)[1])
    if entry.is_file(follow_symlinks=False) and most is None:
        return
    try:
        check_facts(entry.stat(follow_symlinks=False), Path(entry.path), most)
    except NotPlainFile as error:
        raise UnsafeFile(recording, file, f"is {error.strerror}") from error
    except FileNotFoundError:
        return


def _check_media(recording: Path, path: Path) -> None:
    """Check the names of films; its readers check the rest."""
    try:
        media = json.loads(read_plain(path, MOST_BYTES))
    except (FileNotFoundError, ValueError, RecursionError):
        return
    names = []
    for key in ("files", "small") if isinstance(media, dict) else ():
        entries = media.get(key)
        for entry in entries if isinstance(entries, list) else ():
            names.append(str(entry.get("file", "-") if isinstance(entry, dict) else entry))
    for name in names:
        if "/" in name or not is_path_inside(name):
            file = path.relative_to(recording).as_posix()
            raise UnsafeFile(
                recording, file, f"names {name[:100]!r}, which is no file beside it; take it from a copy"
            )
