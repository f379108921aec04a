"""The sound of voice notes, given back: to be heard at the desk, and in the file of everything of a recording."""

from __future__ import annotations

import base64

from sqlalchemy import select

from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.task_graphs.errors import NotFound

PLAYED = {"audio/mp4": "m4a", "audio/ogg": "ogg", "audio/webm": "webm"}
"""What browsers record, and how such files end; whatever else a tablet called its sound is given as mere bytes."""


def sound(records: AppRecords, recording: str, sha256: str) -> tuple[str, str, bytes]:
    """Return media type, ending and bytes of a voice note. Raises NotFound, for a withdrawn recording too."""
    mine = (tables.voice.c.recording == recording, tables.voice.c.sha256 == sha256)
    found = [] if records.state(recording)["withdrawn"] else records.rows(tables.voice, *mine)
    if not found:
        raise NotFound(
            "no voice note {name!r}; the page of the recording lists those that are here", name=sha256[:12]
        )
    kind = found[0]["media_type"].partition(";")[0].strip().lower()
    if kind not in PLAYED:
        return "application/octet-stream", "bin", found[0]["content"]
    return kind, PLAYED[kind], found[0]["content"]


def arrived(records: AppRecords, recording: str) -> set[str]:
    """Return the hashes of the voice notes whose sound is here: it travels apart from the log."""
    asked = select(tables.voice.c.sha256).where(tables.voice.c.recording == recording)
    with records.database.reading() as connection:
        return set(connection.execute(asked).scalars())


def exported(records: AppRecords, recording: str) -> list[dict[str, str]]:
    """Return every sound of a recording with its hash, as a tablet's dump has them."""
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
