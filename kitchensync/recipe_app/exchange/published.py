"""Import folders of published annotations (the form of CaptainCook4D) into the log, and export them byte for byte.

A folder becomes one operation `collection` (texts, categories, splits, videos, graphs) and, for each recording, the
operations of a tablet: `recording` with the unchanged entries, then steps and errors at the time of the video. A file
that our writer would not reproduce exactly is stored as it is. An export differs only by corrections of the desk.
"""

from __future__ import annotations

import hashlib
import io
import json
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from sqlalchemy import select

from kitchensync.dataset.source.corrections import VIDEO, corrected
from kitchensync.dataset.source.data_set_folder import refuse_links
from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.oplog import NewOp
from kitchensync.shell.files_on_disk import matching
from kitchensync.task_graphs.categories import CATEGORIES, OTHER
from kitchensync.task_graphs.errors import BadGraph, NotFound
from kitchensync.task_graphs.formats.annotation_files import format_annotations
from kitchensync.task_graphs.formats.annotations import (
    AVERAGES,
    COMPLETE,
    ERRORS,
    SPLITS,
    STEP_TEXTS,
    AnnotatedRecording,
    Annotations,
    Entry,
    TaggedError,
    parse_annotations,
)
from kitchensync.task_graphs.formats.graph_files import read_text

FOLDERS = {
    "annotation_json": ".json",
    "annotation_csv": ".csv",
    "data_splits": ".json",
    "metadata": ".csv",
    "task_graphs": ".json",
}
"""Folders of the form, with the endings of their file names."""
MOST_BYTES = 32 << 20
_CATEGORY = {category.column: category.number for category in CATEGORIES}


def files_of(folder: Path) -> dict[str, str]:
    """Read the files of a folder of this form, relative path -> text. Raises BadGraph."""
    if not (folder / COMPLETE).is_file():
        raise BadGraph(
            str(folder), "", f"there is no {COMPLETE}; give the folder that holds annotation_json/"
        )
    refuse_links(folder)
    paths = [path for name, end in FOLDERS.items() for path in matching(folder / name, f"*{end}")]
    return {path.relative_to(folder).as_posix(): read_text(path, most_bytes=MOST_BYTES) for path in paths}


def check_names(files: Mapping[str, str]) -> None:
    """Check that names are of this form, since they are untrusted and become paths. Raises BadGraph."""
    for name in files:
        folder, _, file = name.partition("/")
        if not (file.isascii() and file.removesuffix(FOLDERS.get(folder, "/")).replace("_", "").isalnum()):
            raise BadGraph(name[:80], "", f"not a file of a data set; expected {', '.join(FOLDERS)}")


class TakenCollection(TypedDict):
    """An imported folder of annotations."""

    collection: str
    "Its id."
    name: str
    recordings: int
    operations: int
    new: int
    "Operations that were not in the log."
    contradictions: list[str]
    "Recordings whose two step files disagree."


def take_in(files: Mapping[str, str], name: str, records: AppRecords, *, actor: str) -> TakenCollection:
    """Import a folder of annotations. Idempotent. Raises BadGraph."""
    check_names(files)
    for needed in (COMPLETE, ERRORS, STEP_TEXTS):
        if needed not in files:
            raise BadGraph(name, "", f"there is no {needed}")
    collection = collection_of(files)
    annotations = parse_annotations(files)
    operations = list(_operations(collection, name, annotations, files, records, actor))
    new = records.note_all(operations)
    return {
        "collection": collection,
        "name": name,
        "recordings": len(annotations.recordings),
        "operations": len(operations),
        "new": new,
        "contradictions": annotations.contradictions,
    }


def collection_of(files: Mapping[str, str]) -> str:
    """Return the id of a folder with these files in the log."""
    return _id("collection", hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest())


def _id(*parts: object) -> str:
    """Return a UUID in the form of version 7 that depends only on its parts, so that imports are idempotent."""
    value = int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:16])
    value = value & ~(0xF << 76) & ~(0x3 << 62) | (0x7 << 76) | (0x2 << 62)
    return str(uuid.UUID(int=value))


