"""The log on SQLite and on PostgreSQL: once, without gaps, in a chain; tables that can be made again from it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from derived_tables import dump
from histories import history, recording_body
from sqlalchemy import select, text, update

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.store import oplog, projections, tables
from kitchensync.recipe_app.store.app_records import AppRecords, new_id
from kitchensync.recipe_app.store.database import Database, open_database
from kitchensync.recipe_app.store.oplog import NewOp


@pytest.fixture
def records(database: Database) -> AppRecords:
    return AppRecords(database, now_ns=lambda: 7_000, utc_ns=lambda: 1_790_000_000_000_000_000)


def new(op: dict[str, Any], seq: int, device: str = "d1") -> NewOp:
    return NewOp(
        op_id=op["op_id"],
        device=device,
        seq=seq,
        actor="p1",
        subject="r1",
        kind=op["kind"],
        body=op["body"],
        host_ns=op["host_ns"],
        uncertainty_ns=1,
        basis="page",
        received_host_ns=op["host_ns"],
        received_utc_ns=5,
        seen=op["seen"],
    )


def fill(records: AppRecords, seed: int) -> list[NewOp]:
    """People, a device, a recording with a random history, another recording."""
    person = {"pseudonym": f"Basil {seed}", "roles": ["participant"], "active": True}
    records.note("person", "p1", person, actor="")
    records.note("kitchen", "k1", {"name": "Kitchen"}, actor="p1")
    records.note("device", "d1", {"name": "T", "kitchen": "k1", "active": True, "secure": True}, actor="p1")
    records.note("person", "p1", {**person, "active": False}, actor="p1")
    records.note("recording", "r2", recording_body(), actor="p1")
    records.note("recording", "r1", recording_body(), actor="p1")
    unique = list({op["op_id"]: op for op in history(seed)[1:]}.values())
    made = [new(op, seq) for seq, op in enumerate(unique, start=1)]
    records.accept(made[:20])
    records.accept(made[20:])
    return made


def test_new_operations_of_several_recordings_are_read_together(records: AppRecords) -> None:
    for subject in ("r1", "r2", "r3", "r1", "r2", "r3"):
        records.note("recording", subject, recording_body(), actor="p1")
    with records.database.reading() as connection:
        every = {name: [op["n"] for op in oplog.ops_of(connection, name)] for name in ("r1", "r2", "r3")}
        known = {"r1": every["r1"][0], "r2": every["r2"][1], "r3": 0}
        beyond = oplog.ops_beyond(connection, known)
    assert {name: [op["n"] for op in ops] for name, ops in beyond.items()} == {
        "r1": every["r1"][1:],
        "r2": [],
        "r3": every["r3"],
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_tables_are_what_the_log_says(records: AppRecords, seed: int) -> None:
    fill(records, seed)
    with records.database.writing() as connection:
        before = dump(connection)
        assert len(before["recording"]) == 2
        for table in tables.DERIVED:  # damage them first
            connection.execute(table.delete())
        projections.rebuild(connection)
        assert dump(connection) == before


@pytest.mark.promise("Every touch is in the log once, on the capture clock, from both databases")
def test_everything_sent_again_is_there_once_with_the_first_receipt(records: AppRecords) -> None:
    made = fill(records, 3)
    first = records.state("r1")
    again = records.accept([*made, *made])
    assert all(known for _, known in again)
    assert records.state("r1") == first
    with records.database.reading() as connection:
        numbers = [op["n"] for op in oplog.everything(connection)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_what_a_device_counts_twice_gets_a_number_of_ours(records: AppRecords) -> None:
    made = fill(records, 4)
    marks = [
        {"op_id": new_id(n), "kind": "mark", "body": {"text": str(n)}, "host_ns": 1, "seen": 0}
        for n in range(4)
    ]
    last = made[-1].seq
    twice = [
        new(mark, seq) for mark, seq in zip(marks, (1, last, last + 1, last + 1), strict=True)
    ]  # the last two in one batch
    before = {op.op_id: op.seq for op in made}
    assert [known for _, known in records.accept(twice[:1])] == [False]
    assert [known for _, known in records.accept(twice[1:])] == [False] * 3
    assert [known for _, known in records.accept(twice)] == [True] * 4
    with records.database.reading() as connection:
        rows = {op["op_id"]: op for op in oplog.everything(connection) if op["device"] == "d1"}
        assert oplog.first_fault(connection) is None
        assert oplog.next_seq(connection, "d1") == last + 2  # the device goes on counting where it was
    assert [rows[mark["op_id"]]["seq"] for mark in marks] == [-1, -2, last + 1, -3]
    assert [rows[mark["op_id"]]["clock"].get("seq") for mark in marks] == [1, last, None, last + 1]
    assert {op_id: rows[op_id]["seq"] for op_id in before} == before
    numbers = [rows[mark["op_id"]]["n"] for mark in marks]
    assert numbers == list(range(numbers[0], numbers[0] + 4))  # in the order in which they came


@pytest.mark.slow
@pytest.mark.parametrize(
    "column", ["actor", "body", "clock", "salt", "content_hash", "host_ns", "hash", "prev"]
)
def test_a_changed_row_is_found(records: AppRecords, column: str) -> None:
    fill(records, 5)
    with records.database.writing() as connection:
        assert oplog.first_fault(connection) is None
        value = 1 if column == "host_ns" else "changed"
        connection.execute(update(tables.op).where(tables.op.c.n == 9).values({column: value}))
        assert oplog.first_fault(connection) == 9


def test_a_lost_row_is_found(records: AppRecords) -> None:
    fill(records, 5)
    with records.database.writing() as connection:
        connection.execute(tables.op.delete().where(tables.op.c.n == 8))
        assert oplog.first_fault(connection) == 8


def test_a_transaction_that_fails_leaves_nothing(records: AppRecords) -> None:
    fill(records, 6)
    before = records.state("r1")

    def note_and_fail() -> None:
        with records.database.writing() as connection:
            records.note_within(connection, "mark", "r1", {"text": "never"}, actor="p1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        note_and_fail()
    assert records.state("r1") == before


@pytest.mark.slow
def test_many_writers_get_numbers_without_gaps(records: AppRecords) -> None:
    records.note("recording", "r1", recording_body(folder="soup_1"), actor="p1")
    failed: list[Exception] = []

    def post(device: str) -> None:
        try:
            for seq in range(1, 11):
                op = {"op_id": new_id(0), "kind": "mark", "body": {"text": device}, "host_ns": seq, "seen": 0}
                records.accept([new(op, seq, device)])
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=post, args=(f"d{number}",)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with records.database.reading() as connection:
        rows = list(oplog.everything(connection))
        assert oplog.first_fault(connection) is None
    assert [row["n"] for row in rows] == list(range(1, 52))
    for device in {row["device"] for row in rows} - {"server"}:
        assert [row["seq"] for row in rows if row["device"] == device] == list(range(1, 11))
    assert len(records.waiting()) == 51
    records.filed([row["n"] for row in rows][:11])
    assert len(records.waiting()) == 40


def test_rows_survive_unusual_text(records: AppRecords) -> None:
    words = "Crème “brûlée” \u202e \U0001f373 \\ ' ; --"
    records.note("person", "p9", {"pseudonym": words, "roles": [], "active": True}, actor=words)
    assert [row["pseudonym"] for row in records.rows(tables.person)] == [words]
    with records.database.reading() as connection:
        assert oplog.first_fault(connection) is None
        assert json.loads(connection.execute(select(tables.op.c.body)).scalar_one())["pseudonym"] == words
        version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    assert version == "0004"


def test_a_database_of_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    database = open_database(tmp_path / "app.db")
    with database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0003'")
    database.close()
    with pytest.raises(BadSetup, match=r"app\.db: belongs to another version of the app") as caught:
        open_database(tmp_path / "app.db")
    assert "\n" not in str(caught.value)
