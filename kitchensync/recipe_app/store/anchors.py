"""Anchors of the log's head, stored outside of the log to detect a truncated or rewritten log.

An anchor is `{"form", "n", "hash", "proof"}` of one row; the proof needs the installation's key. Anchors without a
form are from before the chain was keyed, when rows had other hashes; they are ignored.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, TypedDict

from sqlalchemy import Connection, select

from kitchensync.recipe_app.store.oplog import head
from kitchensync.recipe_app.store.tables import op as table

FORM = 2


class Anchor(TypedDict):
    """The place of a row in the log, proved with the key of the installation."""

    form: int
    n: int
    hash: str
    proof: str


def head_anchor(connection: Connection, key: bytes) -> Anchor:
    """Return the anchor of the log's current head."""
    n, row_hash = head(connection)
    return {"form": FORM, "n": n, "hash": row_hash, "proof": _proof(key, n, row_hash)}


def unfit(connection: Connection, anchors: Mapping[str, list[Any]], key: bytes) -> list[str]:
    """Return the sorted names that have an anchor which this log does not fit."""
    names = []
    for name, own in sorted(anchors.items()):
        checked = [anchor for anchor in own if not isinstance(anchor, dict) or "form" in anchor]
        if not all(is_ours(anchor, key) and is_there(connection, anchor) for anchor in checked):
            names.append(name)
    return names


def is_ours(anchor: Any, key: bytes) -> bool:
    """Return whether this installation made an anchor."""
    try:
        proof = _proof(key, int(anchor["n"]), str(anchor["hash"]))
        return hmac.compare_digest(proof.encode(), str(anchor["proof"]).encode())
    except (KeyError, TypeError, ValueError):
        return False


def is_there(connection: Connection, anchor: Any) -> bool:
    """Return whether the log still has the row of an anchor unchanged."""
    row_hash = connection.execute(select(table.c.hash).where(table.c.n == anchor["n"])).scalar()
    return row_hash == anchor["hash"] or anchor["n"] == 0


def _proof(key: bytes, n: int, row_hash: str) -> str:
    return hmac.new(key, f"log {n} {row_hash}".encode(), hashlib.sha256).hexdigest()
