"""Destroy a recording whose person took the consent back, in every place that is known, and leave a tombstone.

The manifest says first that the recording is withdrawn, which shuts every way out. Copies go before the recording,
since it alone knows where they are; a store that cannot be reached stays named in the tombstone until it was.
Interrupted anywhere, the same command goes on.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from kitchensync.sensors.files_on_disk import file_sha256
from kitchensync.storage.catalogue.kept_lines import forget
from kitchensync.storage.catalogue.listing import recordings_below
from kitchensync.storage.copies.cloud_store import CloudStore
from kitchensync.storage.copies.copy_list import is_closed
from kitchensync.storage.copies.copy_log import COPY_LOG, CopyLog, is_uploaded, stores_of
from kitchensync.storage.copies.derived_files import destroy_derived, read_derived
from kitchensync.storage.copies.target import Target
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.errors import MoverBusy, NotWithdrawable, StorageError, words_of
from kitchensync.storage.manifest import Manifest, edit_manifest, read_manifest, write_json
from kitchensync.storage.names import MADE_FROM, MANIFEST, PART_OF, WORK
from kitchensync.storage.withdraw.camera_cards import cards_of, erase
from kitchensync.storage.withdraw.made_of import made_from, made_of


class Policy(StrEnum):
    """Destroyed, or put aside where only the owner of the files can look."""

    DESTROY = "destroy"
    QUARANTINE = "quarantine"


KEY = "withdrawn"
LONGEST_WAIT_S = 30.0
QUARANTINE = ".withdrawn-{}"
"""What a folder is called in which a recording waits, for nobody to read."""


@dataclass(frozen=True)
class WithdrawnPlace:
    """One place: how many files were found, what was done with them, and why something is still open there."""

    place: str
    found: int
    done: str
    open: str = ""

    @property
    def said(self) -> dict[str, Any]:
        """Return it as an object of JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Left:
    """What is open of a withdrawal, as the tombstone keeps it: stores, lines of `derived.jsonl`, cameras' cards."""

    open: list[dict[str, Any]]
    derived: list[dict[str, Any]]
    cards: list[dict[str, Any]]


def recordings_of(person: str, data: Path) -> list[Path]:
    """Return the recordings below a folder whose participant has this pseudonym.

    A tombstone names nobody: each withdrawal that was interrupted, or is open somewhere, is among them and goes on.
    Raises StorageError for one that cannot be read: it could be theirs.
    """
    found = []
    for recording in recordings_below(data):
        manifest = read_manifest(recording)
        if manifest.get("pseudonym") == person or is_unfinished(recording, manifest):
            found.append(recording)
    return found


def is_unfinished(recording: Path, manifest: Manifest) -> bool:
    """Return whether a withdrawal was interrupted, or has a place that it could not reach."""
    about = manifest.get(KEY) or {}
    is_left = any(about.get(key) for key in ("open", "derived", "cards")) or len(list(_files(recording))) > 1
    return "files" in about and bool(is_left)


def withdraw(recording: Path, policy: Policy) -> list[WithdrawnPlace]:
    """Destroy a recording and its copies, or put it aside; return every place. Doing it again tries what is open.

    Raises NotARecording, NotWithdrawable while it is being recorded, MoverBusy while a copy does not end, OSError.
    """
    manifest = require_closed(recording)
    known = manifest.get(KEY) or {}
    if "utc_ns" not in known:  # the tablet's withdrawal has no such time: it could be taken back until now
        with edit_manifest(recording) as changed:
            changed[KEY] = {**known, "utc_ns": time.time_ns()}
        manifest = changed
    if "files" not in known:
        _wait_for_movers(recording)
    stores = known.get("open")
    if stores is None:
        stores = [{"where": line.where, "target": line.target} for line in stores_of(recording)]
    places = [_in_store(recording, store, manifest) for store in stores]
    cards = known["cards"] if "cards" in known else list(cards_of(recording, manifest))
    erased = [_card(card) for card in cards]  # which may take minutes, in which commands end
    lines = read_derived(recording, known.get("derived", ()))
    derived = [_derived(line, recording) for line in lines]
    left = _Left(_open_of(stores, places), _open_of(lines, derived), _open_of(cards, erased))
    here = _here(recording, policy, manifest, left)
    forget(recording)
    return [*places, *derived, *erased, *_left_beside(recording, policy), here]


def _wait_for_movers(recording: Path) -> None:
    """Wait until nobody copies the recording: whoever does looks at the manifest, which says it is withdrawn."""
    is_new = not (recording / COPY_LOG).exists()
    until = time.monotonic() + LONGEST_WAIT_S
    while True:
        try:
            with CopyLog(recording):
                if is_new:
                    (recording / COPY_LOG).unlink()
                return
        except MoverBusy:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def with_made_of(recordings: Iterable[Path]) -> tuple[list[Path], list[WithdrawnPlace]]:
    """Return recordings and those beside them that were made of their films, and the open places among these.

    Open is one that shows somebody else by its pseudonym. Raises NotARecording.
    """
    found, others = dict.fromkeys(recordings), dict[Path, None]()
    to_ask = list(found)
    while to_ask:
        recording = to_ask.pop()
        manifest = read_manifest(recording)
        for one in made_of(recording, manifest):
            if _is_of_another(one, manifest):
                others[one] = None
            elif one not in found:
                found[one] = None
                to_ask += [one] if made_from(one) else []
    why = "it holds a film of this person and is another's: withdraw it too, or destroy the film"
    parts_first = sorted(found, key=lambda one: -len(made_from(one)))  # since notes of the whole name them
    return parts_first, [
        WithdrawnPlace(str(one), 0, "nothing", why)
        for one in others
        if one not in found and not _is_virtual(one)
    ]


