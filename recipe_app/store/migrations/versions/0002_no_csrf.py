"""Nothing that people typed, and no token: a session's second token is made of its own, tries are kept as hashes."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Drop the token; forget the tries of before, which named who tried in plain text."""
    op.drop_column("login", "csrf")
    op.execute("DELETE FROM attempt")
