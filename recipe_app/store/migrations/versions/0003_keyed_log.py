"""Chain the log with the installation's secret, over salted hashes of what was said."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

import sqlalchemy as sa
from alembic import op

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.store import oplog

revision = "0003"
down_revision = "0002"

_FIRST = ("n", "op_id", "device", "seq", "actor", "subject", "kind", "body", "clock")
_BEFORE = (*_FIRST, "seen", "host_ns", "uncertainty_ns", "basis", "received_host_ns", "received_utc_ns")


def upgrade() -> None:
    """Prove the chain as it was, then make it anew. Raises BadSetup for a log that was changed."""
    for name in ("salt", "content_hash"):
        op.add_column("op", sa.Column(name, sa.Text, nullable=False, server_default=""))
    connection = op.get_bind()
    before = oplog.FIRST
    for row in connection.execute(sa.text("SELECT * FROM op ORDER BY n")).mappings().all():
        before = _proven(dict(row), before)
        values = {**row, "salt": secrets.token_hex(16)}
        said = {"salt": values["salt"], "content_hash": oplog.content_hash(values), "n": row["n"]}
        connection.execute(
            sa.text("UPDATE op SET salt = :salt, content_hash = :content_hash WHERE n = :n"), said
        )
    oplog.chain_anew(connection)


def _proven(row: dict[str, Any], before: str) -> str:
    text = json.dumps([before, *(row[name] for name in _BEFORE)], ensure_ascii=False)
    if row["prev"] != before or row["hash"] != hashlib.sha256(text.encode()).hexdigest():
        raise BadSetup(f"the log of the app was changed at operation {row['n']}; restore a backup")
    return str(row["hash"])
