"""What a redaction does about files outside of recording and stores: in the cloud, and what was made before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kitchensync.storage.copies.cloud_store import CloudStore
from kitchensync.storage.copies.copy_list import files_of, is_as_sent
from kitchensync.storage.copies.copy_log import COPIED, read_copies
from kitchensync.storage.copies.derived_files import older_than
from kitchensync.storage.copies.stored_copies import check_place
from kitchensync.storage.errors import StorageError, words_of
from kitchensync.storage.manifest import read_manifest


def remove_changed(recording: Path, url: str) -> str:
    """Remove from a cloud store what is not what the recording holds now; `upload` sends the new files.

    Return why something may still be there, or nothing.
    """
    sent = {line.file: line for line in read_copies(recording) if line.where == url and line.kind == COPIED}
    try:
        manifest, store = read_manifest(recording), CloudStore(url)
        held = {item.relative: item for item in files_of(recording, manifest)}
        check_place(store, recording, manifest)
        for name in store.names_below(recording.name):
            if not is_as_sent(held.get(name), sent.get(name), recording):
                store.remove(f"{recording.name}/{name}")
    except (OSError, StorageError) as error:
        return f"{url}: {words_of(error)}"
    return ""


def made_before(recording: Path, utc_ns: int) -> Iterator[str]:
    """Name what commands wrote of a recording before a time and is still there: it may show what is destroyed."""
    for place, do in older_than(recording, utc_ns):
        yield f"{place}: {do}"
