"""Restore a backup into an empty place: the log is verified by its chain, and the tables are rebuilt from it."""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, LargeBinary, delete, insert, select
from sqlalchemy.exc import SQLAlchemyError

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.store import oplog, projections, tables
from kitchensync.recipe_app.store.backup import (
    COPY,
    DUMP,
    KEPT,
    NOT_KEPT,
    RECIPES,
    WITHDRAWALS,
    BackupManifest,
    OpenedBackup,
    opened,
)
from kitchensync.recipe_app.store.database import open_database
from kitchensync.shell.files_on_disk import sync_path
from kitchensync.shell.untrusted_json import parse_object
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.disk.self_check import append_line, read_sound_lines, sound_lines
from kitchensync.storage.errors import StorageError
from kitchensync.storage.names import check_recording_id

BATCH, BATCH_BYTES = 500, 16 << 20  # by size too, as a row may be as long as MOST_LINE
MOST_LINE = 256 << 20
"""Limit for a row, bytes: a folder of published annotations has up to 64 MiB before it is written as JSON."""
MOST_COLUMNS = 100  # more than any table has; bounds the values in one line
STAGED = ".restore-"
"""Prefix of folders with data that is not verified yet."""
_QUOTED = re.compile(r"""\"[^\"]*\"|'[^']*'|`[^`]*`|\[[^\]]*\]""")
_RECIPE = re.compile(rf"{RECIPES}/[A-Za-z0-9][A-Za-z0-9._-]{{0,63}}\.json")


def restore(
    source: Path, place: Path | str, recipes: Path, *, key: bytes, without_key: bool = False
) -> BackupManifest:
    """Restore a backup into an empty database; return its manifest. Raises BadSetup.

    Atomic: recipes are verified first, an SQLite file gets its name last, PostgreSQL uses one transaction. `key` is
    the secret of the installation that made the backup, or with `without_key` another one, which chains the log anew.
    """
    with opened(source) as backup:
        for name in backup.manifest["files"]:
            if name not in (COPY, DUMP, WITHDRAWALS) and not _RECIPE.fullmatch(name):
                raise BadSetup(f"{source}: holds {name!r}, which is never in a backup of this app")
        if isinstance(place, Path):
            # A killed app's journal files are refused too: SQLite would apply them to the restored file.
            for path in (place, *(place.with_name(place.name + end) for end in ("-wal", "-shm", "-journal"))):
                if path.exists():
                    raise BadSetup(f"{path}: already exists; move it away, or restore into another --data")
        if not (without_key or backup.is_made_with(key)):
            raise BadSetup(
                f"{source}: was made with another app.key, without which its log is not proven; put that one into "
                "DATA/_app, or give --without-key"
            )
        try:
            _merge_withdrawals(backup, recipes.parent / WITHDRAWALS)
            with _staged_recipes(backup, recipes) as put:
                if isinstance(place, Path):
                    _into_file(backup, place, put, key)
                else:
                    _into_server(backup, place, put, key)
        except OSError as error:
            target = recipes if isinstance(place, str) else place
            raise BadSetup(f"{target}: cannot be written ({error.strerror or error})") from error
    return backup.manifest


def _merge_withdrawals(backup: OpenedBackup, target: Path) -> None:
    """Add the backup's withdrawals to the list beside the database."""
    if WITHDRAWALS not in backup.manifest["files"]:
        return
    content = io.BytesIO()
    backup.prove(WITHDRAWALS, content.write)
    known = list(read_sound_lines(target))
    for line in sound_lines(content.getvalue()):
        if line not in known:
            append_line(target, line)


@contextlib.contextmanager
def _staged_recipes(backup: OpenedBackup, recipes: Path) -> Iterator[Callable[[], None]]:
    """Write verified recipes beside their folder; yield a function that moves them into it."""
    recipes.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=recipes.parent, prefix=STAGED) as folder:
        staged = []
        for name in filter(_RECIPE.fullmatch, backup.manifest["files"]):
            staged.append(Path(folder) / Path(name).name)
            with open(staged[-1], "xb") as file:
                backup.prove(name, file.write)
                file.flush()
                os.fsync(file.fileno())

        def put() -> None:
            for path in staged:
                recipes.mkdir(mode=0o700, exist_ok=True)
                path.replace(recipes / path.name)
            if staged:
                LOCAL.sync_folder(recipes)

        yield put