def _operations(
    collection: str,
    name: str,
    annotations: Annotations,
    files: Mapping[str, str],
    records: AppRecords,
    actor: str,
) -> Iterator[NewOp]:
    now_ns, utc_ns = records.now_ns(), records.utc_ns()

    def op(
        subject: str, place: int, kind: str, body: dict[str, Any], seconds: float = 0, who: str = actor
    ) -> NewOp:
        return NewOp(
            op_id=subject if place == 0 else _id(subject, place),
            device="",
            seq=0,
            actor=who,
            subject=subject,
            kind=kind,
            body=body,
            host_ns=max(round(seconds * 1e9), 0),
            uncertainty_ns=0,
            basis=VIDEO,
            received_host_ns=now_ns,
            received_utc_ns=utc_ns,
        )

    for place, recording in enumerate(annotations.recordings):
        subject = _id(collection, recording.recording_id, place)
        frozen = {**_frozen(recording), "collection": collection, "place": place}
        who = f"published person {recording.person_id}"
        yield op(subject, 0, "recording", frozen, who=who)
        for number, (kind, body, seconds) in enumerate(_events(subject, recording), start=1):
            yield op(subject, number, kind, body, seconds, who)
    # Last, to mark the import as complete.
    yield op(collection, 0, "collection", _collection_body(name, annotations, files))


def _collection_body(name: str, annotations: Annotations, files: Mapping[str, str]) -> dict[str, Any]:
    written = format_annotations(annotations)
    return {
        "name": name,
        "files": sorted(files),
        "step_texts": [[number, text] for number, text in annotations.step_texts.items()],
        "categories": [[text, number] for text, number in annotations.categories.items()],
        "videos": [list(row) for row in annotations.videos],
        # As texts, since the log sorts the keys of objects.
        "splits": {path: json.dumps(split) for path, split in annotations.splits.items()},
        "averages": annotations.averages,
        "as_they_stand": {path: text for path, text in files.items() if written.get(path) != text},
    }


def _frozen(recording: AnnotatedRecording) -> dict[str, Any]:
    steps = {
        str(n): {"label": e.description, "text": e.description} for n, e in enumerate(recording.entries, 1)
    }
    return {
        "folder": None,
        "kitchen": f"published kitchen {recording.environment}",
        "name": f"{recording.activity_name} {recording.recording_id}",
        "title": f"{recording.activity_name} {recording.recording_id}",
        "source": f"{recording.graph_stem}.json",
        "graph_hash": "",  # its nodes are the entries, not those of a graph
        "strategy": "published",
        "display": "steps",
        "seed": 0,
        "total": None,
        "order": list(range(1, len(steps) + 1)),
        "steps": steps,
        "edges": [],
        "planned": [],
        "script": None,
        "annotated": asdict(recording),
    }


def _events(subject: str, recording: AnnotatedRecording) -> Iterator[tuple[str, dict[str, Any], float]]:
    timed: list[tuple[float, int, str, dict[str, Any]]] = []
    for node, entry in enumerate(recording.entries, 1):
        if entry.performed:
            timed.append((entry.start_s, node, "start", {"node": node}))
            timed.append((max(entry.end_s, entry.start_s), node, "done", {"node": node}))
        for number, error in enumerate(entry.errors):
            fields = {
                "node": node,
                "categories": [category_of(error.tag)],
                "description": error.description[:600],
            }
            body = {"error_id": _id(subject, "error", node, number), "fields": fields}
            timed.append((max(entry.start_s, 0), node, "add_error", body))
    end_s = max((event[0] for event in timed), default=0)
    for seconds, _, kind, body in sorted(timed, key=lambda event: event[:2]):
        yield kind, body, seconds
    yield "finish", {}, end_s


def category_of(tag: str) -> int:
    """Return our category of a published tag ("Order Error", "Missing Step"); `Other` if unknown."""
    return _CATEGORY.get(tag.partition(" ")[0].lower(), OTHER)


def collections(records: AppRecords) -> dict[str, str]:
    """Return the imported collections, id -> name, oldest first."""
    query = select(tables.op).where(tables.op.c.kind == "collection", oplog.IS_KEPT).order_by(tables.op.c.n)
    with records.database.reading() as connection:
        return {row.subject: json.loads(row.body)["name"] for row in connection.execute(query)}


@dataclass(frozen=True)
class ExportedCollection:
    """The files of a collection, relative path -> text, and the effects of the desk's corrections."""

    files: dict[str, str]
    corrected: list[str]
    "Published ids of the recordings with changed entries."
    warnings: list[str]


