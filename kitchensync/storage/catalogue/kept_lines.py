"""The catalogue of a folder of recordings: their lines as an SQL table, cached in one file.

A cached line is valid only while the manifest of its recording has the same inode and change time; every command that
changes a recording changes its manifest. The file is checked before it is used, and replaced as a whole; if it is
damaged, of another version or missing, all lines are read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from kitchensync.shell.files_on_disk import read_plain
from kitchensync.storage.catalogue.conditions import COLUMNS, all_of
from kitchensync.storage.catalogue.listing import FolderEntry, RecordingLine, folders_in, line_of
from kitchensync.storage.disk.durable import write_whole
from kitchensync.storage.disk.folder_lock import locked_folder
from kitchensync.storage.errors import BadLabFile
from kitchensync.storage.lab import lab_of
from kitchensync.storage.life import Life
from kitchensync.storage.names import MANIFEST, PART_SUFFIX, WORK, is_recording

FILE = Path(WORK) / "_catalogue"
"""Path beside the recordings; no recording can have this name."""
HEAD = b"KitchenSync catalogue 3\n"
"""First line of the file; a new number when the lines get other keys, so that old ones are read again."""
MOST_BYTES = 1 << 30
FEWEST = 100
"""Fewest recordings for a cache: reading fewer manifests is as fast."""
SETTLED_NS = 2_000_000_000
"""Minimum age of a change, ns: a younger manifest may change again with the same change time."""

ManifestStamp = tuple[str, int, int]
"""Site, inode and change time of a recording's manifest."""
NEVER: ManifestStamp = ("", 0, 0)
Show = Callable[[int, int | None, str], None]
_TABLE = f"CREATE TABLE line ({', '.join(COLUMNS)}, inode, changed_ns, said, PRIMARY KEY (path, site))"
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
_INSERT = f"INSERT INTO line VALUES ({', '.join('?' * (len(COLUMNS) + 3))})"  # noqa: S608 - of ours


