"""The content of the tables that the app makes from its log."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, select

from kitchensync.recipe_app.store import tables


def dump(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Return the content of every derived table, in an order that does not depend on its history."""
    return {
        table.name: sorted(
            (row._asdict() for row in connection.execute(select(table))),
            key=lambda row: json.dumps(row, sort_keys=True),
        )
        for table in tables.DERIVED
    }
