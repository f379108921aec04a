"""`kitchensync redact`: destroy pictures and sound in a recording and its reachable copies.

The manifest lists them before the first byte is destroyed, so the same command can continue after an interruption.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from kitchensync.sensors.errors import SensorError, UnreadableMedia
from kitchensync.shell.files_on_disk import file_sha256, sync_path
from kitchensync.shell.host_clock import utc_anchor
from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.chunks.archive_file import write_without
from kitchensync.storage.chunks.chunk_reader import Chunk, is_archive
from kitchensync.storage.copies.cloud_store import CloudStore
from kitchensync.storage.copies.copy_list import files_of, is_as_sent, is_closed
from kitchensync.storage.copies.copy_log import COPIED, COPY_LOG, CopyLog, is_uploaded, read_copies, stores_of
from kitchensync.storage.copies.derived_files import made_before
from kitchensync.storage.copies.read_through import is_same
from kitchensync.storage.copies.stored_copies import Content, check_place
from kitchensync.storage.copies.target import Target
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.disk.media_blocks import block_checksums
from kitchensync.storage.disk.self_check import CHECK
from kitchensync.storage.errors import NotRedactable, StorageError, UnreadableFile, words_of
from kitchensync.storage.events import EventLog
from kitchensync.storage.installation.own_list import LineKind, Outside, own_list, uuid_of
from kitchensync.storage.lab import lab_of
from kitchensync.storage.life import usable_manifest
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json
from kitchensync.storage.names import (
    CHUNK_SUFFIX,
    MANIFEST,
    MEDIA,
    PART_SUFFIX,
    REVIEW,
    chunk_name,
    stream_folder,
)
from kitchensync.storage.privacy import Pauses, pauses_of
from kitchensync.storage.recording import Recording, open_recording
from kitchensync.storage.recording_files.media_file import load_media
from kitchensync.storage.redact.blanked_films import blank
from kitchensync.storage.redact.redactions import BEGUN, DONE, KEY, NOT_YET
from kitchensync.storage.redact.to_destroy import is_of, plan

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import BlocksForm, FileFactsForm, RedactionForm

STALE = ("index.parquet", "poses.parquet", "events.json", "report.html", "verify.json")
"""Files of `sync/` that count or show destroyed packets; `sync` and `report` write them again."""

NOT_LISTED = (
    "only the recording names this store, nothing is changed there; look at it, and remove what shows it"
)


class ChangedFile(TypedDict, total=False):
    """New facts of a changed file."""

    bytes: int
    sha256: str
    blocks: BlocksForm


WRITER = "researcher"
Span = tuple[float, float]


def apply(
    folder: Path, redaction: RedactionForm, elsewhere: dict[str, ChangedFile]
) -> dict[str, ChangedFile]:
    """Destroy chunks and samples in the folder of a recording or copy, and update its manifest.

    `elsewhere` has the changed files that are not in this folder; returns all changed files by path. An incomplete
    copy has no manifest. Raises OSError, StorageError, UnreadableMedia.
    """
    facts, streams, films = dict(elsewhere), redaction["streams"], redaction["films"]
    homes = [
        *(stream_folder(folder, stream) for stream in streams),
        *((folder / film).parent for film in films),
    ]
    # incomplete files of a killed archive, mover or download
    destroy({path for home in homes for path in home.glob(f"*{PART_SUFFIX}")})
    for stream, chunks in streams.items():
        facts |= _destroy_chunks(folder, stream, {int(chunk["chunk"]) for chunk in chunks})
    for film, facts_of_film in films.items():
        path = folder / film
        if path.is_file():
            blank(path, facts_of_film["samples"])
            facts[film] = {"sha256": file_sha256(path), "blocks": block_checksums(path)}
        destroy(path.parent.glob("proxies/*"))
    destroy([*(folder / "sync" / name for name in STALE), *(folder / REVIEW).glob("*")])
    for camera in {film.rpartition("/")[0] for film in films}:
        _change_media(folder / camera / MEDIA, facts)
    if (folder / MANIFEST).is_file():
        _change_manifest(folder, redaction, facts)
    return facts


def destroy(files: Iterable[Path]) -> None:
    """Remove files durably; missing ones are skipped. Raises OSError."""
    existing = [file for file in files if file.exists()]
    for file in existing:
        LOCAL.remove(file)
    for folder in {file.parent for file in existing}:
        LOCAL.sync_folder(folder)


def _destroy_chunks(folder: Path, stream: str, numbers: set[int]) -> dict[str, ChangedFile]:
    """Remove chunks, and rewrite archives without them; return the new facts of the archives."""
    home = stream_folder(folder, stream)
    facts: dict[str, ChangedFile] = {}
    for path in sorted(home.glob(f"*{CHUNK_SUFFIX}")):
        if not (is_archive(path) and is_of(path, numbers)):
            continue
        with Chunk(path) as chunk:
            held = set(chunk.blocks["number"].tolist())
        if held <= numbers:
            destroy([path])
            continue
        if held & numbers:
            part = path.with_name(path.name + PART_SUFFIX)
            try:
                write_without(part, path, numbers)
                sync_path(part)
                LOCAL.rename(part, path)
            finally:
                LOCAL.remove(part)
            LOCAL.sync_folder(path.parent)
        facts[f"{stream}/{path.name}"] = {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
    destroy(home / chunk_name(number) for number in numbers)
    return facts


def _change_media(path: Path, facts: dict[str, ChangedFile]) -> None:
    """Enter the new facts of the films in a `media.json`."""
    if not path.is_file():
        return
    try:
        media = load_media(path)
    except BadJson as error:
        raise UnreadableFile(path, str(error)) from error
    for entry in media.get("files", []):  # missing if the recorder was killed early
        entry.update(cast(Any, facts.get(f"{path.parent.name}/{entry['file']}", {})))
    write_json(path, {key: value for key, value in media.items() if key != CHECK})


def _change_manifest(folder: Path, redaction: RedactionForm, facts: dict[str, ChangedFile]) -> None:
    gone = {
        stream: {int(chunk["chunk"]) for chunk in chunks} for stream, chunks in redaction["streams"].items()
    }
    with edit_manifest(folder) as manifest:
        files = manifest["files"]
        for name in list(files):
            path, numbers = Path(name), gone.get(name.rpartition("/")[0], set())
            if is_of(path, numbers) and not (is_archive(path) and name in facts):
                del files[name]
            elif name in facts:
                files[name] = cast("FileFactsForm", facts[name])
        manifest["problems"] = [
            problem for problem in manifest.get("problems", []) if not problem.startswith(NOT_YET)
        ]
        others = [entry for entry in manifest.get(KEY, []) if entry["id"] != redaction["id"]]
        manifest[KEY] = [*others, redaction]


class RedactionReport(TypedDict):
    """The object `redact/1`."""

    recording: str
    status: str
    "done; open while something is left in other places; nothing."
    packets: int
    chunks: int
    bytes: int
    films: list[str]
    "Videos of which parts were destroyed."
    places: list[str]
    open: list[str]
    "Why a place was not reached."


def redact(
    path: Path, *, reason: str, by: str = "", span_s: Span | None = None, whole_films: bool = False
) -> RedactionReport:
    """Destroy pictures and sound of the privacy pauses, or of a span of session seconds; return a report.

    `whole_films` destroys films of unknown time as a whole. Raises NotRedactable, NotARecording, Withdrawn,
    MoverBusy, BadEventLog, OSError.
    """
    manifest = usable_manifest(path)
    if not is_closed(manifest):
        raise NotRedactable(path, "it is not finished", "end it, or run `kitchensync recover`")
    with CopyLog(path) if (path / COPY_LOG).exists() else nullcontext():
        redactions = [
            _finish(path, entry)
            for entry in manifest.get(KEY, [])
            if entry["state"] == BEGUN or entry["open"]
        ]
        with open_recording(path) as recording:
            spans = pauses_of(path) if span_s is None else host_span(recording, span_s)
            if not spans and not redactions:
                raise NotRedactable(path, "it has no privacy pause", "give --from and --to")
            samples = plan(recording, spans, whole_films=whole_films)
        if any(samples):
            redaction: RedactionForm = {
                "id": str(uuid.uuid4()),
                "state": BEGUN,
                "reason": reason,
                "by": by,
                "utc_ns": time.time_ns(),
                "host_ns": [list(span) for span in spans],
                "streams": samples.streams,
                "films": samples.films,
                "open": [],
            }
            with edit_manifest(path) as manifest:
                manifest.setdefault(KEY, []).append(redaction)
            redactions.append(_finish(path, redaction))
    chunks = [chunk for entry in redactions for held in entry["streams"].values() for chunk in held]
    return {
        "recording": path.name,
        "status": "open"
        if any(entry["open"] for entry in redactions)
        else "done"
        if redactions
        else "nothing",
        "packets": sum(chunk["packets"] for chunk in chunks),
        "chunks": len(chunks),
        "bytes": sum(chunk["bytes"] for chunk in chunks),
        "films": sorted({film for entry in redactions for film in entry["films"]}),
        "places": sorted({place for entry in redactions for place in [*entry["places"], str(path)]}),
        "open": [why for entry in redactions for why in entry["open"]],
    }


def destroy_where_dropped(path: Path) -> None:
    """Destroy pauses if lab.toml says so; on failure add the reason to `problems` of the manifest."""
    try:
        if lab_of(path).pause == "drop" and pauses_of(path):
            redact(path, reason="privacy pause", by="lab.toml")
    except (StorageError, SensorError, OSError) as error:
        why = f"{NOT_YET}: {words_of(error)}"
        with edit_manifest(path) as manifest:
            manifest["problems"] = list(dict.fromkeys([*manifest.get("problems", []), why]))


def host_span(recording: Recording, span_s: Span) -> Pauses:
    """Convert seconds of session time to the capture clock."""
    session, session_ns = recording.session_time, [round(at_s * 1e9) for at_s in span_s]
    host_ns = session.to_host(session_ns) if session is not None else None
    if host_ns is None:
        started_ns = (recording.manifest.get("started") or {}).get("host_ns")
        if started_ns is None:
            raise NotRedactable(recording.path, "nothing tells when it began", "give no --from and --to")
        host_ns = np.add(session_ns, started_ns)
    return ((int(host_ns[0]), int(host_ns[1])),)


def _finish(path: Path, redaction: RedactionForm) -> RedactionForm:
    """Destroy in the copies first, then in the recording; unreachable copies stay open for the next run."""
    facts: dict[str, ChangedFile] = {}
    places: list[str] = []
    reasons: list[str] = []
    outside = own_list(path).outside(uuid_of(path))
    for target, where in outside.stores:
        copy = Path(where) / path.name
        if is_uploaded(where, target):
            continue
        try:
            if _is_copy(Target(Path(where), target), path, outside):
                facts |= apply(copy, {**redaction, "state": DONE, "open": [], "places": []}, {})
                _list_changed(path, target, where, facts)
                places.append(str(copy))
        except (OSError, StorageError, UnreadableMedia) as error:
            reasons.append(f"{copy}: {words_of(error)}")
    strangers = {(line.target, line.where) for line in stores_of(path)} - outside.known_stores
    reasons += [f"{where}: {NOT_LISTED}" for _, where in sorted(strangers)]
    reasons += made_before(path, redaction["utc_ns"])
    clouds = sorted({where for target, where in outside.stores if is_uploaded(where, target)})
    not_reached = [f"{where}: was not reached yet" for where in clouds]
    result: RedactionForm = {**redaction, "state": DONE, "open": [*reasons, *not_reached], "places": places}
    body = {key: redaction[key] for key in ("reason", "by", "host_ns")}
    now_ns = utc_anchor().host_ns
    EventLog(path, WRITER).append(
        "redact", host_ns=now_ns, uncertainty_ns=0, body=body, op_id=redaction["id"]
    )
    apply(path, {**result, "places": [*places, str(path)]}, facts)
    if clouds:
        reason_by_store = {where: remove_changed(path, where) for where in clouds}
        result["open"] = [*reasons, *filter(None, reason_by_store.values())]
        result["places"] = [*places, *(where for where in clouds if not reason_by_store[where])]
        with edit_manifest(path) as manifest:
            entry = next(entry for entry in manifest[KEY] if entry["id"] == result["id"])
            entry |= {"open": result["open"], "places": [*result["places"], str(path)]}
    return result


def _list_changed(path: Path, target: str, where: str, facts: dict[str, ChangedFile]) -> None:
    """Enter changed files of a copy in the installation's list, so that a withdrawal recognizes them."""
    copy, own, uuid = Path(where) / path.name, own_list(path), uuid_of(path)
    changed = [*facts, MANIFEST, *{f"{name.rpartition('/')[0]}/{MEDIA}" for name in facts}]
    for name in changed:
        if (copy / name).is_file():
            sha256 = file_sha256(copy / name)
            own.add(LineKind.COPY, uuid, target=target, where=where, file=name, sha256=sha256)


