"""Backups: what comes back is what was there, a damaged one is refused, and a kill leaves the old one whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from databases import emptied
from derived_tables import dump
from histories import history, recording_body
from sqlalchemy import insert, select

from kitchensync.cli import main
from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.people.accounts import Accounts
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.backup import back_up, check
from kitchensync.recipe_app.store.database import Database, open_database
from kitchensync.recipe_app.store.oplog import NewOp
from kitchensync.recipe_app.store.restore import restore

pytestmark = pytest.mark.slow

PIN = "482916"
SECRET = bytes(range(32))
UTC_NS = 1_790_000_000_000_000_000
KEPT = ("op", "unfiled", "credential", "device_key", "voice")


def records_of(database: Database) -> AppRecords:
    return AppRecords(database, now_ns=lambda: 7, utc_ns=lambda: UTC_NS)


def new(op: dict[str, Any], seq: int) -> NewOp:
    same = {name: op[name] for name in ("op_id", "kind", "body", "host_ns", "seen")}
    said = {"device": "d1", "actor": "p1", "subject": "r1", "uncertainty_ns": 1, "basis": "page"}
    return NewOp(**same, **said, seq=seq, received_host_ns=1, received_utc_ns=5)


def fill(database: Database) -> None:
    """People with secrets, a tablet, a recording with a history, a voice note."""
    records = records_of(database)
    accounts = Accounts(records)
    records.note("kitchen", "k1", {"name": "Kitchen"}, actor="")
    person = accounts.add_person("Basil “ß” \U0001f373", ["participant"], actor="")
    accounts.set_pin(person, PIN, actor="")
    device, _ = accounts.pair(accounts.pairing_code("k1", actor=""), "Tablet", secure=None)
    accounts.sign_in(person, "pin", PIN, device=device, desk=False)
    records.note("recording", "r1", recording_body(folder="soup_1"), actor=person)
    unique = {op["op_id"]: op for op in history(3)[1:]}.values()
    records.accept([new(op, seq) for seq, op in enumerate(unique, start=1)])
    with records.changing() as connection:
        sound = {
            "sha256": "0" * 64,
            "recording": "r1",
            "media_type": "audio/webm",
            "content": bytes(range(256)),
        }
        connection.execute(insert(tables.voice).values(**sound))


def content(database: Database) -> dict[str, Any]:
    """Everything that a backup promises to keep, and what is derived from it."""
    with database.reading() as connection:
        rows = {
            name: sorted(map(repr, connection.execute(select(tables.metadata.tables[name])))) for name in KEPT
        }
        return rows | {"derived": dump(connection), "fault": oplog.first_fault(connection)}


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the app's memory is: a file, or an emptied server."""
    if request.param == "sqlite":
        return tmp_path / "data" / "_app" / "app.db"
    return emptied(request.getfixturevalue("postgresql_server"))


@pytest.fixture
def filled(place: Path | str) -> dict[str, Any]:
    database = open_database(place, SECRET)
    fill(database)
    found = content(database)
    database.close()
    return found


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "_app" / "recipes"
    folder.mkdir(parents=True)
    (folder / "tea.json").write_text('{"steps": {}}')
    return folder


def make(place: Path | str, recipes: Path, target: Path) -> dict[str, Any]:
    return back_up(place, recipes, target, key=SECRET, utc_ns=UTC_NS, tell=lambda _: None)


def test_what_comes_back_is_what_was_there(
    place: Path | str, filled: dict[str, Any], recipes: Path, tmp_path: Path
) -> None:
    target = tmp_path / "kitchen.backup"
    made = make(place, recipes, target)
    assert target.stat().st_mode & 0o777 == 0o600
    assert check(target) == made
    assert filled["fault"] is None
    there: list[Path | str] = [tmp_path / "new" / "_app" / "app.db"]
    if isinstance(place, str):
        there.append(emptied(place))
    for new_place in there:
        assert restore(target, new_place, tmp_path / "new" / "_app" / "recipes", key=SECRET) == made
        database = open_database(new_place, SECRET)
        assert content(database) == filled
        assert records_of(database).rows(tables.login) == records_of(database).rows(tables.ticket) == []
        records_of(database).note("kitchen", "k2", {"name": "Next"}, actor="")  # and it goes on
        database.close()
        with pytest.raises(BadSetup, match="already"):
            restore(target, new_place, tmp_path / "other", key=SECRET)
    assert (tmp_path / "new" / "_app" / "recipes" / "tea.json").read_text() == '{"steps": {}}'
    assert (tmp_path / "new" / "_app" / "app.db").stat().st_mode & 0o777 == 0o600


