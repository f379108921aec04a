"""Withdrawals in the app's data: database, backups, tablets. They are noted outside the database first.

`withdrawals.jsonl` in the app's folder lists recordings and people by their ids. It is applied whenever the database
is opened, so that an interrupted withdrawal is finished, and an older backup is restored without destroyed data.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import select

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.backup import WITHDRAWALS, back_up, check
from kitchensync.recipe_app.store.destruction import ToDestroy, destroy, naming, scrub, to_destroy
from kitchensync.storage.disk.self_check import append_line, read_sound_lines
from kitchensync.storage.withdraw.withdrawal import WithdrawnPlace

BACKUPS = "backups.jsonl"
SCHEMA, CLEANED, DONE = "app-withdrawal/1", "app-withdrawal-cleaned/1", "withdraw/1"
DOWNLOADED = "downloaded"
OF_THE_SERVER = (
    "not reached from here: ask who runs it to recycle its write-ahead log and to drop older backups"
)
DUMPED = "dumped"
FORGOTTEN = "forgotten"
"""The kind of operation with which a tablet reports what it deleted from its storage."""


def folders_of(records: AppRecords, person: str) -> list[str]:
    """Return the folders of the recordings of a person with this pseudonym."""
    what = to_destroy(records, [], person)
    rows = records.rows(tables.recording, tables.recording.c.id.in_(what.recordings), limit=1 << 20)
    return sorted({row["folder"] for row in rows if row["folder"]})


def note(own: Path, records: AppRecords, folders: list[str], person: str, *, key: bytes) -> ToDestroy:
    """Note in the app's folder what a withdrawal covers; return that, with earlier notes about the same names."""
    what = to_destroy(records, folders, person)
    rows = records.rows(tables.recording, tables.recording.c.id.in_(what.recordings), limit=1 << 20)
    cooks = records.rows(tables.person, tables.person.c.id.in_({row["person"] for row in rows}))
    # Keyed hashes, so that the file does not reveal the names.
    names = [
        hmac.new(key, name.encode(), hashlib.sha256).hexdigest()
        for name in (*folders, person, *(row["pseudonym"] for row in cooks))
        if name
    ]
    noted = [
        line
        for line in read_sound_lines(own / WITHDRAWALS)
        if line["schema"] == SCHEMA and {*line.get("of", ())} & {*names}
    ]
    if what.recordings or what.people:
        note_found(own, what, of=names)
    return ToDestroy(*((*getattr(what, part), *_all(noted, part)) for part in ("recordings", "people")))


def note_found(own: Path, what: ToDestroy, of: list[str] | None = None) -> None:
    """Note what will be destroyed, so that an interruption does not lose it."""
    entry = {"schema": SCHEMA, "utc_ns": time.time_ns(), **asdict(what)}
    append_line(own / WITHDRAWALS, entry | ({"of": of} if of else {}))


def note_done(own: Path, places: list[WithdrawnPlace]) -> None:
    """Save the proof: each place, the number of matches, what was done."""
    entry = {"schema": DONE, "utc_ns": time.time_ns(), "places": [place.as_json() for place in places]}
    append_line(own / WITHDRAWALS, entry)


def proofs(own: Path) -> list[dict[str, Any]]:
    """Return the places of all withdrawals with the time of each, newest first."""
    lines = [line for line in read_sound_lines(own / WITHDRAWALS) if line["schema"] == DONE]
    return [{"utc_ns": line["utc_ns"], **place} for line in reversed(lines) for place in line["places"]]


def apply(own: Path, records: AppRecords, place: Path | str) -> str:
    """Destroy everything noted that still exists; return why some of it may remain, or an empty text."""
    (own / WITHDRAWALS).touch(mode=0o600)  # an empty list, as opposed to a list lost when the app was moved
    lines = list(read_sound_lines(own / WITHDRAWALS))
    noted = [line for line in lines if line["schema"] == SCHEMA]
    if not noted:
        return ""
    what = ToDestroy(*(_all(noted, part) for part in ("recordings", "people")))
    emptied = destroy(records, what)
    cleaned = [line["noted"] for line in lines if line["schema"] == CLEANED]
    if not emptied and cleaned[-1:] == [len(noted)]:  # nothing new since the last cleaning
        return ""
    remaining = scrub(records.database, place)
    if not remaining:
        append_line(own / WITHDRAWALS, {"schema": CLEANED, "noted": len(noted)})
    return remaining


def _all(noted: list[dict[str, Any]], part: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for line in noted for name in line[part]))


