"""The first tables. A new database gets those of today and is stamped: nothing comes before this."""

from __future__ import annotations

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing."""