class Catalogue:
    """The lines of all recordings below a folder as they are now, in memory."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        """Close the database in memory."""
        self._connection.close()

    def lines(self, where: Sequence[str] = ()) -> list[RecordingLine]:
        """Return the lines that meet all conditions, in order of path. Raises BadCondition."""
        sql, values = all_of(where)
        rows = self._connection.execute(f"SELECT path, said FROM line WHERE {sql}", values)  # noqa: S608 - of ours
        texts = ",".join(texts for _, texts in sorted(rows, key=lambda row: row[0].split("/")))
        lines: list[RecordingLine] = json.loads(f"[{texts}]")
        return lines


@contextmanager
def catalogue_of(
    root: Path, *, again: bool = False, fewest: int = FEWEST, show: Show | None = None
) -> Iterator[Catalogue]:
    """Yield the up-to-date catalogue of a folder; `again` reads every recording again. Raises OSError."""
    with closing(_up_to_date(root, again=again, fewest=fewest, show=show)) as catalogue:
        yield catalogue


def forget(recording: Path) -> None:
    """Remove a recording from the catalogues of all folders above it. Raises OSError."""
    recording = recording.resolve()
    for root in recording.parents:
        if (root / FILE).exists():
            with locked_folder(root / WORK), closing(_load(root)) as connection:
                _drop(connection, recording.relative_to(root).as_posix())
                _save(root, connection)


def _up_to_date(root: Path, *, again: bool, fewest: int, show: Show | None) -> Catalogue:
    connection = _empty() if again else _load(root)
    if (root / MANIFEST).exists() or (not _has_lines(connection) and is_recording(root)):
        _put(connection, root.name, NEVER, line_of(root, root))
        return Catalogue(connection)
    if _refresh(connection, root, show) and (_has_lines(connection, fewest) or (root / FILE).exists()):
        # The folder may be read-only, or its disk full.
        with suppress(OSError):
            (root / WORK).mkdir(mode=0o700, exist_ok=True)
            with locked_folder(root / WORK):
                _refresh(connection, root, None)  # a recording may have been withdrawn meanwhile
                _save(root, connection)
    return Catalogue(connection)


def _has_lines(connection: sqlite3.Connection, least: int = 1) -> bool:
    (count,) = connection.execute("SELECT count(*) FROM line").fetchone()
    return bool(count >= least)


def _refresh(connection: sqlite3.Connection, root: Path, show: Show | None) -> bool:
    """Read new and changed recordings, drop removed ones; return whether a line changed."""
    kept = connection.execute("SELECT path, site, inode, changed_ns FROM line")
    look = _Look({path: (site, inode, changed) for path, site, inode, changed in kept})
    look.into(str(root), "")
    gone = look.not_met
    for where in gone:
        _drop(connection, where)
    others = False
    for number, (where, stamp) in enumerate(look.changed.items(), 1):
        line = line_of(root / where, root)
        # Not cached: the line may change without the manifest.
        is_trouble = "problem" in line and "verdict" not in line
        if is_trouble or line["life"] in (None, Life.RECORDING, Life.MANIFEST_LOST):
            stamp = (stamp[0], 0, 0)
        others |= _put(connection, where, stamp, line)
        if show is not None:
            show(number, len(look.changed), where.rpartition("/")[2])
    connection.commit()
    return bool(gone) or others


def _above(where: str) -> Iterator[str]:
    """Yield the parent folders of a path, below the root."""
    while "/" in where:
        where = where.rpartition("/")[0]
        yield where


class _Look:
    """A walk over the folders: `changed` are new and changed recordings, `not_met` cached ones that are gone."""

    def __init__(self, cached: dict[str, ManifestStamp]) -> None:
        self.changed: dict[str, ManifestStamp] = {}
        self.not_met = cached
        parents = {where.rpartition("/")[0] for where in cached}
        self._above = {folder for parent in parents for folder in _above(f"{parent}/")}
        self._settled_ns = time.time_ns() - SETTLED_NS

    def into(self, folder: str, above: str) -> None:
        """Visit the subfolders of a folder, whose path from the root is `above`. Raises OSError if it is unreadable.

        One `stat` per recording: there may be twenty thousand.
        """
        try:
            site = lab_of(Path(folder).absolute() / "recording").site
        except (BadLabFile, OSError):
            site = ""  # so that the listing continues
        cached, settled_ns = self.not_met, self._settled_ns
        for entry in folders_in(folder):
            where = above + entry.name
            try:
                facts = os.stat(f"{entry.path}/{MANIFEST}")
            except OSError:
                self._other(entry, where, (site, 0, 0), is_there=False)
                continue
            stamp = (site, facts.st_ino, facts.st_ctime_ns)
            if facts.st_ctime_ns > settled_ns or cached.get(where) != stamp:
                is_settled = facts.st_ctime_ns <= settled_ns
                self._other(entry, where, stamp if is_settled else (site, 0, 0), is_there=True)
            else:
                del cached[where]

    def _other(self, entry: FolderEntry, where: str, stamp: ManifestStamp, *, is_there: bool) -> None:
        """Visit an entry that is not an unchanged recording; an unreadable folder counts as a recording."""
        if not is_there and (where in self._above or not is_recording(Path(entry.path))):
            with suppress(OSError):
                return self.into(entry.path, f"{where}/")
        self.not_met.pop(where, None)
        self.changed[where] = stamp
        return None


def _put(connection: sqlite3.Connection, where: str, stamp: ManifestStamp, line: RecordingLine) -> bool:
    """Replace the line of a recording; return whether it changed."""
    site, inode, changed_ns = stamp
    text = json.dumps({**line, "site": site} if site else line)
    before = connection.execute(
        "SELECT said, inode, changed_ns FROM line WHERE path = ?", (_storable(where),)
    ).fetchone()
    if before == (text, inode, changed_ns):
        return False
    facts = {**line, "path": where, "site": site}
    values = [facts.get(key) for key in COLUMNS]
    plain = [
        _storable(value) if isinstance(value, str) else value if isinstance(value, int | float) else None
        for value in values
    ]
    _drop(connection, where)
    connection.execute(_INSERT, (*plain, inode, changed_ns, text))
    return True


def _drop(connection: sqlite3.Connection, where: str) -> None:
    connection.execute("DELETE FROM line WHERE path = ?", (_storable(where),))


def _storable(text: str) -> str:
    """Escape bytes that are not Unicode, as in names that are not UTF-8: SQLite cannot store them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(_TABLE)
    return connection


def _load(root: Path) -> sqlite3.Connection:
    """Load the cached catalogue; an empty one if the file is missing or not exactly as written."""
    try:
        content = memoryview(read_plain(root / FILE, MOST_BYTES))
    except OSError:
        return _empty()
    at = len(HEAD) + hashlib.sha256().digest_size
    if content[: len(HEAD)] != HEAD or content[len(HEAD) : at] != hashlib.sha256(content[at:]).digest():
        return _empty()
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    with suppress(sqlite3.DatabaseError):
        connection.deserialize(content[at:])
        # Exactly our table: a trigger in a manipulated file would run.
        with closing(_empty()) as ours:
            made = ours.execute(_SCHEMA).fetchall()
        is_same = connection.execute(_SCHEMA).fetchall() == made
        if is_same and connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]:
            connection.execute("PRAGMA secure_delete = ON")
            return connection
    connection.close()
    return _empty()


def _save(root: Path, connection: sqlite3.Connection) -> None:
    connection.commit()
    content = connection.serialize()
    write_whole(root / FILE, (HEAD, hashlib.sha256(content).digest(), content), PART_SUFFIX)
