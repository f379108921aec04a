"""The head of the log, kept outside of it: a log whose end was cut off, or that was made anew, fits no more.

An anchor is `{"n", "hash", "proof"}` of one row; the proof needs the installation's key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from recipe_app.store.oplog import FIRST
from recipe_app.store.tables import op as table

Anchor = dict[str, Any]


def head_anchor(connection: Connection, key: bytes) -> Anchor:
    """Return the anchor of the log as it stands."""
    last = connection.execute(select(table.c.n, table.c.hash).order_by(table.c.n.desc()).limit(1)).first()
    n, row_hash = (last.n, last.hash) if last else (0, FIRST)
    return {"n": n, "hash": row_hash, "proof": _proof(key, n, row_hash)}


def unfit(connection: Connection, anchors: Mapping[str, list[Any]], key: bytes) -> list[str]:
    """Return the names under which an anchor stands that this log does not fit, in their order."""
    return [
        name for name, of in sorted(anchors.items()) if not all(_fits(connection, one, key) for one in of)
    ]


def _fits(connection: Connection, anchor: Any, key: bytes) -> bool:
    return is_ours(anchor, key) and is_there(connection, anchor)


def is_ours(anchor: Any, key: bytes) -> bool:
    """Tell whether this installation made an anchor."""
    try:
        proof = _proof(key, int(anchor["n"]), str(anchor["hash"]))
        return hmac.compare_digest(proof.encode(), str(anchor["proof"]).encode())
    except (KeyError, TypeError, ValueError):
        return False


def is_there(connection: Connection, anchor: Anchor) -> bool:
    """Tell whether the log still has the row of an anchor as it was."""
    found = connection.execute(select(table.c.hash).where(table.c.n == anchor["n"])).scalar()
    return found == anchor["hash"] or anchor["n"] == 0


def _proof(key: bytes, n: int, row_hash: str) -> str:
    return hmac.new(key, f"log {n} {row_hash}".encode(), hashlib.sha256).hexdigest()