def _is_copy(store: Target, path: Path, outside: Outside) -> bool:
    """Return whether a store has a copy of a recording.

    An incomplete copy has no manifest, which is written last: then each complete file must be one of the recording.
    Raises StorageError if some are not.
    """
    copy, content = store.path / path.name, Content(path, outside.copied)
    if (copy / MANIFEST).exists():
        return is_same(read_manifest(copy), read_manifest(path))
    names = [name for name in store.names_below(path.name) if not name.endswith(PART_SUFFIX)]
    if not all(content.has(store, path.name, name) for name in names):
        raise StorageError(f"{copy}: holds files that are no copies of it; look at them")
    return bool(names)


def remove_changed(recording: Path, url: str) -> str:
    """Remove files from a cloud store that are no longer in the recording; return why some may still be there."""
    sent = {line.file: line for line in read_copies(recording) if line.where == url and line.kind == COPIED}
    try:
        manifest, store = read_manifest(recording), CloudStore(url)
        listed = {item.relative: item for item in files_of(recording, manifest)}
        check_place(store, recording, manifest)
        for name in store.names_below(recording.name):
            if not is_as_sent(listed.get(name), sent.get(name), recording):
                store.remove(f"{recording.name}/{name}")
    except (OSError, StorageError) as error:
        return f"{url}: {words_of(error)}"
    return ""