def test_without_its_key_a_log_is_taken_by_choice_and_chained_anew(
    place: Path | str, filled: dict[str, Any], recipes: Path, tmp_path: Path
) -> None:
    target, other = tmp_path / "kitchen.backup", bytes(reversed(SECRET))
    make(place, recipes, target)
    new_place = tmp_path / "new" / "_app" / "app.db"
    with pytest.raises(BadSetup, match=r"another app\.key"):
        restore(target, new_place, tmp_path / "new" / "recipes", key=other)
    assert not new_place.exists()
    restore(target, new_place, tmp_path / "new" / "recipes", key=other, without_key=True)
    database = open_database(new_place, other)
    found = content(database)
    assert (found["fault"], found["derived"]) == (None, filled["derived"])
    database.close()
    database = open_database(new_place, SECRET)
    assert content(database)["fault"] == 1, "the chain is of the other secret now"
    database.close()


@pytest.mark.parametrize("folder", ["/srv/other/take-1", "../other/take-1", ".."])
def test_a_backup_that_names_folders_elsewhere_is_refused(tmp_path: Path, recipes: Path, folder: str) -> None:
    """What the app knows of a recording is destroyed with its folder, and its films are shown."""
    made, target = recipes.parent / "app.db", tmp_path / "kitchen.backup"
    database = open_database(made, SECRET)
    records_of(database).note("recording", "r1", recording_body(folder=folder), actor="p1")
    database.close()
    make(made, recipes, target)
    new_place = tmp_path / "new" / "_app" / "app.db"
    with pytest.raises(BadSetup, match="names a folder"):
        restore(target, new_place, tmp_path / "new" / "_app" / "recipes", key=bytes(32), without_key=True)
    assert not new_place.exists()


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_what_a_killed_app_left_beside_its_database_is_not_taken_for_the_restored_one(
    tmp_path: Path, end: str
) -> None:
    """SQLite would write a write-ahead log that lies there over whatever has the database's name."""
    old, target = tmp_path / "old" / "app.db", tmp_path / "kitchen.backup"
    database = open_database(old, SECRET)
    fill(database)
    database.close()
    make(old, tmp_path / "none", target)
    new_place = tmp_path / "new" / "app.db"
    left = new_place.with_name(f"app.db{end}")
    left.parent.mkdir()
    left.write_bytes(b"of the old one")
    with pytest.raises(BadSetup, match=f"app.db{end}: already exists"):
        restore(target, new_place, tmp_path / "recipes", key=SECRET)
    left.unlink()
    restore(target, new_place, tmp_path / "recipes", key=SECRET)


def test_a_backup_comes_to_its_end_while_tablets_write(tmp_path: Path) -> None:
    """It holds one moment; each write of another connection would begin it anew otherwise."""
    place = tmp_path / "app.db"
    database = open_database(place, SECRET)
    fill(database)
    records = records_of(database)
    with records.changing() as connection:
        sound = {"sha256": "1" * 64, "recording": "r1", "media_type": "audio/webm", "content": bytes(4 << 20)}
        connection.execute(insert(tables.voice).values(**sound))
    with database.reading() as connection:
        before = oplog.newest(connection, before=None, count=1)[0]["n"]
    written = []

    def write(_: float) -> None:
        written.append(records.note("kitchen", f"k{len(written)}b", {"name": str(len(written))}, actor=""))
        assert len(written) < 40, "the backup begins again and again"

    manifest = back_up(
        place, tmp_path / "none", tmp_path / "kitchen.backup", key=SECRET, utc_ns=UTC_NS, tell=write
    )
    database.close()
    assert len(written) > 3
    assert manifest["operations"] == before


def test_no_secret_stands_in_it_in_plain_text(
    place: Path | str, filled: dict[str, Any], recipes: Path, tmp_path: Path
) -> None:
    target = tmp_path / "kitchen.backup"
    make(place, recipes, target)
    with zipfile.ZipFile(target) as archive:
        whole = b"".join(archive.read(name) for name in archive.namelist())
    assert b"argon2id" in whole
    assert PIN.encode() not in whole
    assert b'"table": "login"' not in whole


