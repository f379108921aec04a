"""A backup of the app's data: one zip file, written atomically, with a hash of each member.

    backup.json     kind, number of operations, hash of the last one, a hash of the secret that chained them, SHA-256
                    of every other member
    app.db          the database as copied by SQLite's online backup, or instead of it
    tables.jsonl    a logical dump (PostgreSQL): one object per row, {"table": .., "row": {..}}, the log first; bytes
                    are base64. Derived tables are left out and rebuilt by a restore
    recipes/*.json  the uploaded recipes
    withdrawals.jsonl  earlier withdrawals, which a restore elsewhere applies too

Sign-ins and codes are left out, so that restoring an old backup does not let in people who have left since.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import lzma
import os
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from sqlalchemy import func, select

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.database import open_database
from kitchensync.shell.answer import size_words
from kitchensync.shell.files_on_disk import open_file
from kitchensync.shell.untrusted_json import parse_object
from kitchensync.storage.disk.durable import private
from kitchensync.storage.disk.folder_lock import locked_folder
from kitchensync.storage.options.outputs import written

SCHEMA = "app-backup/1"
MANIFEST, COPY, DUMP, RECIPES = "backup.json", "app.db", "tables.jsonl", "recipes"
WITHDRAWALS = "withdrawals.jsonl"
"""File beside the database: withdrawals, and proofs of destruction."""
KEPT = (tables.op, tables.unfiled, tables.credential, tables.device_key, tables.voice, tables.picture)
"""Tables of a logical dump, in an order in which their rows can be inserted."""
NOT_KEPT = (tables.login, tables.ticket, tables.attempt)

Tell = Callable[[float], None]
Write = Callable[[bytes], None]
Member = Callable[[str], contextlib.AbstractContextManager[Write]]
PIECE = 1 << 20
MOST_RATIO, ALWAYS_TAKEN = 20, 16 << 20
"""Limits for the unpacked bytes: hashes and salts do not compress, so real backups unpack to less than 5 times."""
MOST_PARSED = 16 << 20
"""Limit for a member that is read into memory as a whole, bytes."""


class BackupMember(TypedDict):
    """A file in a backup."""

    bytes: int
    sha256: str


class BackedUpLog(TypedDict):
    """The log in a backup."""

    kind: str
    "sqlite: a copy of the file; log: a dump."
    operations: int
    last_hash: str
    "Hash of the last operation."


class BackupManifest(BackedUpLog):
    """The file backup.json."""

    schema: str
    made_utc_ns: int
    key: NotRequired[str]
    "Hash of the secret that chained the log."
    files: dict[str, BackupMember]


class CheckedBackup(BackupManifest):
    """The objects `backup/1` and `restore/1`."""

    file: str
    warnings: list[str]


def back_up(
    place: Path | str,
    recipes: Path,
    target: Path,
    *,
    key: bytes,
    utc_ns: int,
    tell: Tell,
    force: bool = False,
) -> BackupManifest:
    """Back up the database at `place` and the recipes to `target`, also while the app runs; return the manifest.

    The file is checked before it gets its name; only then, with `force`, an existing file is replaced.
    Raises BadSetup, OutputRefused.
    """
    if isinstance(place, Path) and not place.is_file():
        raise BadSetup(f"{place}: there is no database to back up; give the app's --data or --database")
    try:
        with locked_folder(target.parent, wait=False), written(target, force=force) as part:
            copy = part.with_name(part.name + ".db")
            copy.unlink(missing_ok=True)  # left by a backup that was killed
            try:
                manifest = _write(place, copy, recipes, part, key, utc_ns=utc_ns, tell=tell)
            finally:
                copy.unlink(missing_ok=True)
            check(part)
    except BlockingIOError as error:
        raise BadSetup(f"{target.parent}: another backup is being written there; wait for it") from error
    except OSError as error:
        raise BadSetup(f"{target}: cannot be written ({error.strerror or error})") from error
    return manifest


def _key_id(key: bytes) -> str:
    return hashlib.sha256(b"log " + key).hexdigest()[:16]


def _write(
    place: Path | str, copy: Path, recipes: Path, part: Path, key: bytes, *, utc_ns: int, tell: Tell
) -> BackupManifest:
    files: dict[str, BackupMember] = {}
    with open(part, "xb", opener=private) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:

            @contextlib.contextmanager
            def member(name: str) -> Iterator[Write]:
                """Add a member to the file, and record its size and hash."""
                digest, size = hashlib.sha256(), 0
                with archive.open(_private(name), "w", force_zip64=True) as opened_member:

                    def write(content: bytes) -> None:
                        nonlocal size
                        opened_member.write(content)
                        digest.update(content)
                        size += len(content)

                    yield write
                files[name] = {"bytes": size, "sha256": digest.hexdigest()}

            facts = (
                _dump(place, key, member, tell)
                if isinstance(place, str)
                else _copy(place, copy, member, tell)
            )
            others = {f"{RECIPES}/{path.name}": path for path in sorted(recipes.glob("*.json"))}
            for name, path in (others | {WITHDRAWALS: recipes.parent / WITHDRAWALS}).items():
                if path.is_file():
                    with member(name) as write:
                        write(path.read_bytes())
            manifest: BackupManifest = {
                "schema": SCHEMA, "made_utc_ns": utc_ns, "key": _key_id(key), **facts, "files": files,
            }  # fmt: skip
            archive.writestr(_private(MANIFEST), json.dumps(manifest, indent=1))
        file.flush()
        os.fsync(file.fileno())
    return manifest


def _private(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o600 << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _copy(place: Path, copy: Path, member: Member, tell: Tell) -> BackedUpLog:
    """Copy an SQLite file with the online backup, without the rows of `NOT_KEPT`."""
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with (
        contextlib.closing(sqlite3.connect(place, isolation_level=None)) as source,
        contextlib.closing(sqlite3.connect(copy)) as to,
    ):
        source.execute("BEGIN")  # a consistent snapshot: otherwise every concurrent write restarts the copy
        source.execute("SELECT 1 FROM op LIMIT 1")
        source.backup(to, pages=256, progress=lambda _, left, all_: tell(0.8 * (1 - left / max(all_, 1))))
        to.execute("PRAGMA journal_mode=DELETE")
        for table in NOT_KEPT:
            to.execute(f"DELETE FROM {table.name}")  # noqa: S608  our own table names
        to.commit()
        to.execute("VACUUM")  # removes deleted rows from the file
        last = to.execute("SELECT n, hash FROM op ORDER BY n DESC LIMIT 1").fetchone() or (0, oplog.FIRST)
    with open(copy, "rb") as file, member(COPY) as write:
        while piece := file.read(PIECE):
            write(piece)
    tell(1)
    return {"kind": "sqlite", "operations": last[0], "last_hash": last[1]}


def _dump(place: str, key: bytes, member: Member, tell: Tell) -> BackedUpLog:
    """Dump a consistent snapshot of the rows."""
    database = open_database(place, key)
    engine = database.engine.execution_options(isolation_level="REPEATABLE READ")
    try:
        with engine.connect() as connection, connection.begin(), member(DUMP) as write:
            counted = [select(func.count()).select_from(table) for table in KEPT]
            total = sum(connection.execute(count).scalar_one() for count in counted)
            done, last = 0, (0, oplog.FIRST)
            for table in KEPT:
                query = select(table).order_by(*table.primary_key.columns)
                for row in connection.execute(query.execution_options(yield_per=100)).mappings():
                    plain = {
                        key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
                        for key, value in row.items()
                    }
                    line = json.dumps({"table": table.name, "row": plain}, ensure_ascii=False)
                    write(line.encode() + b"\n")
                    last = (row["n"], row["hash"]) if table is tables.op else last
                    done += 1
                    tell(done / total)
    finally:
        database.close()
    return {"kind": "log", "operations": last[0], "last_hash": last[1]}


def check(path: Path) -> BackupManifest:
    """Read a whole backup and check every hash; return its manifest. Raises BadSetup."""
    with opened(path) as backup:
        for name in backup.manifest["files"]:
            backup.prove(name, lambda _: None)
    return backup.manifest


DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(ValueError, KeyError, TypeError, AttributeError, EOFError),
    RuntimeError,  # a flipped bit that marks a member as encrypted or with an unknown compression
)
"""Errors that reading a damaged archive may raise."""


@dataclass(frozen=True)
class OpenedBackup:
    """An open backup with its manifest."""

    path: Path
    archive: zipfile.ZipFile
    manifest: BackupManifest

    def is_made_with(self, key: bytes) -> bool:
        """Return whether its log was chained with this secret; backups of early versions have none."""
        return bool(self.manifest.get("key") == _key_id(key))

    def prove(self, name: str, write: Callable[[bytes], Any]) -> None:
        """Pass a member to `write` and check its hash at the end. Raises BadSetup, and errors of `write`."""
        digest = hashlib.sha256()
        with _readable(self.path):
            member = self.archive.open(name)
        with member:
            while True:
                with _readable(self.path):
                    piece = member.read(PIECE)
                if not piece:
                    break
                digest.update(piece)
                write(piece)
        if digest.hexdigest() != self.manifest["files"][name]["sha256"]:
            raise BadSetup(f"{self.path}: {name} differs from the backup's checksum; use another copy")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[OpenedBackup]:
    """Open a backup and read its manifest. Raises BadSetup for other or damaged files."""
    try:
        with contextlib.ExitStack() as stack:
            with _readable(path):
                archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(open_file(path))))
                # Refuse a zip bomb. zipfile reads at most the stated sizes.
                sizes = {member.filename: member.file_size for member in archive.infolist()}
                unpacked, most = sum(sizes.values()), max(ALWAYS_TAKEN, MOST_RATIO * path.stat().st_size)
                if (
                    unpacked > most
                    or max(sizes.get(member, 0) for member in (MANIFEST, WITHDRAWALS)) > MOST_PARSED
                ):
                    raise BadSetup(
                        f"{path}: unpacks to {size_words(unpacked)}, too much for a backup; use another copy"
                    )
                manifest = parse_object(archive.read(MANIFEST))
            names = set(archive.namelist()) - {MANIFEST}
            if manifest.get("schema") != SCHEMA or set(manifest["files"]) != names:
                raise BadSetup(f"{path}: is not a backup of this app ({SCHEMA})")
            yield OpenedBackup(path, archive, cast(BackupManifest, manifest))
    except DAMAGED as error:
        raise BadSetup(
            f"{path}: is damaged or not a backup of this app ({error}); use another copy"
        ) from error


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadSetup(f"{path}: cannot be read ({error.strerror or error})") from error
