"""Steps and errors of many recordings in one table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.reader.step_table import STEP_COLUMNS, error_table
from kitchensync.reader.timed_stream import import_pandas
from kitchensync.sensors.errors import SensorError
from kitchensync.storage.errors import StorageError, Withdrawn
from kitchensync.storage.names import MADE_FROM

if TYPE_CHECKING:
    import pandas

Row = TypeVar("Row")


def steps_of_all(paths: Iterable[Path]) -> pandas.DataFrame:
    """Return the rows of `OpenedRecording.steps` of many recordings, each step once."""
    rows = _rows_of_all(paths, lambda recording: recording.step_rows)
    return import_pandas().DataFrame(rows, columns=list(STEP_COLUMNS))


def errors_of_all(paths: Iterable[Path]) -> pandas.DataFrame:
    """Return the rows of `OpenedRecording.errors` of many recordings, each error once."""
    return error_table(_rows_of_all(paths, lambda recording: recording.error_rows))


def _rows_of_all(paths: Iterable[Path], rows_of: Callable[[OpenedRecording], list[Row]]) -> list[Row]:
    """Return rows of many recordings.

    Withdrawn recordings are skipped. So are parts, replays and copies, which repeat the rows of the whole recording.
    A recording that cannot be read is skipped with a warning.
    """
    rows: list[Row] = []
    done: set[str] = set()
    for path in paths:
        try:
            with OpenedRecording(path) as recording:
                manifest = recording.stored.manifest
                uuid = str(manifest.get("uuid", path))
                if uuid not in done and not manifest.get(MADE_FROM):
                    rows += rows_of(recording)
                    done.add(uuid)
        except Withdrawn:
            continue
        except (StorageError, SensorError) as error:
            warnings.warn(f"{path} is skipped: {error}", stacklevel=4)
    return rows
