"""The copy of a recording in a store; no other place is written, changed or destroyed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kitchensync.shell.files_on_disk import check_plain, file_sha256
from kitchensync.shell.untrusted_json import BadJson, parse_object
from kitchensync.storage.copies.cloud_store import CloudStore
from kitchensync.storage.copies.copy_list import FileToCopy
from kitchensync.storage.copies.copy_log import COPIED, CopyLog, CopyRecord, is_uploaded
from kitchensync.storage.copies.target import Target
from kitchensync.storage.errors import PlaceTaken
from kitchensync.storage.installation.own_list import ListLine, Outside
from kitchensync.storage.manifest import MOST_BYTES, Manifest, manifest_text
from kitchensync.storage.names import COPYING, MANIFEST, PART_SUFFIX


@dataclass(frozen=True)
class Destroyed:
    """Result for a copy: number of files of the recording, of those kept, and of foreign files."""

    count: int = 0
    kept: int = 0
    foreign: int = 0

    @property
    def open(self) -> str:
        """What is left to do; empty if nothing."""
        kept = f"{self.kept} files are still there" if self.kept else ""
        foreign = f"{self.foreign} files there are no copies made here; look at them" if self.foreign else ""
        return "; ".join(filter(None, (kept, foreign)))


CopyStore = Target | CloudStore
"""A place with copies of recordings, one folder each; names are relative to it."""


def begin_copy(
    store: CopyStore,
    recording: Path,
    manifest: Manifest,
    items: Sequence[FileToCopy],
    log: CopyLog,
    *,
    is_ours: bool = False,
) -> None:
    """Reserve the place of a recording in a store, log it, and write the manifest of an incomplete copy.

    A place to which this installation has not copied (`is_ours`: it has just done so) must be empty, or have an equal
    copy. Raises PlaceTaken, SourceDiffers, TargetAway, CloudRefused, OSError.
    """
    is_ours = is_ours or (store.identity, store.url) in log.made_here.known_stores
    present = check_place(store, recording, manifest, None if is_ours else items)
    if not is_ours:
        log.begin(store.identity, store.url)
    content = manifest_text(manifest | {COPYING: True})
    if present == content or (present and COPYING not in _stated(present)):
        return
    digest = hashlib.sha256(content).hexdigest()
    line = CopyRecord(COPIED, MANIFEST, len(content), digest, 0, store.identity, store.url, "")
    # So that a withdrawal recognizes it; the log gets the manifest of the complete copy.
    log.enter(line)
    store.announce(recording.name, content, is_new=present is None)


def check_place(
    store: CopyStore, recording: Path, manifest: Manifest, items: Sequence[FileToCopy] | None = None
) -> bytes | None:
    """Refuse the place of another recording; return its `recording.json`, or None.

    With `items` all existing files must be equal; a `recording.json` without a uuid has no owner. Raises PlaceTaken,
    SourceDiffers, CloudRefused, OSError.
    """
    name, place = recording.name, f"{store.url.rstrip('/')}/{recording.name}"
    present = store.manifest_of(name)
    owner = _owner(present)
    if owner and owner != manifest.get("uuid"):
        raise PlaceTaken(place, f"another recording of this name (uuid {owner})")
    names = store.names_below(name) if items is not None and store.has(name) else []
    if names and not owner:
        raise PlaceTaken(place, f"files that are no copy of this recording, such as {names[0]}")
    copied = [item for item in items or () if item.relative in names]
    for item in reversed(copied):  # the manifest, which is small, first
        item.check_size()
        digest = item.expected or file_sha256(item.source)
        if store.sha256_of(f"{name}/{item.relative}") != digest:
            raise PlaceTaken(place, f"a copy that was not made here, with another {item.relative}")
    return present


def _stated(content: bytes | None) -> dict[str, Any]:
    """Return the content of a `recording.json`, empty if it is missing or cannot be read."""
    with suppress(BadJson):
        return parse_object(content or b"", most_bytes=MOST_BYTES)
    return {}


def _owner(content: bytes | None) -> str:
    return str(_stated(content).get("uuid") or "")


@dataclass(frozen=True)
class Content:
    """The files of a recording: those in the list of copies, and those in its folder."""

    recording: Path
    copied: set[tuple[str, str]]

    def has(self, store: CopyStore, folder: str, name: str) -> bool:
        """Return whether a file of a store is one of the recording, or the start of one after an interruption."""
        place = f"{folder}/{name}"
        sha256 = store.sha256_of(place)
        if (name, sha256) in self.copied or not sha256:
            return bool(sha256)
        here = self.recording / name.removesuffix(PART_SUFFIX)
        try:
            check_plain(here)
            return file_sha256(here, store.size_of(place) or 0) == sha256
        except OSError:
            return False


def destroy_copy(entry: ListLine, recording: Path, outside: Outside) -> Destroyed:
    """Destroy the copy of a recording in a store of the list. Raises OSError, StorageError."""
    where, name = entry["where"], recording.name
    store: CopyStore = (
        CloudStore(where) if is_uploaded(where, entry["target"]) else Target(Path(where), entry["target"])
    )
    names, content = store.names_below(name), Content(recording, outside.copied)
    present = store.manifest_of(name)
    if _owner(present) not in (entry["uuid"], ""):
        return Destroyed()
    announced = {MANIFEST + PART_SUFFIX} if present == b"" or _owner(present) else set[str]()
    ours = [file for file in names if file in announced or content.has(store, name, file)]
    for file in sorted(ours, key=lambda path: path == MANIFEST):  # the manifest last, as it has the owner
        store.remove(f"{name}/{file}")
    store.tidy(name, {file for file, _ in outside.copied})
    remaining = {*store.names_below(name)}
    return Destroyed(len(ours), len(remaining.intersection(ours)), len(remaining.difference(ours)))
