"""Sounds of voice notes: to play at the desk, and to export with a recording."""

from __future__ import annotations

import base64

from sqlalchemy import select

from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.task_graphs.errors import NotFound

PLAYED = {"audio/mp4": "m4a", "audio/ogg": "ogg", "audio/webm": "webm"}
"""Media types that browsers record, with their file endings; other types are sent as plain bytes."""


def sound(records: AppRecords, recording: str, sha256: str) -> tuple[str, str, bytes]:
    """Return media type, ending and bytes of a voice note. Raises NotFound, also for a withdrawn recording."""
    mine = (tables.voice.c.recording == recording, tables.voice.c.sha256 == sha256)
    rows = [] if records.state(recording)["withdrawn"] else records.rows(tables.voice, *mine)
    if not rows:
        raise NotFound(
            "no voice note {name!r}; the page of the recording lists those that are here", name=sha256[:12]
        )
    kind = rows[0]["media_type"].partition(";")[0].strip().lower()
    if kind not in PLAYED:
        return "application/octet-stream", "bin", rows[0]["content"]
    return kind, PLAYED[kind], rows[0]["content"]


def arrived(records: AppRecords, recording: str) -> set[str]:
    """Return the hashes of the voice notes with sound: sounds arrive separately from the log."""
    query = select(tables.voice.c.sha256).where(tables.voice.c.recording == recording)
    with records.database.reading() as connection:
        return set(connection.execute(query).scalars())


def exported(records: AppRecords, recording: str) -> list[dict[str, str]]:
    """Return every sound of a recording with its hash, in the form of a tablet's dump."""
    table = tables.voice
    rows = records.rows(table, table.c.recording == recording, order=table.c.sha256)
    return [
        {
            "sha256": row["sha256"],
            "media_type": row["media_type"],
            "base64": base64.b64encode(row["content"]).decode(),
        }
        for row in rows
    ]
