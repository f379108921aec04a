"""Folders of published annotations (the form of CaptainCook4D) in the app's log, and back byte for byte.

A folder is one operation `collection` (texts, categories, splits, videos, graphs) and, for each of its recordings,
what a tablet would have logged: `recording` with the entries as they stand, then steps and errors at the time of the
video. A file whose bytes our writer would not give again is kept as it stands. What the desk corrects later differs
when the folder is given back, and nothing else.
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
from typing import Any

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
"""The folders of the form, and how the names of their files end."""
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
    """Refuse a name that is not of this form: it comes from outside and becomes a path. Raises BadGraph."""
    for name in files:
        folder, _, file = name.partition("/")
        if not (file.isascii() and file.removesuffix(FOLDERS.get(folder, "/")).replace("_", "").isalnum()):
            raise BadGraph(name[:80], "", f"no file of this form; there are {', '.join(FOLDERS)}")


def take_in(files: Mapping[str, str], name: str, records: AppRecords, *, actor: str) -> dict[str, Any]:
    """Log a folder of annotations; again, nothing happens a second time. Raises BadGraph."""
    check_names(files)
    for needed in (COMPLETE, ERRORS, STEP_TEXTS):
        if needed not in files:
            raise BadGraph(name, "", f"there is no {needed}")
    collection = collection_of(files)
    annotations = parse_annotations(files)
    made = list(_operations(collection, name, annotations, files, records, actor))
    new = records.note_all(made)
    return {
        "collection": collection,
        "name": name,
        "recordings": len(annotations.recordings),
        "operations": len(made),
        "new": new,
        "contradictions": annotations.contradictions,
    }


def collection_of(files: Mapping[str, str]) -> str:
    """Return the id that a folder of these files has in the log."""
    return _id("collection", hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest())


def _id(*parts: object) -> str:
    """A UUID in the form of version 7 that depends on its parts alone: what comes in twice is there once."""
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
    yield op(collection, 0, "collection", _held(name, annotations, files))  # last: what has it is whole


def _held(name: str, annotations: Annotations, files: Mapping[str, str]) -> dict[str, Any]:
    made = format_annotations(annotations)
    return {
        "name": name,
        "files": sorted(files),
        "step_texts": [[number, text] for number, text in annotations.step_texts.items()],
        "categories": [[text, number] for text, number in annotations.categories.items()],
        "videos": [list(row) for row in annotations.videos],
        "splits": {
            path: json.dumps(split) for path, split in annotations.splits.items()
        },  # in their own order
        "averages": annotations.averages,
        "as_they_stand": {path: text for path, text in files.items() if made.get(path) != text},
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
    end_s = max((one[0] for one in timed), default=0)
    for seconds, _, kind, body in sorted(timed, key=lambda one: one[:2]):
        yield kind, body, seconds
    yield "finish", {}, end_s


def category_of(tag: str) -> int:
    """Return our category of a published tag ("Order Error", "Missing Step"); what is not known is `Other`."""
    return _CATEGORY.get(tag.partition(" ")[0].lower(), OTHER)


def collections(records: AppRecords) -> dict[str, str]:
    """Return the collections that were taken in, id -> name, oldest first."""
    asked = select(tables.op).where(tables.op.c.kind == "collection", oplog.IS_KEPT).order_by(tables.op.c.n)
    with records.database.reading() as connection:
        return {row.subject: json.loads(row.body)["name"] for row in connection.execute(asked)}


@dataclass(frozen=True)
class ExportedCollection:
    """The files of a collection, relative path -> text, and what the desk's corrections did to them."""

    files: dict[str, str]
    corrected: list[str]
    "Published ids of the recordings of which an entry differs."
    warnings: list[str]


def give_back(collection: str, records: AppRecords) -> ExportedCollection:
    """Write the files of a collection from the log: as they came, but for what was corrected at the desk.

    Raises NotFound, and NotNow when one of its recordings was withdrawn: a folder without it would not be the folder.
    """
    held = next((op["body"] for op in records.ops(collection) if op["kind"] == "collection"), None)
    if held is None:
        known = ", ".join(collections(records))[:400] or ("none",)
        raise NotFound("no collection {name!r}; there are: {known}", name=collection[:80], known=known)
    asked = select(tables.op).where(tables.op.c.kind == "recording", oplog.IS_KEPT).order_by(tables.op.c.n)
    with records.database.reading() as connection:
        bodies = {row.subject: json.loads(row.body) for row in connection.execute(asked)}
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
    made = {
        subject: corrected(as_came[subject], records.ops(subject), partial(_id, subject, "error"))
        for subject in touched
    }
    return _with_corrections(
        held, as_came, {subject: one for subject, one in made.items() if one != as_came[subject]}
    )


def _with_corrections(
    held: Mapping[str, Any],
    as_came: Mapping[str, AnnotatedRecording],
    changed: Mapping[str, AnnotatedRecording],
) -> ExportedCollection:
    came = Annotations(
        tuple(as_came.values()),
        dict(held["step_texts"]),
        dict(held["categories"]),
        tuple(tuple(row) for row in held["videos"]),
        {path: json.loads(held["splits"][path]) for path in SPLITS if path in held["splits"]},
        held["averages"],
    )
    made, odd = format_annotations(came), dict(held["as_they_stand"])
    warnings: list[str] = []
    if changed:
        now = replace(came, recordings=tuple(changed.get(subject, one) for subject, one in as_came.items()))
        anew = format_annotations(now)
        differing = {path for path, text in anew.items() if made[path] != text}
        warnings = [f"{path}: was of another form, and is written in ours with the corrections"
                    for path in sorted(differing & odd.keys())]  # fmt: skip
        warnings += _left_behind(came, changed.values())
        made, odd = anew, {path: text for path, text in odd.items() if path not in differing}
    made |= odd
    ids = [one.recording_id for subject, one in as_came.items() if subject in changed]
    return ExportedCollection({path: made[path] for path in held["files"]}, ids, warnings)


def _left_behind(came: Annotations, changed: Iterable[AnnotatedRecording]) -> Iterator[str]:
    """Report which files stay as they came although something in them follows from what was corrected."""
    if came.averages is not None:
        yield f"{AVERAGES}: stays as published; its averages cannot be computed from the entries"
    was = {one.recording_id: one.is_error for one in came.recordings}
    for one in changed:
        if one.is_error != was[one.recording_id] and came.splits:
            now = "has errors now" if one.is_error else "has no errors any more"
            yield f"data_splits: stay as published, and {one.recording_id} {now}"
    known = set(came.categories)
    for tag in sorted(
        {error.tag for one in changed for entry in one.entries for error in entry.errors} - known
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
