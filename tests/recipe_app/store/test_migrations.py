"""A database of an earlier version is brought up to date and loses nothing but what it should not have held."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, event, inspect, text

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.people.accounts import Accounts
from kitchensync.recipe_app.store import oplog
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.database import open_database
from kitchensync.recipe_app.store.tables import metadata


def made_by(connection: Connection, version: str) -> None:
    """The tables as an earlier version had them."""
    metadata.create_all(connection)
    changes = [
        "DROP TABLE picture",
        *(f"ALTER TABLE op DROP COLUMN {name}" for name in ("salt", "content_hash")),
    ]
    if version == "0001":
        changes.append("ALTER TABLE login ADD COLUMN csrf TEXT NOT NULL DEFAULT ''")
    changes.append("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    for change in [*changes, f"INSERT INTO alembic_version VALUES ('{version}')"]:
        connection.execute(text(change))


def test_sessions_go_on_and_what_people_typed_is_gone(tmp_path: Path) -> None:
    place = tmp_path / "app.db"
    engine = create_engine(f"sqlite:///{place}")
    event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
    with engine.begin() as connection:
        made_by(connection, "0001")
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO attempt VALUES ('password Klara Grünwald ', 1, 5)"))
        connection.execute(text("INSERT INTO person VALUES ('p1', 'Basil', '[]', 1)"))
        row = "VALUES (:token_hash, 'p1', '', 1, 'plain', 9000)"
        columns = "(token_hash, person, device, desk, csrf, expires_utc_ns)"
        hashed = hashlib.sha256(b"test").hexdigest()
        connection.execute(text(f"INSERT INTO login {columns} {row}"), {"token_hash": hashed})
    engine.dispose()
    database = open_database(place)
    with database.reading() as connection:
        assert "csrf" not in {column["name"] for column in inspect(connection).get_columns("login")}
        assert connection.execute(text("SELECT count(*) FROM attempt")).scalar_one() == 0
    accounts = Accounts(AppRecords(database, now_ns=lambda: 5, utc_ns=lambda: 5))
    visitor = accounts.visitor(device_token="", login_token="test")
    assert (visitor.actor, visitor.desk, len(visitor.csrf)) == ("p1", True, 64)
    database.close()


def first_log(place: Path, forged: bool) -> None:
    """A log as the version before wrote it: three rows, hashed without a secret."""
    engine = create_engine(f"sqlite:///{place}")
    event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
    with engine.begin() as connection:
        made_by(connection, "0002")
    previous = "0" * 64
    with engine.begin() as connection:
        for n in (1, 2, 3):
            said = [
                n,
                f"op{n}",
                "d",
                n,
                "a",
                "s",
                "kitchen",
                f'{{"name":"{n}"}}',
                "{}",
                0,
                1,
                2,
                "page",
                3,
                4,
            ]
            own = hashlib.sha256(json.dumps([previous, *said], ensure_ascii=False).encode()).hexdigest()
            said[7] = '{"name":"forged"}' if forged and n == 2 else said[7]
            named = {f"v{place}": value for place, value in enumerate([*said, previous, own])}
            connection.execute(
                text(f"INSERT INTO op VALUES ({', '.join(f':{key}' for key in named)})"), named
            )
            previous = own
    engine.dispose()


def test_an_earlier_log_is_chained_with_the_secret_and_a_changed_one_refused(tmp_path: Path) -> None:
    first_log(tmp_path / "app.db", forged=False)
    database = open_database(tmp_path / "app.db")
    with database.reading() as connection:
        assert oplog.first_fault(connection) is None
        assert [op["body"]["name"] for op in oplog.everything(connection)] == ["1", "2", "3"]
    database.close()
    (tmp_path / "forged").mkdir()
    first_log(tmp_path / "forged" / "app.db", forged=True)
    with pytest.raises(BadSetup, match="changed at operation 2"):
        open_database(tmp_path / "forged" / "app.db")
