"""The first schema. A new database gets the tables of today and is stamped: nothing comes before this."""

from __future__ import annotations

revision = "0004"
down_revision = None


def upgrade() -> None:
    """Do nothing."""
