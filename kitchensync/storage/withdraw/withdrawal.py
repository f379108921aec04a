"""Destroy a recording after its participant withdrew consent, in every known place, and leave a tombstone.

First the manifest is marked as withdrawn, which blocks every other use. The places of copies, outputs and videos on
memory cards come from the installation's own list, never from the recording, which may be forged. Unreachable places
stay open in that list. After an interruption the same command continues.
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
from typing import TYPE_CHECKING, Final, TypedDict, cast

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
    """Destroy the files, or move them to a folder that only their owner can read."""

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
"""Largest file, bytes, that is hashed if the manifest has no hash; for larger files no hash is kept."""
QUARANTINE = ".withdrawn-{}"
"""Name of the quarantine folder of a recording."""


class WithdrawnPlaceJson(TypedDict):
    """One place of a withdrawal."""

    place: str
    found: int
    "Files."
    done: str
    open: str
    "Why something is still open there; empty if nothing is."


@dataclass(frozen=True)
class WithdrawnPlace:
    """One place: number of files, what was done with them, and why something is still open there."""

    place: str
    count: int
    done: str
    open: str = ""
    is_to_repeat: bool = False
    "Whether the same command may find more there later."

    def as_json(self) -> WithdrawnPlaceJson:
        """Return the place as JSON."""
        return {"place": self.place, "found": self.count, "done": self.done, "open": self.open}


def recordings_of(person: str, data: Path) -> list[Path]:
    """Return the recordings below a folder with this pseudonym.

    A tombstone has no pseudonym: every unfinished withdrawal of this installation is included and continued. Raises
    StorageError for an unreadable recording, because it could be this person's.
    """
    recordings, listed = [], list_in(data).all_outside()
    for recording in recordings_below(data):
        manifest = read_manifest(recording)
        outside = listed.get(uuid_of(recording, manifest))
        if manifest.get("pseudonym") == person or (outside is not None and outside.is_unfinished):
            recordings.append(recording)
    return recordings


def withdraw(recording: Path, policy: Policy) -> list[WithdrawnPlace]:
    """Destroy a recording and its copies, or quarantine it; return every place. A repetition retries open places.

    Raises NotARecording, NotWithdrawable while it is being recorded, MoverBusy while a copy does not end,
    BadInstallation, OSError.
    """
    manifest = require_closed(recording)
    withdrawn, own, uuid = manifest.get(KEY) or {}, own_list(recording), uuid_of(recording, manifest)
    if "utc_ns" not in withdrawn:  # a withdrawal at the tablet has no time: it could be undone until now
        with edit_manifest(recording) as changed:
            changed[KEY] = {**withdrawn, "utc_ns": time.time_ns()}
        manifest = changed
    if "files" not in withdrawn:
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
    """Destroy copies, outputs and card files in the list; return the places, the list, and its open lines."""
    own = own_list(recording)
    cards = [] if manifest.get("virtual") is True else list(own.outside(uuid).cameras.values())
    erased = []
    for card in cards:  # may take minutes, in which other commands end and add lines to the list
        count, why = erase(card)
        place = f"card of camera {card['serial']}"
        erased.append(WithdrawnPlace(place, count, "destroyed" if count else "nothing", why))
    outside = own.outside(uuid)
    stores, lines = list(outside.stores.values()), by_place(outside.derived)
    copies = [_in_store(recording, store, outside) for store in stores]
    derived = [_derived(line, recording) for line in lines]
    strangers = _not_made_here(recording, manifest, outside)
    remaining = {
        "stores": [line for line, place in zip(stores, copies, strict=True) if place.is_to_repeat],
        "derived": [line for line, place in zip(lines, derived, strict=True) if place.open],
        "cameras": [line for line, place in zip(cards, erased, strict=True) if place.open],
    }
    return [*copies, *derived, *erased, *strangers], outside, remaining


def _not_made_here(recording: Path, manifest: Manifest, outside: Outside) -> Iterator[WithdrawnPlace]:
    """Yield places that only the recording itself names: nothing is destroyed there."""
    lines: list[CopyRecord] = []
    with suppress(StorageError):  # reported by `verify`
        lines = stores_of(recording)
    stores = {(row.target, row.where) for row in lines} - outside.known_stores
    places = [f"{where.rstrip('/')}/{recording.name}" for _, where in sorted(stores)]
    notes = [row for row in read_sound_lines(recording / DERIVED) if isinstance(row, dict)]
    places += sorted({str(row.get("path") or row.get("server")) for row in notes})
    withdrawn = manifest.get(KEY) or {}
    places += [
        str(row.get("where") or row.get("path") or row.get("address") or row)
        for row in (*withdrawn.get("open", ()), *withdrawn.get("derived", ()), *withdrawn.get("cards", ()))
    ]
    # A virtual kitchen's videos show no person; a damaged media.json is reported by `verify`.
    for path in sorted(recording.glob(f"*/{MEDIA}")) if manifest.get("virtual") is not True else ():
        with suppress(BadJson, OSError):
            media = load_media(path)
            if media.get("address") and path.parent.name not in outside.cameras:
                films = ", ".join(str(row.get("file")) for row in media.get("files") or ())
                places.append(f"card of camera {media.get('serial') or ''} ({films or 'its film'})")
    for place in places:
        yield WithdrawnPlace(
            place, 0, NOT_MADE_HERE, "only the recording names it; check it, and remove its files there"
        )


def _wait_for_movers(recording: Path) -> None:
    """Wait until movers of the recording have stopped: they check the manifest, which is marked as withdrawn."""
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
    """Return recordings and those that this installation made from them; other related recordings as open places.

    Related recordings that were not made here, or have another pseudonym, stay until they are named too: a uuid or a
    video can be copied into any recording. Raises NotARecording.
    """
    recordings_to_destroy, others = dict.fromkeys(recordings), dict[Path, str]()
    to_check = list(recordings_to_destroy)
    while to_check:
        recording = to_check.pop()
        manifest = read_manifest(recording)
        for other in related(recording, manifest):
            if other.is_same:
                others[other.path] = SAME_UUID
            elif _is_of_another(other.path, manifest):
                others[other.path] = OF_ANOTHER
            elif not other.is_made_here:
                others[other.path] = SAME_FILM
            elif other.path not in recordings_to_destroy:
                recordings_to_destroy[other.path] = None
                to_check += [other.path] if made_from(other.path) else []
    # Parts first: the notes of the whole recording name them.
    parts_first = sorted(recordings_to_destroy, key=lambda path: -len(made_from(path)))
    resolved = {other.resolve() for other in recordings_to_destroy}
    return parts_first, [
        WithdrawnPlace(str(other), 0, "nothing", why)
        for other, why in others.items()
        if other.resolve() not in resolved and not _is_settled(other)
    ]


def _is_settled(recording: Path) -> bool:
    """Return whether a recording is virtual, or only its tombstone is left."""
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
    """Destroy queue files of a dead recorder and an earlier quarantine beside a recording."""
    beside = [recording.parent / WORK / recording.name]
    if policy is Policy.DESTROY:
        beside.append(recording.parent / QUARANTINE.format(recording.name))
    for folder in beside:
        if folder.is_dir() and folder.resolve() == recording.resolve().parent / folder.relative_to(
            recording.parent
        ):
            count = len(list(_files(folder)))
            shutil.rmtree(folder)
            yield WithdrawnPlace(str(folder), count, "destroyed")


def _derived(line: ListLine, recording: Path) -> WithdrawnPlace:
    place = str(line.get("path") or line["server"])
    try:
        count, why = destroy_derived(line, recording)
    except OSError as error:
        return WithdrawnPlace(place, 0, "nothing", words_of(error))
    return WithdrawnPlace(place, count, "nothing" if why else "destroyed" if count else "nothing", why)


def require_closed(recording: Path) -> Manifest:
    """Return the manifest of a recording that is not being recorded. Raises NotARecording, NotWithdrawable."""
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
    done = "destroyed" if gone.count else "nothing"
    return WithdrawnPlace(place, gone.count, done, gone.open, is_to_repeat=gone.kept > 0)


def _here(recording: Path, policy: Policy, manifest: Manifest) -> WithdrawnPlace:
    """Replace the manifest by a tombstone, then destroy or quarantine all other files."""
    others = [path for path in _files(recording) if path.name != MANIFEST or path.parent != recording]
    withdrawn = manifest[KEY] or {}
    if (files := withdrawn.get("files")) is None:
        files = list(_tombstones(recording, manifest, others))
    tombstone = cast(Manifest, {key: value for key, value in manifest.items() if key in STAYING})
    tombstone[KEY] = {"utc_ns": withdrawn["utc_ns"], "policy": policy.value, "files": files}
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
    # before files are destroyed: a repeated call takes their list from it
    if tombstone != manifest:  # the app asks every few minutes
        write_json(recording / MANIFEST, tombstone)
    for path in _files(recording):
        if path != recording / MANIFEST:
            LOCAL.remove(path)
    for folder in sorted((path for path in recording.rglob("*") if path.is_dir()), reverse=True):
        folder.rmdir()
    LOCAL.sync_folder(recording)
    done = "quarantined" if policy is Policy.QUARANTINE else "destroyed"
    return WithdrawnPlace(str(recording), len(others), done if others else "nothing")


def _tombstones(recording: Path, manifest: Manifest, files: list[Path]) -> Iterator[GoneFileForm]:
    hashes = promised_hashes(recording, manifest) if "files" in manifest else {}
    for path in files:
        name, facts = path.relative_to(recording).as_posix(), path.lstat()
        if not S_ISREG(facts.st_mode):
            continue
        is_small = facts.st_size <= MOST_HASHED
        sha256 = hashes.get(name) or (file_sha256(path) if is_small else "")
        yield {"file": name, "bytes": facts.st_size, "sha256": sha256}


def _files(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, and links, which are not followed."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_symlink() or not path.is_dir():
            yield path


def erase(card: ListLine) -> tuple[int, str]:
    """Erase the files of a card in the installation's list; return their number, and why it is open."""
    names = ", ".join(str(file["file"]) for file in card["files"]) or "its film, which was never fetched"
    if not card["files"]:
        return 0, f"{names}, may be on it: erase it there"
    try:
        with open_camera(card["address"]) as camera:
            if camera.info().serial != card["serial"]:
                return 0, f"another camera answers; {names} may be on the card of {card['serial']}"
            listed = [(file["folder"], file["file"], file["bytes"]) for file in card["files"]]
            matches = [file for file in camera.media() if (file.folder, file.name, file.bytes) in listed]
            for file in matches:
                camera.delete(file)
    except (SensorError, OSError) as error:
        return 0, f"{names} may be on it: {' '.join(str(error).split())}"
    return len(matches), ""
