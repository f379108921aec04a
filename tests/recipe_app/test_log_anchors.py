"""The log's end stands in the manifests of recordings: what is cut off or made anew is found, and named."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, delete, select, update

from kitchensync.recipe_app.store import anchors, oplog, tables
from kitchensync.storage.manifest import write_json

pytestmark = pytest.mark.slow
TIMES = 40
OP = tables.op.c


def made_anew(connection: Connection, first: int, key: bytes | None = None) -> None:
    """Change a body and hash everything behind it again, as the app itself would, or with another key."""
    own = oplog._key(connection) if key is None else key
    rows = [row._asdict() for row in connection.execute(select(tables.op).order_by(OP.n))]
    previous = oplog.FIRST
    for row in rows:
        body = '{"text":"forged"}' if row["n"] == first else row["body"]
        row |= {"prev": previous, "body": body}
        row["content_hash"] = oplog.content_hash(row)
        previous = row["hash"] = oplog.row_hash(row, own)
        said = {key: row[key] for key in ("prev", "body", "content_hash", "hash")}
        connection.execute(update(tables.op).where(OP.n == row["n"]).values(said))


def tail_cut(kitchen: Any, connection: Connection, rng: random.Random) -> None:
    end = kitchen.manifest("soup_1")["log_anchors"]["end"]["n"]
    first = rng.randrange(2, end + 1)
    connection.execute(delete(tables.unfiled).where(tables.unfiled.c.n >= first))
    connection.execute(delete(tables.op).where(OP.n >= first))


def rehashed(kitchen: Any, connection: Connection, rng: random.Random) -> None:
    made_anew(connection, rng.randrange(1, kitchen.manifest("soup_1")["log_anchors"]["end"]["n"] + 1))


def rehashed_with_anchors(kitchen: Any, connection: Connection, rng: random.Random) -> None:
    """The manifest is changed as well, by somebody without the key."""
    rehashed(kitchen, connection, rng)
    manifest = kitchen.manifest("soup_1")
    for one in manifest["log_anchors"].values():
        one["hash"] = connection.execute(select(OP.hash).where(OP.n == one["n"])).scalar_one()
    write_json(kitchen.data / "soup_1" / "recording.json", manifest)


def anchored_to_less(kitchen: Any, connection: Connection, rng: random.Random) -> None:
    """The tail is cut and the anchors are said to be of a row before it."""
    tail_cut(kitchen, connection, rng)
    manifest = kitchen.manifest("soup_1")
    last = connection.execute(select(OP.n, OP.hash).order_by(OP.n.desc()).limit(1)).one()
    for one in manifest["log_anchors"].values():
        one |= {"n": last.n, "hash": last.hash}
    write_json(kitchen.data / "soup_1" / "recording.json", manifest)


def test_a_chain_made_anew_needs_the_key(cooked: Any) -> None:
    """Behind the last anchor too, and whatever the forger takes for the key."""
    rng = random.Random(4)
    with cooked.database.engine.connect() as connection:
        last, _ = oplog.head(connection)
        for number in range(TIMES):
            first, key = rng.randrange(1, last + 1), rng.randbytes(32)
            connection.exec_driver_sql("BEGIN")
            made_anew(connection, first, b"" if number == 0 else key)
            assert oplog.first_fault(connection) in range(1, first + 1), number
            connection.rollback()


FORGERIES: list[tuple[Callable[..., None], str]] = [
    (tail_cut, "is_there"),
    (rehashed, "is_there"),
    (rehashed_with_anchors, "is_ours"),
    (anchored_to_less, "is_ours"),
]


@pytest.fixture
def cooked(kitchen: Any) -> Any:
    recording = kitchen.choose(folder="soup_1")["recording"]
    kitchen.post(
        *(kitchen.operation(recording, "start", {"node": node}) for node in (1, 2)),
        kitchen.operation(recording, "end", {}),
        kitchen.operation(recording, "finish", {}),
    )
    return kitchen


@pytest.mark.parametrize(("forge", "check"), FORGERIES, ids=lambda one: getattr(one, "__name__", one))
def test_a_forged_log_is_found_and_only_its_one_check_finds_it(
    cooked: Any, forge: Callable[..., None], check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, folders, rng = cooked.tools.intake._key, cooked.tools.folders, random.Random(forge.__name__)
    before = (cooked.data / "soup_1" / "recording.json").read_text()
    for number in range(TIMES + 1):
        with cooked.database.engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            forge(cooked, connection, rng)
            assert oplog.first_fault(connection) is None  # the chain itself says nothing
            if number == TIMES:
                monkeypatch.setattr(anchors, check, lambda *_: True)
            found = anchors.unfit(connection, folders.anchors(), key)
            connection.rollback()
        assert found == ([] if number == TIMES else ["soup_1"]), number
        write_json(cooked.data / "soup_1" / "recording.json", json.loads(before))


def test_an_honest_log_fits_and_the_desk_names_what_does_not(cooked: Any) -> None:
    kept = cooked.manifest("soup_1")["log_anchors"]
    numbers = [
        op["n"] for op in cooked.tools.records.ops(cooked.tools.records.rows(tables.recording)[0]["id"])
    ]
    assert kept["start"]["n"] < kept["end"]["n"] == numbers[-1]
    assert cooked.tools.intake.unfit_anchors() == []
    admin = cooked.desk("admin")
    assert "The chain of the log holds" in admin.get("/desk/audit").text
    with cooked.database.writing() as connection:
        made_anew(connection, numbers[1])
        assert oplog.first_fault(connection) is None
    page = admin.get("/desk/audit").text
    assert ("soup_1" in page, "The chain of the log holds" in page) == (True, False)
