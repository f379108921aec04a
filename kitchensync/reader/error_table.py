"""The errors of a recording as a table on session time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from kitchensync.operations.error_rows import ERROR_COLUMNS, ErrorRow, error_rows, time_of
from kitchensync.operations.filed_log import read_log
from kitchensync.reader.step_table import MarkedTimes, session_places, the_pandas
from kitchensync.storage.names import PART_OF
from kitchensync.storage.privacy import span_of

if TYPE_CHECKING:
    import pandas

    from kitchensync.reader.opened_recording import OpenedRecording

SECONDS = tuple(name for name in ERROR_COLUMNS if name.endswith("_s"))


def error_table(rows: Sequence[ErrorRow]) -> pandas.DataFrame:
    """Return errors as a table: an unknown time is NaN, any other unknown value None."""
    table = the_pandas().DataFrame(rows, columns=list(ERROR_COLUMNS))
    whole = {"node": "Int64", "planned": bool}
    return table.astype(dict.fromkeys(SECONDS, float) | whole)


def error_rows_of(recording: OpenedRecording) -> list[ErrorRow]:
    """Return one row for each error; of a part of a recording, those that happened or were entered in that part.

    Raises BadEventLog, BadAnnotations, NotKnown.
    """
    operations, state = read_log(recording.path)
    if state["recording"] is None:
        return []
    marked = cache(lambda: MarkedTimes(recording, state["marked_video"], "errors"))
    places = session_places(recording), lambda film_s: marked().place(film_s)
    rows = error_rows(recording.id, state, operations, *places)
    if PART_OF in recording.stored.manifest:
        start_s, end_s = span_of(recording.stored.manifest)
        nodes = {step["node"] for step in recording.step_rows}
        timed = [row for row in rows if start_s <= time_of(row) < end_s]
        untimed = [row for row in rows if time_of(row) == float("inf") and row["node"] in nodes]
        rows = timed + untimed
    return rows