def give_back(collection: str, records: AppRecords) -> ExportedCollection:
    """Return the files of a collection from the log: as imported, except for corrections of the desk.

    Raises NotFound, and NotNow if one of its recordings was withdrawn, since the folder would be incomplete.
    """
    collection_body = next((op["body"] for op in records.ops(collection) if op["kind"] == "collection"), None)
    if collection_body is None:
        known = ", ".join(collections(records))[:400] or ("none",)
        raise NotFound("no collection {name!r}; there are: {known}", name=collection[:80], known=known)
    query = select(tables.op).where(tables.op.c.kind == "recording", oplog.IS_KEPT).order_by(tables.op.c.n)
    with records.database.reading() as connection:
        bodies = {row.subject: json.loads(row.body) for row in connection.execute(query)}
    ours = {subject: body for subject, body in bodies.items() if body.get("collection") == collection}
    withdrawn = records.rows(tables.recording, tables.recording.c.phase == "withdrawn")
    if gone := [ours[row["id"]]["name"] for row in withdrawn if row["id"] in ours]:
        raise NotNow(
            "withdrawn: {names}; nothing of it is exported, take in a folder without it instead",
            names=", ".join(gone)[:200],
        )
    as_came = {subject: _recording(body["annotated"]) for subject, body in ours.items()}
    later = select(tables.op.c.subject).where(tables.op.c.basis != VIDEO).distinct()
    with records.database.reading() as connection:
        touched = {row.subject for row in connection.execute(later)} & as_came.keys()
    now = {
        subject: corrected(as_came[subject], records.ops(subject), partial(_id, subject, "error"))
        for subject in touched
    }
    return _with_corrections(
        collection_body,
        as_came,
        {subject: recording for subject, recording in now.items() if recording != as_came[subject]},
    )


def _with_corrections(
    collection_body: Mapping[str, Any],
    as_came: Mapping[str, AnnotatedRecording],
    changed: Mapping[str, AnnotatedRecording],
) -> ExportedCollection:
    original = Annotations(
        tuple(as_came.values()),
        dict(collection_body["step_texts"]),
        dict(collection_body["categories"]),
        tuple(tuple(row) for row in collection_body["videos"]),
        {
            path: json.loads(collection_body["splits"][path])
            for path in SPLITS
            if path in collection_body["splits"]
        },
        collection_body["averages"],
    )
    files, kept = format_annotations(original), dict(collection_body["as_they_stand"])
    warnings: list[str] = []
    if changed:
        recordings = tuple(changed.get(subject, recording) for subject, recording in as_came.items())
        rewritten = format_annotations(replace(original, recordings=recordings))
        differing = {path for path, text in rewritten.items() if files[path] != text}
        warnings = [f"{path}: was of another form, and is written in ours with the corrections"
                    for path in sorted(differing & kept.keys())]  # fmt: skip
        warnings += _stale_files(original, changed.values())
        files, kept = rewritten, {path: text for path, text in kept.items() if path not in differing}
    files |= kept
    ids = [recording.recording_id for subject, recording in as_came.items() if subject in changed]
    return ExportedCollection({path: files[path] for path in collection_body["files"]}, ids, warnings)


def _stale_files(original: Annotations, changed: Iterable[AnnotatedRecording]) -> Iterator[str]:
    """Yield a warning for each file that stays as imported although corrections affect it."""
    if original.averages is not None:
        yield f"{AVERAGES}: stays as published; its averages cannot be computed from the entries"
    was = {recording.recording_id: recording.is_error for recording in original.recordings}
    for recording in changed:
        if recording.is_error != was[recording.recording_id] and original.splits:
            now = "has errors now" if recording.is_error else "has no errors any more"
            yield f"data_splits: stay as published, and {recording.recording_id} {now}"
    known = set(original.categories)
    for tag in sorted(
        {error.tag for recording in changed for entry in recording.entries for error in entry.errors} - known
    ):
        yield f"annotation_csv/error_annotations.csv: has no column for {tag}"


def _recording(body: dict[str, Any]) -> AnnotatedRecording:
    entries = (
        Entry(**{**entry, "errors": tuple(TaggedError(**error) for error in entry["errors"])})
        for entry in body["entries"]
    )
    return AnnotatedRecording(**{**body, "entries": tuple(entries)})


def as_zip(files: Mapping[str, str]) -> bytes:
    """Pack files for a download."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(path, text.encode())
    return buffer.getvalue()