def test_a_backup_is_of_one_moment_whoever_writes(
    place: Path | str, filled: dict[str, Any], recipes: Path, tmp_path: Path
) -> None:
    database, end = open_database(place, SECRET), threading.Event()
    records = records_of(database)

    def write() -> None:
        number = 0
        while not end.is_set():
            number += 1
            records.note("kitchen", f"more {number}", {"name": f"More {number}"}, actor="")

    writer = threading.Thread(target=write)
    writer.start()
    counts = []
    try:
        for number in range(3):
            time.sleep(0.1)
            counts.append(make(place, recipes, tmp_path / f"{number}.backup")["operations"])
    finally:
        end.set()
        writer.join()
        database.close()
    assert counts == sorted(set(counts))
    restored = tmp_path / "new" / "app.db"
    restore(tmp_path / "2.backup", restored, tmp_path / "new" / "recipes", key=SECRET)
    database = open_database(restored, SECRET)
    with database.reading() as connection:
        assert len(list(oplog.everything(connection))) == counts[2]
        assert oplog.first_fault(connection) is None
    database.close()


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_damaged_backup_is_refused_in_one_line(
    place: Path, filled: dict[str, Any], recipes: Path, tmp_path: Path
) -> None:
    target = tmp_path / "kitchen.backup"
    make(place, recipes, target)
    good, rng = target.read_bytes(), random.Random(8)
    damages: list[bytes] = [b"", b"PK", good[:-30], good[: len(good) // 2], b"x" * 500]
    for _ in range(40):
        spot = rng.randrange(len(good))
        damages.append(good[:spot] + bytes([good[spot] ^ (1 << rng.randrange(8))]) + good[spot + 1 :])
    for damage in damages:
        target.write_bytes(damage)
        restored = tmp_path / "new" / "app.db"
        if refusal := refused(target, restored):
            assert "\n" not in refusal
            assert not restored.exists()
            assert not list(restored.parent.glob(".restore-*"))
        else:  # a bit that says nothing, such as a file date: then all of it is there
            database = open_database(restored, SECRET)
            assert content(database) == filled
            database.close()
            restored.unlink()


def test_a_damaged_recipe_leaves_nothing_restored(
    place: Path | str, filled: dict[str, Any], recipes: Path, tmp_path: Path
) -> None:
    target, forged = tmp_path / "kitchen.backup", tmp_path / "forged.backup"
    make(place, recipes, target)
    with zipfile.ZipFile(target) as archive, zipfile.ZipFile(forged, "w") as made:
        for name in archive.namelist():
            made.writestr(name, b"{}" if name == "recipes/tea.json" else archive.read(name))
    new = tmp_path / "new"
    assert "tea.json differs from the backup" in refused(forged, new / "app.db")
    assert list(new.iterdir()) == []
    if isinstance(place, str):
        emptied(place)
        with pytest.raises(BadSetup, match=r"tea\.json"):
            restore(forged, place, new / "recipes", key=SECRET)
        restore(target, place, new / "recipes", key=SECRET)  # the server was left empty


def test_a_place_that_cannot_be_written_is_named(
    place: Path | str, filled: dict[str, Any], recipes: Path, tmp_path: Path
) -> None:
    """It is not the backup that is at fault, and is not said to be."""
    target, file = tmp_path / "kitchen.backup", tmp_path / "file"
    make(place, recipes, target)
    file.write_text("in the way")
    assert refused(target, file / "new" / "app.db").startswith(
        f"{file / 'new' / 'app.db'}: cannot be written"
    )


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_every_bit_of_the_archives_own_words_may_flip(
    place: Path, filled: dict[str, Any], recipes: Path, tmp_path: Path
) -> None:
    """Sizes, offsets, compression methods, the wish for a password: refused, or said by what is there."""
    target = tmp_path / "kitchen.backup"
    make(place, recipes, target)
    good, whole = target.read_bytes(), check(target)
    for spot in (*range(64), *range(len(good) - 256, len(good))):
        for bit in range(8):
            target.write_bytes(good[:spot] + bytes([good[spot] ^ (1 << bit)]) + good[spot + 1 :])
            with contextlib.suppress(BadSetup):
                assert check(target) == whole


@pytest.mark.parametrize("large", ["backup.json", "tables.jsonl", "withdrawals.jsonl", "recipes/tea.json"])
def test_a_backup_that_unpacks_to_more_than_any_can_is_not_unpacked(tmp_path: Path, large: str) -> None:
    target = tmp_path / "kitchen.backup"
    spaces = b" " * (40 << 20)
    files = dict.fromkeys(("tables.jsonl", "withdrawals.jsonl", "recipes/tea.json"), b"")
    facts = {"schema": "app-backup/1", "kind": "log", "operations": 0, "last_hash": "0" * 64}
    manifest = {**facts, "files": {name: {"sha256": ""} for name in files}}
    content = {**files, "backup.json": json.dumps(manifest).encode()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in content.items():
            made.writestr(name, text + (spaces if name == large else b""))
    assert target.stat().st_size < 100_000
    assert "unpacks to 41.9 MB" in refused(target, tmp_path / "new" / "app.db")
    assert not (tmp_path / "new").exists()


def test_a_pipe_is_no_backup(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kitchen.backup")
    assert "a pipe, not a file" in refused(tmp_path / "kitchen.backup", tmp_path / "app.db")


ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n, 'x' AS hash FROM r"
COLUMNS = "id TEXT, pseudonym TEXT, roles TEXT, active BOOLEAN"


@pytest.mark.parametrize(
    ("planted", "what"),
    [
        (f"DROP TABLE op; CREATE VIEW op AS {ENDLESS}", "view 'op'"),
        (f"CREATE TRIGGER t AFTER INSERT ON person BEGIN INSERT INTO op {ENDLESS}; END", "trigger 't'"),
        ("CREATE VIRTUAL TABLE words USING fts5(a)", "table 'words'"),
        (f"DROP TABLE person; CREATE TABLE person ({COLUMNS} CHECK(zeroblob(9)))", "table 'person'"),
        (f"""DROP TABLE person; CREATE TABLE person ({COLUMNS}, ")))" AS (zeroblob(9)))""", "table 'person'"),
        (
            f"DROP TABLE person; CREATE TABLE person ({COLUMNS} /* ))) */ CHECK(zeroblob(9)))",
            "table 'person'",
        ),
        ("CREATE INDEX i ON person (hex(zeroblob(9)))", "index 'i'"),
        ("UPDATE alembic_version SET version_num = '../../x'", "Can't locate revision"),
    ],
)
def test_a_database_that_runs_something_is_not_opened(
    tmp_path: Path, recipes: Path, planted: str, what: str
) -> None:
    made, whole, target = recipes.parent / "app.db", tmp_path / "whole.backup", tmp_path / "odd.backup"
    open_database(made, SECRET).close()
    make(made, recipes, whole)
    with contextlib.closing(sqlite3.connect(made)) as connection:
        connection.executescript(planted)
    content = made.read_bytes()
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(target, "w") as forged:
        manifest = json.loads(archive.read("backup.json"))
        sha256 = hashlib.sha256(content).hexdigest()
        manifest["files"] = {"app.db": {"bytes": len(content), "sha256": sha256}}
        forged.writestr("app.db", content)
        forged.writestr("backup.json", json.dumps(manifest))
    said = refused(target, tmp_path / "new" / "app.db")
    assert what in said
    assert not (tmp_path / "new" / "app.db").exists()


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
@pytest.mark.parametrize("row", ["[" + "[]," * 2000 + "0]", '["op"]', "7", '{"table": [], "row": {}}'])
def test_a_row_of_a_dump_that_is_none_is_damage(
    place: str, filled: dict[str, Any], recipes: Path, tmp_path: Path, row: str
) -> None:
    target, odd = tmp_path / "kitchen.backup", tmp_path / "odd.backup"
    make(place, recipes, target)
    rewritten(target, odd, lambda _: row.encode() + b"\n")
    assert "is damaged or not a backup of this app" in refused(odd, tmp_path / "new" / "app.db")


def refused(target: Path, restored: Path) -> str:
    try:
        restore(target, restored, restored.parent / "recipes", key=SECRET)
    except BadSetup as error:
        return str(error)
    return ""


def rewritten(source: Path, target: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the log of a dump, and every hash of the file with it: only the chain can tell."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as made:
        manifest = json.loads(archive.read("backup.json"))
        changed = change(archive.read("tables.jsonl"))
        digest = {"bytes": len(changed), "sha256": hashlib.sha256(changed).hexdigest()}
        made.writestr("tables.jsonl", changed)
        made.writestr("backup.json", json.dumps({**manifest, "files": {"tables.jsonl": digest}}))


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_a_changed_log_is_found_by_its_chain(place: str, filled: dict[str, Any], tmp_path: Path) -> None:
    target, forged = tmp_path / "kitchen.backup", tmp_path / "forged.backup"
    make(place, tmp_path / "none", target)
    changes: list[tuple[Callable[[bytes], bytes], str]] = [
        (
            lambda dump: dump.replace(b'\\"name\\":\\"Kitchen\\"', b'\\"name\\":\\"Kitchem\\"'),
            "broken at operation 1",
        ),
        (
            lambda dump: b"\n".join(line for line in dump.splitlines() if b'"n": 9,' not in line) + b"\n",
            "do not match",
        ),
        (lambda dump: dump.replace(b'"table": "voice"', b'"table": "login"'), "does not know"),
        (lambda dump: dump[:900], "damaged"),
    ]
    for change, said in changes:
        rewritten(target, forged, change)
        with pytest.raises(BadSetup, match=said):
            restore(forged, tmp_path / "new" / "app.db", tmp_path / "recipes", key=SECRET)
        with pytest.raises(BadSetup, match=said):
            restore(forged, emptied(place), tmp_path / "recipes", key=SECRET)
    with zipfile.ZipFile(forged, "w") as made:
        made.writestr("../evil.json", "{}")
        made.writestr("backup.json", json.dumps({"schema": "app-backup/1", "files": {"../evil.json": {}}}))
    with pytest.raises(BadSetup, match="evil"):
        restore(forged, tmp_path / "new" / "app.db", tmp_path / "recipes", key=SECRET)


COMMAND = [sys.executable, "-m", "kitchensync", "backup"]


def beside(target: Path) -> set[tuple[Path, int]]:
    """What lies beside a backup, and when it was written last."""
    found = set()
    for path in target.parent.iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add((path, path.stat().st_mtime_ns))
    return found - {(target, target.stat().st_mtime_ns)}


@pytest.mark.slow
def test_a_kill_leaves_the_old_backup_whole(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "out" / "kitchen.backup"
    target.parent.mkdir()
    database = open_database(data / "_app" / "app.db")
    fill(database)
    rng = random.Random(5)
    with records_of(database).changing() as connection:
        for number in range(1, 9):
            sound = {"recording": "r1", "media_type": "audio/webm", "content": rng.randbytes(1 << 20)}
            connection.execute(insert(tables.voice).values(sha256=f"{number:064}", **sound))
    command = [*COMMAND, str(target), "--data", str(data), "--force"]
    subprocess.run(command, check=True, capture_output=True)
    half_done = 0
    old = first = check(target)["operations"]
    for round_ in range(5):
        records_of(database).note("kitchen", f"k{round_ + 10}", {"name": f"Kitchen {round_}"}, actor="")
        left = beside(target)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not beside(target) - left and process.poll() is None:
            time.sleep(0.001)  # it is killed in the middle of writing, however fast it comes to that today
        process.kill()
        process.wait()
        half_done += len(os.listdir(target.parent)) > 1
        now = check(target)["operations"]
        assert now in (old, first + round_ + 1)  # the old one, or the new one
        old = now
    assert half_done >= 1
    subprocess.run(command, check=True, capture_output=True)
    assert os.listdir(target.parent) == [target.name]
    database.close()


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_the_commands(place: Path, filled: dict[str, Any], tmp_path: Path) -> None:
    run, target = CliRunner().invoke, tmp_path / "kitchen.backup"
    data = str(tmp_path / "data")
    (tmp_path / "data" / "_app" / "app.key").write_bytes(SECRET)
    done = run(main, ["backup", str(target), "--data", data, "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["schema"], said["file"], said["kind"]) == ("backup/1", str(target), "sqlite")
    there = run(main, ["restore", str(target), "--data", data, "--json"])
    assert there.exit_code == 1
    assert "already exists" in json.loads(there.stdout)["reason"]
    done = run(main, ["restore", str(target), "--data", str(tmp_path / "new")])
    assert (done.exit_code, "another app.key" in done.stderr) == (1, True)
    (tmp_path / "new" / "_app" / "app.key").write_bytes(SECRET)
    done = run(main, ["restore", str(target), "--data", str(tmp_path / "new")])
    assert done.exit_code == 0
    assert f"{said['operations']} operations" in done.output
    refused = run(main, ["backup", str(tmp_path / "none.backup"), "--data", str(tmp_path / "absent")])
    assert refused.exit_code == 1
    assert "there is no database to back up" in refused.stderr
    refused = run(main, ["backup", str(tmp_path / "no" / "x.backup"), "--data", data])
    assert refused.exit_code == 1
    assert "cannot be written" in refused.stderr
