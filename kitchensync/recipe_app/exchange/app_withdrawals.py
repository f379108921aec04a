"""A withdrawal in the app's memory: database, backups, tablets. What is destroyed is noted outside first.

`withdrawals.jsonl` in the app's folder names recordings and people by their ids. Whoever opens the memory applies it,
so that an interrupted withdrawal is finished and a backup of before is restored without what was destroyed since.
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
from kitchensync.recipe_app.store.destruction import ToDestroy, destroy, found_of, naming, scrub
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
"""The kind of operation with which a tablet says what it took out of its own memory."""


def folders_of(records: AppRecords, person: str) -> list[str]:
    """Return the folders in which a person with this pseudonym cooked."""
    what = found_of(records, [], person)
    rows = records.rows(tables.recording, tables.recording.c.id.in_(what.recordings), limit=1 << 20)
    return sorted({row["folder"] for row in rows if row["folder"]})


def note(own: Path, records: AppRecords, folders: list[str], person: str, *, key: bytes) -> ToDestroy:
    """Find what a withdrawal is about, and note it in the app's folder; return it with what was noted before."""
    found = found_of(records, folders, person)
    rows = records.rows(tables.recording, tables.recording.c.id.in_(found.recordings), limit=1 << 20)
    cooks = records.rows(tables.person, tables.person.c.id.in_({row["person"] for row in rows}))
    # Only who has the installation's secret knows the names again.
    names = [
        hmac.new(key, name.encode(), hashlib.sha256).hexdigest()
        for name in (*folders, person, *(row["pseudonym"] for row in cooks))
        if name
    ]
    noted = [
        line
        for line in [line for line in read_sound_lines(own / WITHDRAWALS) if line["schema"] == SCHEMA]
        if {*line.get("of", ())} & {*names}
    ]
    if found.recordings or found.people:
        note_found(own, found, of=names)
    return ToDestroy(*((*getattr(found, part), *_all(noted, part)) for part in ("recordings", "people")))


def note_found(own: Path, what: ToDestroy, of: list[str] | None = None) -> None:
    """Note what will be destroyed, whatever happens from here on."""
    said = {"schema": SCHEMA, "utc_ns": time.time_ns(), **asdict(what)}
    append_line(own / WITHDRAWALS, said | ({"of": of} if of else {}))


def note_done(own: Path, places: list[WithdrawnPlace]) -> None:
    """Keep the proof: each place, what was there, what was done."""
    said = {"schema": DONE, "utc_ns": time.time_ns(), "places": [one.as_json() for one in places]}
    append_line(own / WITHDRAWALS, said)


def proofs(own: Path) -> list[dict[str, Any]]:
    """Return the places of all withdrawals with the time of each, newest first."""
    lines = [line for line in read_sound_lines(own / WITHDRAWALS) if line["schema"] == DONE]
    return [{"utc_ns": line["utc_ns"], **place} for line in reversed(lines) for place in line["places"]]


def apply(own: Path, records: AppRecords, place: Path | str) -> str:
    """Destroy what was noted and is still there; return why some of it may still lie there, or nothing."""
    (own / WITHDRAWALS).touch(mode=0o600)  # an empty list says that there was none, for whoever moves the app
    lines = list(read_sound_lines(own / WITHDRAWALS))
    noted = [line for line in lines if line["schema"] == SCHEMA]
    if not noted:
        return ""
    what = ToDestroy(*(_all(noted, part) for part in ("recordings", "people")))
    emptied = destroy(records, what)
    cleaned = [line["noted"] for line in lines if line["schema"] == CLEANED]
    if not emptied and cleaned[-1:] == [len(noted)]:  # nothing came since
        return ""
    left = scrub(records.database, place)
    if not left:
        append_line(own / WITHDRAWALS, {"schema": CLEANED, "noted": len(noted)})
    return left


def _all(noted: list[dict[str, Any]], part: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for line in noted for one in line[part]))


def places_of(
    own: Path, records: AppRecords, place: Path | str, what: ToDestroy, *, person: str, key: bytes
) -> Iterator[WithdrawnPlace]:
    """Destroy in the database, make every known backup anew, ask tablets to forget; yield each place."""
    op, gone = tables.op, {*what.recordings}
    with records.database.reading() as connection:
        kept = select(op.c.n).where(op.c.subject.in_((*what.recordings, *what.people)), oplog.IS_KEPT)
        found = len(connection.execute(kept.where(op.c.kind != oplog.DESTROYED)).all())
    left = apply(own, records, place)
    if person and (names := naming(records, person)):
        left = left or f"{names} entries of others still name this person; look at the log of the desk"
    shown = str(place) if isinstance(place, Path) else "the app's database"
    yield WithdrawnPlace(shown, found, "destroyed" if found else "nothing", left)
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
    for name in sorted({people.get(one, "somebody") for one in by}):
        yield WithdrawnPlace(f"download at the desk by {name}", 0, "nothing", "ask for its deletion")
    devices = records.rows(tables.device, order=tables.device.c.name)
    for row in devices:
        if any(gone & {*body["recordings"]} for body in _bodies(records, DUMPED, row["id"])):
            said = f"dumps saved on tablet {row['name']}"
            yield WithdrawnPlace(said, 0, "nothing", "find the files and remove them")
    for row in devices:
        if row["id"] in tablets and gone & {*to_forget(records, row["id"])}:
            yield WithdrawnPlace(f"tablet {row['name']}", 0, "nothing", "forgets it at its next connection")


def _backup(path: Path, place: Path | str, recipes: Path, key: bytes) -> WithdrawnPlace:
    """Write a backup anew: the log only grows, so it holds all that the old one did but what was destroyed."""
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
    """Keep in mind where a backup lies."""
    append_line(own / BACKUPS, {"file": str(target.resolve())})


def note_download(records: AppRecords, recording: str, *, actor: str) -> None:
    """Keep in mind who took a recording's log away with a browser."""
    records.note(DOWNLOADED, "downloads", {"recording": recording}, actor=actor)


def to_forget(records: AppRecords, device: str) -> list[str]:
    """Return what was destroyed and this tablet has not said to have forgotten."""
    op = tables.op
    with records.database.reading() as connection:
        gone = set(connection.execute(select(op.c.subject).where(op.c.kind == oplog.DESTROYED)).scalars())
    return sorted(gone - {one for body in _bodies(records, FORGOTTEN, device) for one in body["recordings"]})


def note_dump(records: AppRecords, device: str, recordings: list[str]) -> None:
    """Keep in mind that a tablet kept a dump of recordings, as a file or as codes; each is noted once."""
    known = {one for body in _bodies(records, DUMPED, device) for one in body["recordings"]}
    if new := sorted({*recordings} - known):
        records.note(DUMPED, device, {"recordings": new}, actor="")


def _bodies(records: AppRecords, kind: str, subject: str) -> list[dict[str, Any]]:
    asked = select(tables.op.c.body).where(
        tables.op.c.kind == kind, tables.op.c.subject == subject, oplog.IS_KEPT
    )
    with records.database.reading() as connection:
        return [json.loads(body) for body in connection.execute(asked).scalars()]