def places_of(
    own: Path, records: AppRecords, place: Path | str, what: ToDestroy, *, person: str, key: bytes
) -> Iterator[WithdrawnPlace]:
    """Destroy data in the database, rewrite every known backup, let tablets delete theirs; yield each place."""
    op, gone = tables.op, {*what.recordings}
    with records.database.reading() as connection:
        kept = select(op.c.n).where(op.c.subject.in_((*what.recordings, *what.people)), oplog.IS_KEPT)
        count = len(connection.execute(kept.where(op.c.kind != oplog.DESTROYED)).all())
    remaining = apply(own, records, place)
    if person and (names := naming(records, person)):
        remaining = (
            remaining or f"{names} entries of others still name this person; look at the log of the desk"
        )
    shown = str(place) if isinstance(place, Path) else "the app's database"
    yield WithdrawnPlace(shown, count, "destroyed" if count else "nothing", remaining)
    if not isinstance(place, Path) and (what.recordings or what.people):
        yield WithdrawnPlace(
            "the database server's own log, replicas and backups", 0, "nothing", OF_THE_SERVER
        )
    for path in dict.fromkeys(Path(line["file"]) for line in read_sound_lines(own / BACKUPS)):
        yield _backup(path, place, own / "recipes", key)
    with records.database.reading() as connection:
        taken = select(op.c.actor, op.c.body).where(op.c.kind == DOWNLOADED, oplog.IS_KEPT)
        by = {row.actor for row in connection.execute(taken) if json.loads(row.body)["recording"] in gone}
        used = select(op.c.device).where(op.c.subject.in_(what.recordings)).distinct()
        tablets = set(connection.execute(used).scalars())
    people = {row["id"]: row["pseudonym"] for row in records.rows(tables.person)}
    for name in sorted({people.get(actor, "somebody") for actor in by}):
        yield WithdrawnPlace(f"download at the desk by {name}", 0, "nothing", "ask for its deletion")
    devices = records.rows(tables.device, order=tables.device.c.name)
    for row in devices:
        if any(gone & {*body["recordings"]} for body in _bodies(records, DUMPED, row["id"])):
            dumps = f"dumps saved on tablet {row['name']}"
            yield WithdrawnPlace(dumps, 0, "nothing", "find the files and remove them")
    for row in devices:
        if row["id"] in tablets and gone & {*to_forget(records, row["id"])}:
            yield WithdrawnPlace(f"tablet {row['name']}", 0, "nothing", "forgets it at its next connection")


def _backup(path: Path, place: Path | str, recipes: Path, key: bytes) -> WithdrawnPlace:
    """Rewrite a backup: the log only grows, so the new one has everything of the old except destroyed data."""
    if not path.exists():
        gone = path.parent.is_dir()
        return WithdrawnPlace(str(path), 0, "nothing", "" if gone else "the backup's folder is away")
    try:
        check(path)
        back_up(place, recipes, path, key=key, utc_ns=time.time_ns(), tell=lambda _: None, force=True)
    except BadSetup as error:
        return WithdrawnPlace(str(path), 1, "nothing", str(error))
    return WithdrawnPlace(str(path), 1, "made anew")


def note_backup(own: Path, target: Path) -> None:
    """Note the location of a backup."""
    append_line(own / BACKUPS, {"file": str(target.resolve())})


def note_download(records: AppRecords, recording: str, *, actor: str) -> None:
    """Log who downloaded a recording's log with a browser."""
    records.note(DOWNLOADED, "downloads", {"recording": recording}, actor=actor)


def to_forget(records: AppRecords, device: str) -> list[str]:
    """Return the destroyed subjects that this tablet has not reported as deleted."""
    op = tables.op
    with records.database.reading() as connection:
        gone = set(connection.execute(select(op.c.subject).where(op.c.kind == oplog.DESTROYED)).scalars())
    return sorted(
        gone - {recording for body in _bodies(records, FORGOTTEN, device) for recording in body["recordings"]}
    )


def note_dump(records: AppRecords, device: str, recordings: list[str]) -> None:
    """Log that a tablet saved a dump of recordings, as a file or as codes; each is logged once."""
    known = {recording for body in _bodies(records, DUMPED, device) for recording in body["recordings"]}
    if new := sorted({*recordings} - known):
        records.note(DUMPED, device, {"recordings": new}, actor="")


def _bodies(records: AppRecords, kind: str, subject: str) -> list[dict[str, Any]]:
    query = select(tables.op.c.body).where(
        tables.op.c.kind == kind, tables.op.c.subject == subject, oplog.IS_KEPT
    )
    with records.database.reading() as connection:
        return [json.loads(body) for body in connection.execute(query).scalars()]
