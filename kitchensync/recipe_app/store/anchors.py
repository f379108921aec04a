"""The head of the log, kept outside of it: a log whose end was cut off, or that was made anew, fits no more.

An anchor is `{"form", "n", "hash", "proof"}` of one row; the proof needs the installation's key. One without a form
is of the time before the chain was keyed, when rows had other hashes: it says nothing any more.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from kitchensync.recipe_app.store.oplog import head
from kitchensync.recipe_app.store.tables import op as table

Anchor = dict[str, Any]
FORM = 2


def head_anchor(connection: Connection, key: bytes) -> Anchor:
    """Return the anchor of the log as it stands."""
    n, row_hash = head(connection)
    return {"form": FORM, "n": n, "hash": row_hash, "proof": _proof(key, n, row_hash)}


def unfit(connection: Connection, anchors: Mapping[str, list[Any]], key: bytes) -> list[str]:
    """Return the names under which an anchor stands that this log does not fit, in their order."""
    of_now = {
        name: [one for one in of if not isinstance(one, dict) or "form" in one]
        for name, of in anchors.items()
    }
    return [
        name
        for name, of in sorted(of_now.items())
        if not all(is_ours(one, key) and is_there(connection, one) for one in of)
    ]


def is_ours(anchor: Any, key: bytes) -> bool:
    """Return whether this installation made an anchor."""
    try:
        proof = _proof(key, int(anchor["n"]), str(anchor["hash"]))
        return hmac.compare_digest(proof.encode(), str(anchor["proof"]).encode())
    except (KeyError, TypeError, ValueError):
        return False


def is_there(connection: Connection, anchor: Anchor) -> bool:
    """Return whether the log still has the row of an anchor as it was."""
    found = connection.execute(select(table.c.hash).where(table.c.n == anchor["n"])).scalar()
    return found == anchor["hash"] or anchor["n"] == 0


def _proof(key: bytes, n: int, row_hash: str) -> str:
    return hmac.new(key, f"log {n} {row_hash}".encode(), hashlib.sha256).hexdigest()
