"""Open the app's database: an SQLite file by default, PostgreSQL by URL, with the same tables."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.store.oplog import KEY
from kitchensync.recipe_app.store.tables import metadata, op
from kitchensync.storage.installation.key import kept_key

MIGRATIONS = Path(__file__).resolve().parent / "migrations"
WRITER_LOCK = 0x6B73  # an arbitrary id for the app's advisory lock in PostgreSQL


class Database:
    """A database. `writing` allows one writer at a time across all processes; `reading` never waits for it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writer = threading.Lock()

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open an exclusive write transaction; committed at the end, rolled back on an error."""
        with self._writer, self.engine.connect() as connection, connection.begin():
            _lock_for_writing(connection)
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction with a consistent view."""
        with self.engine.connect() as connection, connection.begin():
            if self.engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN")
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def _lock_for_writing(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({WRITER_LOCK})"))
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def open_database(place: Path | str, key: bytes | None = None) -> Database:
    """Open a database file or URL and migrate its tables. Raises BadSetup.

    `key` is the installation's secret, which chains the log; by default it is read from beside the file.
    """
    if key is None:
        if isinstance(place, str):
            raise BadSetup(f"{_shown(place)}: needs the app.key of its installation")
        key = kept_key(place.parent)
    try:
        engine = _engine(place).execution_options(**{KEY: key})
        with engine.connect() as connection:
            # One process at a time creates or migrates the tables, in one transaction.
            config = Config()
            config.set_main_option("script_location", str(MIGRATIONS))
            config.attributes["connection"] = connection
            with connection.begin():
                _lock_for_writing(connection)
                if inspect(connection).has_table(op.name):
                    command.upgrade(config, "head")
                else:
                    metadata.create_all(connection)
                    command.stamp(config, "head")
    except CommandError as error:
        raise BadSetup(f"{_shown(place)}: belongs to another version of the app ({error})") from error
    except (ArgumentError, ImportError) as error:
        raise BadSetup(f"{_shown(place)}: not a database address; give postgresql+psycopg://...") from error
    except (SQLAlchemyError, OSError) as error:
        raise BadSetup(
            f"{_shown(place)}: cannot be opened as the app's database ({_first_line(error)})"
        ) from error
    return Database(engine)


def _engine(place: Path | str) -> Engine:
    if isinstance(place, str):
        url = make_url(place)
        if url.get_backend_name() == "postgresql":
            return create_engine(url.set(drivername="postgresql+psycopg"), pool_size=8, max_overflow=8)
        raise ArgumentError(place)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.touch(mode=0o600, exist_ok=True)
    engine = create_engine(f"sqlite:///{place}", connect_args={"timeout": 30})
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Set write-ahead log, sync at each commit, overwriting of deleted data, and explicit transactions."""
    connection.isolation_level = None
    settings = (
        *("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"),
        *("secure_delete=ON",),
    )
    for pragma in settings:
        connection.execute(f"PRAGMA {pragma}")


def _shown(place: Path | str) -> str:
    """Return the address without its password."""
    try:
        return make_url(place).render_as_string(hide_password=True) if isinstance(place, str) else str(place)
    except ArgumentError:
        return "--database"


def _first_line(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0]