def _into_file(backup: OpenedBackup, place: Path, put: Callable[[], None], key: bytes) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=STAGED) as folder:
        made = Path(folder) / COPY
        if backup.manifest["kind"] == "sqlite":
            with open(made, "xb") as file:
                backup.prove(COPY, file.write)
            _check_copy(backup, made)
        database = open_database(made, key)
        try:
            with database.writing() as connection:
                _fill(backup, connection, key)
        finally:
            database.close()
        # Merge the write-ahead log into the file, so that it can be moved alone.
        with contextlib.closing(sqlite3.connect(made)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode=DELETE")
        sync_path(made)
        made.chmod(0o600)
        put()
        made.rename(place)
    LOCAL.sync_folder(place.parent)


def _check_copy(backup: OpenedBackup, made: Path) -> None:
    """Check a copied file before its tables are migrated."""
    with contextlib.closing(sqlite3.connect(made)) as connection:
        try:
            # Refuse definitions that SQLite would execute: views, triggers, virtual tables, function calls.
            # The app's own tables nest parentheses at most two deep (columns; types and keys), its indexes one.
            for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
                bare, most = _QUOTED.sub("", sql or ""), {"table": 2, "index": 1}.get(kind, -1)
                depths = itertools.accumulate({"(": 1, ")": -1}.get(c, 0) for c in bare)
                is_virtual = bare.upper().startswith("CREATE VIRTUAL")
                if is_virtual or "--" in bare or "/*" in bare or max(depths, default=0) > most:
                    raise BadSetup(
                        f"{backup.path}: its database has a {kind} {str(name)[:40]!r} that is none of this app's"
                    )
            status = connection.execute("PRAGMA integrity_check").fetchone()[0]
            last = connection.execute("SELECT n, hash FROM op ORDER BY n DESC LIMIT 1").fetchone()
        except sqlite3.DatabaseError as error:
            status, last = str(error), None
    if status != "ok":
        raise BadSetup(f"{backup.path}: its database is damaged ({status}); use another copy")
    _require_end(backup, last or (0, oplog.FIRST))


def _require_end(backup: OpenedBackup, end: tuple[int, str]) -> None:
    if tuple(end) != (backup.manifest["operations"], backup.manifest["last_hash"]):
        raise BadSetup(f"{backup.path}: the chain of the log is broken at its end; use another copy")


def _into_server(backup: OpenedBackup, place: str, put: Callable[[], None], key: bytes) -> None:
    if backup.manifest["kind"] != "log":
        raise BadSetup(f"{backup.path}: is a copy of an SQLite file; restore it with --data")
    database = open_database(place, key)
    try:
        with database.reading() as connection:
            if connection.execute(select(tables.op.c.n).limit(1)).first() is not None:
                raise BadSetup("--database: already holds operations; restore into an empty database")
        with database.writing() as connection:
            _fill(backup, connection, key)
            put()
    finally:
        database.close()


def _fill(backup: OpenedBackup, connection: Connection, key: bytes) -> None:
    """Insert the rows of a logical dump, verify the log, rebuild the tables."""
    if backup.manifest["kind"] == "log":
        for name, rows in _batches(backup):
            try:
                connection.execute(insert(tables.metadata.tables[name]), rows)
            except SQLAlchemyError as error:
                raise BadSetup(
                    f"{backup.path}: rows of {name} do not match the log; use another copy"
                ) from error
        _require_end(backup, oplog.head(connection))
    for table in NOT_KEPT:
        connection.execute(delete(table))
    fault = None if backup.is_made_with(key) else oplog.rebuild_chain(connection)
    fault = fault or oplog.first_fault(connection)
    if fault is not None:
        raise BadSetup(
            f"{backup.path}: the chain of the log is broken at operation {fault}; use another copy"
        )
    projections.rebuild(connection)
    folders = connection.execute(
        select(tables.recording.c.folder).where(tables.recording.c.folder.is_not(None))
    )
    for folder in folders.scalars():
        try:
            check_recording_id(folder)
        except StorageError as error:
            raise BadSetup(
                f"{backup.path}: names a folder {folder[:100]!r}, which is not a recording's"
            ) from error


def _batches(backup: OpenedBackup) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    known = {table.name: table for table in KEPT}
    batch: list[dict[str, Any]] = []
    name, size = "", 0
    for line in _lines(backup):
        row = parse_object(line, most_bytes=MOST_LINE, most_items=MOST_COLUMNS)
        if row["table"] not in known:
            raise BadSetup(
                f"{backup.path}: holds a table {str(row['table'])[:40]!r} that this app does not know"
            )
        if batch and (row["table"] != name or len(batch) == BATCH or size + len(line) > BATCH_BYTES):
            yield name, batch
            batch, size = [], 0
        name, size = row["table"], size + len(line)
        binary = {column.name for column in known[name].columns if isinstance(column.type, LargeBinary)}
        batch.append({k: base64.b64decode(v) if k in binary else v for k, v in row["row"].items()})
    if batch:
        yield name, batch


def _lines(backup: OpenedBackup) -> Iterator[bytes]:
    """Yield the lines of a dump after verifying it to its end."""
    backup.prove(DUMP, lambda _: None)
    with backup.archive.open(DUMP) as member:
        while line := member.readline(MOST_LINE + 1):
            yield line
