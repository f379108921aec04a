"""Destroy a recording whose person took the consent back, in every place that is known, and leave a tombstone.

The manifest says first that the recording is withdrawn, which shuts every way out. Where copies, outputs and films on
cards are is taken from the installation's own list, never from the recording, which may come from anybody. What
cannot be reached stays open in that list. Interrupted anywhere, the same command goes on.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, cast

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.control.open_camera import open_camera
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.catalogue.kept_lines import forget
from kitchensync.storage.catalogue.listing import recordings_below
from kitchensync.storage.copies.copy_list import is_closed
from kitchensync.storage.copies.copy_log import COPY_LOG, CopyLog, CopyRecord, stores_of
from kitchensync.storage.copies.derived_files import by_place, destroy_derived
from kitchensync.storage.copies.read_through import promised_hashes
from kitchensync.storage.copies.stored_copies import destroy_copy
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.disk.self_check import read_sound_lines
from kitchensync.storage.errors import MoverBusy, NotWithdrawable, StorageError, words_of
from kitchensync.storage.installation.own_list import LineKind, ListLine, Outside, list_in, own_list, uuid_of
from kitchensync.storage.manifest import Manifest, edit_manifest, read_manifest, write_json
from kitchensync.storage.names import DERIVED, MADE_FROM, MANIFEST, MEDIA, PART_OF, WORK
from kitchensync.storage.recording_files.media_file import load_media
from kitchensync.storage.withdraw.made_of import made_from, related

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import GoneFileForm


class Policy(StrEnum):
    """Destroyed, or put aside where only the owner of the files can look."""

    DESTROY = "destroy"
    QUARANTINE = "quarantine"


KEY: Final = "withdrawn"
NOT_MADE_HERE = "not made here"
OF_ANOTHER = "it holds a film of this person and is another's: withdraw it too, or destroy the film"
SAME_FILM = "it holds a film of this recording and was not made here: withdraw it too, or remove it"
SAME_UUID = "it has the same uuid and is no copy that was made here: withdraw it too, or remove it"
STAYING = ("schema", "recording", "uuid", MADE_FROM, PART_OF)
"""Keys of the manifest that a tombstone keeps."""
LONGEST_WAIT_S = 30.0
MOST_HASHED = 1 << 30
"""Bytes of a file that the recording does not describe: a larger one is destroyed without its hash being kept."""
QUARANTINE = ".withdrawn-{}"
"""What a folder is called in which a recording waits, for nobody to read."""


@dataclass(frozen=True)
class WithdrawnPlace:
    """One place: how many files were found, what was done with them, and why something is still open there."""

    place: str
    found: int
    done: str
    open: str = ""
    is_to_repeat: bool = False
    "Whether the same command may find more there later."

    @property
    def said(self) -> dict[str, Any]:
        """Return it as an object of JSON."""
        return {"place": self.place, "found": self.found, "done": self.done, "open": self.open}


def recordings_of(person: str, data: Path) -> list[Path]:
    """Return the recordings below a folder whose participant has this pseudonym.

    A tombstone names nobody: each withdrawal of this installation that was interrupted, or is open somewhere, is
    among them and goes on. Raises StorageError for one that cannot be read: it could be theirs.
    """
    found, listed = [], list_in(data).all_outside()
    for recording in recordings_below(data):
        manifest = read_manifest(recording)
        known = listed.get(uuid_of(recording, manifest))
        if manifest.get("pseudonym") == person or (known is not None and known.is_unfinished):
            found.append(recording)
    return found


def withdraw(recording: Path, policy: Policy) -> list[WithdrawnPlace]:
    """Destroy a recording and its copies, or put it aside; return every place. Doing it again tries what is open.

    Raises NotARecording, NotWithdrawable while it is being recorded, MoverBusy while a copy does not end,
    BadInstallation, OSError.
    """
    manifest = require_closed(recording)
    known, own, uuid = manifest.get(KEY) or {}, own_list(recording), uuid_of(recording, manifest)
    if "utc_ns" not in known:  # the tablet's withdrawal has no such time: it could be taken back until now
        with edit_manifest(recording) as changed:
            changed[KEY] = {**known, "utc_ns": time.time_ns()}
        manifest = changed
    if "files" not in known:
        _wait_for_movers(recording)
    facts = {"recording": recording.name, "policy": policy.value}
    if not own.outside(uuid).is_unfinished:
        own.add(LineKind.WITHDRAWING, uuid, **facts)
    places, before, left = _outside(recording, manifest, uuid)
    here = _here(recording, policy, manifest)
    last = before.last  # the app asks every few minutes
    if last is None or last["kind"] != LineKind.WITHDRAWN or last != {**last, **left}:
        own.add(LineKind.WITHDRAWN, uuid, upto=before.upto, **facts, **left)
    forget(recording)
    return [*places, *_left_beside(recording, policy), here]


def _outside(
    recording: Path, manifest: Manifest, uuid: str
) -> tuple[list[WithdrawnPlace], Outside, dict[str, list[ListLine]]]:
    """Destroy what the list names outside; return the places, what the list held, and which of it is open."""
    own = own_list(recording)
    cards = [] if manifest.get("virtual") is True else list(own.outside(uuid).cameras.values())
    erased = []
    for card in cards:  # which may take minutes, in which commands end
        found, why = erase(card)
        place = f"card of camera {card['serial']}"
        erased.append(WithdrawnPlace(place, found, "destroyed" if found else "nothing", why))
    outside = own.outside(uuid)
    stores, lines = list(outside.stores.values()), by_place(outside.derived)
    copies = [_in_store(recording, store, outside) for store in stores]
    derived = [_derived(line, recording) for line in lines]
    strangers = _not_made_here(recording, manifest, outside)
    left = {
        "stores": [one for one, place in zip(stores, copies, strict=True) if place.is_to_repeat],
        "derived": [one for one, place in zip(lines, derived, strict=True) if place.open],
        "cameras": [one for one, place in zip(cards, erased, strict=True) if place.open],
    }
    return [*copies, *derived, *erased, *strangers], outside, left


def _not_made_here(recording: Path, manifest: Manifest, outside: Outside) -> Iterator[WithdrawnPlace]:
    """Name the places that only the recording itself gives: nothing is done there."""
    lines: list[CopyRecord] = []
    with suppress(StorageError):  # `verify` names it; it decides nothing here
        lines = stores_of(recording)
    stores = {(one.target, one.where) for one in lines} - outside.known_stores
    named = [f"{where.rstrip('/')}/{recording.name}" for _, where in sorted(stores)]
    notes = [one for one in read_sound_lines(recording / DERIVED) if isinstance(one, dict)]
    named += sorted({str(one.get("path") or one.get("server")) for one in notes})
    known = manifest.get(KEY) or {}
    named += [
        str(one.get("where") or one.get("path") or one.get("address") or one)
        for one in (*known.get("open", ()), *known.get("derived", ()), *known.get("cards", ()))
    ]
    # nobody is in a virtual kitchen's films; where media.json is damaged, `verify` names it
    for path in sorted(recording.glob(f"*/{MEDIA}")) if manifest.get("virtual") is not True else ():
        with suppress(BadJson, OSError):
            media = load_media(path)
            if media.get("address") and path.parent.name not in outside.cameras:
                films = ", ".join(str(one.get("file")) for one in media.get("files") or ())
                named.append(f"card of camera {media.get('serial') or ''} ({films or 'its film'})")
    for place in named:
        yield WithdrawnPlace(
            place, 0, NOT_MADE_HERE, "only the recording names it; look at it, and remove what is of it"
        )


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
    """Return recordings and those that this installation made of them, and open places: others that seem to be.

    Those stay until they are given too, for anybody can give a recording the uuid or a film of another. So do those
    with another person's pseudonym. Raises NotARecording.
    """
    found, others = dict.fromkeys(recordings), dict[Path, str]()
    to_ask = list(found)
    while to_ask:
        recording = to_ask.pop()
        manifest = read_manifest(recording)
        for one in related(recording, manifest):
            if one.is_same:
                others[one.path] = SAME_UUID
            elif _is_of_another(one.path, manifest):
                others[one.path] = OF_ANOTHER
            elif not one.is_made_here:
                others[one.path] = SAME_FILM
            elif one.path not in found:
                found[one.path] = None
                to_ask += [one.path] if made_from(one.path) else []
    parts_first = sorted(found, key=lambda one: -len(made_from(one)))  # since notes of the whole name them
    given = {one.resolve() for one in found}
    return parts_first, [
        WithdrawnPlace(str(one), 0, "nothing", why)
        for one, why in others.items()
        if one.resolve() not in given and not _is_settled(one)
    ]


def _is_settled(recording: Path) -> bool:
    """Return whether nobody is in a recording, or nothing is left of it."""
    try:
        manifest = read_manifest(recording)
    except StorageError:
        return False
    is_empty = "files" in (manifest.get(KEY) or {}) and len(list(_files(recording))) == 1
    return manifest.get("virtual") is True or is_empty


def _is_of_another(other: Path, manifest: Manifest) -> bool:
    try:
        theirs = read_manifest(other)
    except StorageError:
        return True
    return KEY not in theirs and theirs.get("pseudonym", "") not in ("", manifest.get("pseudonym", ""))


def _left_beside(recording: Path, policy: Policy) -> Iterator[WithdrawnPlace]:
    """Destroy what lies beside a recording: queue files of a recorder that died, what was put aside before."""
    beside = [recording.parent / WORK / recording.name]
    if policy is Policy.DESTROY:
        beside.append(recording.parent / QUARANTINE.format(recording.name))
    for folder in beside:
        if folder.is_dir() and folder.resolve() == recording.resolve().parent / folder.relative_to(
            recording.parent
        ):
            found = len(list(_files(folder)))
            shutil.rmtree(folder)
            yield WithdrawnPlace(str(folder), found, "destroyed")


def _derived(line: ListLine, recording: Path) -> WithdrawnPlace:
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


def _in_store(recording: Path, store: ListLine, outside: Outside) -> WithdrawnPlace:
    place = f"{store['where'].rstrip('/')}/{recording.name}"
    try:
        gone = destroy_copy(store, recording, outside)
    except (OSError, StorageError) as error:
        return WithdrawnPlace(place, 0, "nothing", words_of(error), is_to_repeat=True)
    done = "destroyed" if gone.found else "nothing"
    return WithdrawnPlace(place, gone.found, done, gone.open, is_to_repeat=gone.kept > 0)


def _here(recording: Path, policy: Policy, manifest: Manifest) -> WithdrawnPlace:
    """Put a tombstone in place of the manifest, then destroy all else, or put it aside."""
    others = [path for path in _files(recording) if path.name != MANIFEST or path.parent != recording]
    known = manifest[KEY] or {}
    if (files := known.get("files")) is None:
        files = list(_tombstones(recording, manifest, others))
    tombstone = cast(Manifest, {key: value for key, value in manifest.items() if key in STAYING})
    tombstone[KEY] = {"utc_ns": known["utc_ns"], "policy": policy.value, "files": files}
    if policy is Policy.QUARANTINE and others:
        aside = recording.parent / QUARANTINE.format(recording.name)
        aside.mkdir(mode=0o700, exist_ok=True)
        for path in [*others, recording / MANIFEST]:
            to = aside / path.relative_to(recording)
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.name == MANIFEST and path.parent == recording:
                shutil.copyfile(path, to)
            else:
                os.replace(path, to)
        LOCAL.sync_folder(aside)
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


def _tombstones(recording: Path, manifest: Manifest, files: list[Path]) -> Iterator[GoneFileForm]:
    known = promised_hashes(recording, manifest) if "files" in manifest else {}
    for path in files:
        name, facts = path.relative_to(recording).as_posix(), path.lstat()
        if not S_ISREG(facts.st_mode):
            continue
        is_small = facts.st_size <= MOST_HASHED
        sha256 = known.get(name) or (file_sha256(path) if is_small else "")
        yield {"file": name, "bytes": facts.st_size, "sha256": sha256}


def _files(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, links among them, which are not followed."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_symlink() or not path.is_dir():
            yield path


def erase(card: ListLine) -> tuple[int, str]:
    """Erase the files of a card, by the installation's list; return how many were there, and why it is open."""
    names = ", ".join(str(one["file"]) for one in card["files"]) or "its film, which was never fetched"
    if not card["files"]:
        return 0, f"{names}, may be on it: erase it there"
    try:
        with open_camera(card["address"]) as camera:
            if camera.info().serial != card["serial"]:
                return 0, f"another camera answers; {names} may be on the card of {card['serial']}"
            known = [(one["folder"], one["file"], one["bytes"]) for one in card["files"]]
            found = [one for one in camera.media() if (one.folder, one.name, one.bytes) in known]
            for one in found:
                camera.delete(one)
    except (SensorError, OSError) as error:
        return 0, f"{names} may be on it: {' '.join(str(error).split())}"
    return len(found), ""
