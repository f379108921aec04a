"""Copy a recording to a cloud store by URL (fsspec), read every file back, go on after an interruption."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.copies.copies import COPIED, Book, CopyRecord
from storage.copies.copy_list import FileToCopy, files_of, is_closed
from storage.copies.promised import missing_files
from storage.copies.read_through import readable_folder
from storage.errors import (
    CloudRefused,
    CopyDiffers,
    FilesMissing,
    NotFinished,
    SecretInAddress,
    SourceDiffers,
)
from storage.life import usable_manifest

STEP_BYTES = 8 << 20

WITH_FOLDERS = {"file", "local", "memory", "sftp", "ssh", "smb"}
"""Stores that want a folder before a file; in others "making a folder" might buy a bucket for a mistyped name."""

PASSWORD = re.compile(r"(\w+)://[^/@]*:[^/]*@")
"""Protocol of a store whose address holds a password."""

Progress = Callable[[str, int, int], None]
"""File, bytes of the recording that are there and read back (a file on its way in part), bytes in all."""


@dataclass(frozen=True)
class Uploaded:
    """What was done."""

    recording: str
    url: str
    files: int
    sent: int
    sent_bytes: int


def upload(recording: Path, url: str, progress: Progress = lambda *_: None) -> Uploaded:
    """Copy every file of a closed recording below `url`/<id>; the manifest comes last.

    A file that the book holds as copied there, and that the store still has in its size, is not sent again.
    Who may write there is for the store's own settings (environment, profile files): nothing of it is kept, and an
    address with a password in it is refused. Raises StorageError.
    """
    if found := PASSWORD.search(url):
        raise SecretInAddress(found[1])
    manifest = usable_manifest(recording)
    if not is_closed(manifest):
        raise NotFinished(recording)
    items = files_of(recording, manifest)
    if missing := missing_files(readable_folder(recording, manifest), manifest):
        raise FilesMissing(recording, missing)
    store, root = _open_store(url)
    total = sum(item.source.stat().st_size for item in items)
    safe = sent = sent_bytes = 0
    base = f"{root.rstrip('/')}/{recording.name}"
    with Book(recording) as book:
        for item in items:
            size = item.source.stat().st_size
            place = f"{base}/{item.relative}"

            def tell(here: int, safe: int = safe, name: str = item.relative) -> None:
                progress(name, safe + here, total)

            try:
                if not _is_there(store, place, recording, item, book, url):
                    _send(store, place, item, book, url, tell)
                    sent, sent_bytes = sent + 1, sent_bytes + size
            except (SourceDiffers, CopyDiffers):
                raise
            except Exception as error:
                raise CloudRefused(url, item.relative, _why(error)) from error
            safe += size
            progress(item.relative, safe, total)
    return Uploaded(recording.name, url, len(items), sent, sent_bytes)


def _open_store(url: str) -> tuple[Any, str]:
    try:
        core = importlib.import_module("fsspec.core")
        store, root = core.url_to_fs(url)
    except ImportError as error:
        raise CloudRefused(url, "", f'{error}; install the extra: pip install -e ".[cloud]"') from error
    except Exception as error:
        raise CloudRefused(url, "", _why(error)) from error
    return store, str(root)


def _why(error: Exception) -> str:
    """Say what a store said; of the computer's own errors the words alone."""
    words = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
    return words or type(error).__name__


def _is_there(store: Any, place: str, recording: Path, item: FileToCopy, book: Book, url: str) -> bool:
    line = book.copies.get((item.relative, url))
    facts = item.source.stat()
    is_here = item.source == recording / item.relative  # a copy has a time of its own
    if line is None or line.bytes != facts.st_size or (is_here and line.mtime_ns != facts.st_mtime_ns):
        return False
    store.invalidate_cache()
    return bool(store.exists(place)) and int(store.info(place)["size"]) == line.bytes


def _send(
    store: Any, place: str, item: FileToCopy, book: Book, url: str, tell: Callable[[int], None]
) -> None:
    """Write a file to the store, read it back, compare; `tell` hears half its bytes each time."""
    source = item.source
    facts = source.stat()
    digest = hashlib.sha256()
    if not WITH_FOLDERS.isdisjoint([store.protocol] if isinstance(store.protocol, str) else store.protocol):
        store.makedirs(place.rpartition("/")[0], exist_ok=True)
    with source.open("rb") as file, store.open(place, "wb", block_size=STEP_BYTES) as target:
        while piece := file.read(STEP_BYTES):
            digest.update(piece)
            target.write(piece)
            tell(file.tell() // 2)
    if item.expected is not None and digest.hexdigest() != item.expected:
        store.rm_file(place)
        raise SourceDiffers(source)
    back = hashlib.sha256()
    with store.open(place, "rb", block_size=STEP_BYTES, cache_type="readahead") as target:
        while piece := target.read(STEP_BYTES):
            back.update(piece)
            tell((facts.st_size + target.tell()) // 2)
    if back.hexdigest() != digest.hexdigest():
        store.rm_file(place)
        raise CopyDiffers(Path(f"{url}/{item.relative}"))
    line = CopyRecord(
        COPIED, item.relative, facts.st_size, digest.hexdigest(), facts.st_mtime_ns, url, url, "downloaded"
    )
    book.write(line)
