"""The copy of a recording in a store: only in a place of its own is anything written, changed or destroyed."""

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
    """What became of a copy: how many files of the recording were there, and still are; how many are others'."""

    found: int = 0
    kept: int = 0
    foreign: int = 0

    @property
    def open(self) -> str:
        """What is left to do there; empty where nothing is."""
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
    """Take the place of a recording in a store, note it, and announce there the copy that is not whole yet.

    A place where this installation copied nothing (`is_ours`: it did just now) must be empty, or hold an equal copy.
    Raises PlaceTaken, SourceDiffers, TargetAway, CloudRefused, OSError.
    """
    is_ours = is_ours or (store.identity, store.url) in log.made_here.known_stores
    there = check_place(store, recording, manifest, None if is_ours else items)
    if not is_ours:
        log.begin(store.identity, store.url)
    content = manifest_text(manifest | {COPYING: True})
    if there == content or (there and COPYING not in _stated(there)):
        return
    digest = hashlib.sha256(content).hexdigest()
    line = CopyRecord(COPIED, MANIFEST, len(content), digest, 0, store.identity, store.url, "")
    log.enter(line)  # a withdrawal finds it by its hash; the log gets the manifest of the whole copy
    store.announce(recording.name, content, is_new=there is None)


def check_place(
    store: CopyStore, recording: Path, manifest: Manifest, items: Sequence[FileToCopy] | None = None
) -> bytes | None:
    """Refuse the place of another recording; return the `recording.json` that is there, None without one.

    With `items` all that is there must be equal; a `recording.json` without a uuid does not state its owner.
    Raises PlaceTaken, SourceDiffers, CloudRefused, OSError.
    """
    name, place = recording.name, f"{store.url.rstrip('/')}/{recording.name}"
    there = store.manifest_of(name)
    owner = _owner(there)
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
    return there


def _stated(content: bytes | None) -> dict[str, Any]:
    """Return what the text of a `recording.json` states; nothing where there is none, or it cannot be read."""
    with suppress(BadJson):
        return parse_object(content or b"", most_bytes=MOST_BYTES)
    return {}


def _owner(content: bytes | None) -> str:
    return str(_stated(content).get("uuid") or "")


@dataclass(frozen=True)
class Content:
    """Which files are a recording's: those that the list names as copied, and what its own folder holds now."""

    recording: Path
    copied: set[tuple[str, str]]

    def has(self, store: CopyStore, folder: str, name: str) -> bool:
        """Return whether a file of a store is the recording's, or the beginning of one that was on its way."""
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
    """Destroy the copy of a recording in a store of the list, of no other recording. Raises OSError, StorageError."""
    where, name = entry["where"], recording.name
    store: CopyStore = (
        CloudStore(where) if is_uploaded(where, entry["target"]) else Target(Path(where), entry["target"])
    )
    names, content = store.names_below(name), Content(recording, outside.copied)
    there = store.manifest_of(name)
    if _owner(there) not in (entry["uuid"], ""):
        return Destroyed()
    announced = {MANIFEST + PART_SUFFIX} if there == b"" or _owner(there) else set[str]()
    ours = [one for one in names if one in announced or content.has(store, name, one)]
    for one in sorted(ours, key=lambda path: path == MANIFEST):  # last, since it tells whose copy it is
        store.remove(f"{name}/{one}")
    store.tidy(name, {file for file, _ in outside.copied})
    left = {*store.names_below(name)}
    return Destroyed(len(ours), len(left.intersection(ours)), len(left.difference(ours)))