def _is_virtual(recording: Path) -> bool:
    try:
        return read_manifest(recording).get("virtual") is True
    except StorageError:
        return False


def _is_of_another(other: Path, manifest: Manifest) -> bool:
    try:
        theirs = read_manifest(other)
    except StorageError:
        return True
    return KEY not in theirs and theirs.get("pseudonym", "") not in ("", manifest.get("pseudonym", ""))


def _open_of(lines: list[dict[str, Any]], places: list[WithdrawnPlace]) -> list[dict[str, Any]]:
    return [line for line, place in zip(lines, places, strict=True) if place.open]


def _card(card: dict[str, Any]) -> WithdrawnPlace:
    found, left = erase(card)
    return WithdrawnPlace(
        f"card of camera {card['serial']}", found, "destroyed" if found else "nothing", left
    )


def _left_beside(recording: Path, policy: Policy) -> Iterator[WithdrawnPlace]:
    """Destroy what lies beside a recording: queue files of a recorder that died, what was put aside before."""
    beside = [recording.parent / WORK / recording.name]
    if policy is Policy.DESTROY:
        beside.append(recording.parent / QUARANTINE.format(recording.name))
    for folder in beside:
        if folder.is_dir():
            found = len(list(_files(folder)))
            shutil.rmtree(folder)
            yield WithdrawnPlace(str(folder), found, "destroyed")


def _derived(line: dict[str, Any], recording: Path) -> WithdrawnPlace:
    place = str(line.get("path") or line["server"])
    try:
        found, left = destroy_derived(line, recording)
    except OSError as error:
        return WithdrawnPlace(place, 0, "nothing", words_of(error))
    return WithdrawnPlace(place, found, "nothing" if left else "destroyed" if found else "nothing", left)


def require_closed(recording: Path) -> Manifest:
    """Return the manifest of a recording that nobody makes any more. Raises NotARecording, NotWithdrawable."""
    manifest = read_manifest(recording)
    if "state" in manifest and not is_closed(manifest):
        raise NotWithdrawable(recording)
    return manifest


def _in_store(recording: Path, store: dict[str, str], manifest: Manifest) -> WithdrawnPlace:
    where = store["where"]
    place = f"{where.rstrip('/')}/{recording.name}"
    try:
        if is_uploaded(where, store["target"]):
            found, left = CloudStore(where).remove_below(recording.name)
        else:
            Target(Path(where), store["target"])
            found, left = _destroy_copy(Path(where) / recording.name, manifest)
    except (OSError, StorageError) as error:
        return WithdrawnPlace(place, 0, "nothing", words_of(error))
    return WithdrawnPlace(place, found, "destroyed", f"{left} files are still there" if left else "")


def _destroy_copy(copy: Path, manifest: Manifest) -> tuple[int, int]:
    """Destroy the copy of a recording in a store; return how many files were there, and how many are."""
    if not copy.is_dir():
        return 0, 0
    if (copy / MANIFEST).exists() and read_manifest(copy).get("uuid") != manifest.get("uuid"):
        return 0, 0  # another recording of this name
    found = len(list(_files(copy)))
    shutil.rmtree(copy)
    LOCAL.sync_folder(copy.parent)
    return found, len(list(_files(copy)))


def _here(
    recording: Path,
    policy: Policy,
    manifest: Manifest,
    left: _Left,
) -> WithdrawnPlace:
    """Put a tombstone in place of the manifest, then destroy all else, or put it aside."""
    others = [path for path in _files(recording) if path.name != MANIFEST or path.parent != recording]
    is_tombstone = "files" in manifest.get(KEY, {})
    files = manifest[KEY]["files"] if is_tombstone else list(_tombstones(recording, manifest, others))
    tombstone: dict[str, Any] = {
        **{
            key: manifest[key]
            for key in ("schema", "recording", "uuid", MADE_FROM, PART_OF)
            if key in manifest
        },
        KEY: {"utc_ns": manifest[KEY]["utc_ns"], "policy": policy.value, "files": files, "open": left.open}
        | {key: lines for key, lines in (("derived", left.derived), ("cards", left.cards)) if lines},
    }
    if policy is Policy.QUARANTINE and others:
        _put_aside(recording, others)
    if tombstone != manifest:  # the app asks every few minutes
        write_json(recording / MANIFEST, tombstone)
    for path in _files(recording):
        if path != recording / MANIFEST:
            LOCAL.remove(path)
    for folder in sorted((one for one in recording.rglob("*") if one.is_dir()), reverse=True):
        folder.rmdir()
    LOCAL.sync_folder(recording)
    done = "quarantined" if policy is Policy.QUARANTINE else "destroyed"
    return WithdrawnPlace(str(recording), len(others), done if others else "nothing")


def _tombstones(recording: Path, manifest: Manifest, files: list[Path]) -> Iterator[dict[str, Any]]:
    known = manifest.get("files", {})
    for path in files:
        name = path.relative_to(recording).as_posix()
        if path.is_symlink():
            continue
        sha256 = known.get(name, {}).get("sha256") or file_sha256(path)
        yield {"file": name, "bytes": path.stat().st_size, "sha256": sha256}


def _put_aside(recording: Path, files: list[Path]) -> None:
    """Move a recording's files where only their owner can look. Raises OSError."""
    aside = recording.parent / QUARANTINE.format(recording.name)
    aside.mkdir(mode=0o700, exist_ok=True)
    for path in [*files, recording / MANIFEST]:
        to = aside / path.relative_to(recording)
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.name == MANIFEST and path.parent == recording:
            shutil.copyfile(path, to)
        else:
            os.replace(path, to)
    LOCAL.sync_folder(aside)


def _files(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, links among them, which are not followed."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_symlink() or not path.is_dir():
            yield path
