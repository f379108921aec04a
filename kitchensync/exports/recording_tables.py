"""Tables of a recording: motion, poses, hands, gaze, frame times, steps, errors and events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from kitchensync.exports.export_state import ExportedRecording, keep_existing, source_digest
from kitchensync.exports.exported_span import (
    NO_TABLE,
    NOT_DECLARED,
    ExportChoice,
    ExportedSpan,
    Progress,
)
from kitchensync.operations.error_rows import ERROR_COLUMNS, time_of
from kitchensync.reader.body_streams import GazeStream, HandStream, HeadStream
from kitchensync.reader.film_streams import FilmStream
from kitchensync.reader.headset_streams import PacketStream, PosedStream
from kitchensync.reader.motion_streams import MotionStream
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.record_streams import RecordStream
from kitchensync.reader.step_table import ERROR_SECONDS, error_table
from kitchensync.reader.timed_stream import TimedStream
from kitchensync.sensors.errors import SensorError
from kitchensync.shell.array_types import Floats, Int64
from kitchensync.storage.copies.derived import stamps_of
from kitchensync.storage.errors import StorageError
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.options.outputs import written_folder
from kitchensync.storage.timeline.film_times import UNKNOWN
from kitchensync.storage.timeline.pose_track import rotation_wxyz

SCHEMA = "recording-tables/1"
ABOUT = "about.json"
BLOCK = 100_000
"""Rows that are converted and written at a time."""
UNIT_NAMES = {"rad/s": "rad_per_s", "m/s^2": "m_per_s2"}
"""Unit -> suffix of a column's name; it is `as_sent` for any other unit."""
POSE = ("x_m", "y_m", "z_m", "qw", "qx", "qy", "qz")
UTC = pa.timestamp("ns", tz="UTC")
TIMES = ("session_s", "host_ns", "utc", "utc_bound_ns")
"""Columns of every table; a record's field of the same name is renamed."""
Columns = dict[str, npt.NDArray[Any] | pa.Array]
"""Name -> values, (n,)."""


@dataclass(frozen=True)
class RecordingTable:
    """The table of one stream."""

    name: str
    numbers: Int64
    "Numbers of the stream's values in the table, in order of time."
    columns: Callable[[Int64], Columns]
    "Returns the columns of some numbers."

    def blocks(self) -> Iterator[pa.Table]:
        """Yield the rows, `BLOCK` at a time; NaN becomes null."""
        for first in range(0, max(len(self.numbers), 1), BLOCK):
            columns = self.columns(self.numbers[first : first + BLOCK])
            yield pa.table(
                {
                    name: values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
                    for name, values in columns.items()
                }
            )


def tables_of(
    recording: OpenedRecording, span: ExportedSpan, names: list[str]
) -> tuple[list[RecordingTable], dict[str, str]]:
    """Return the tables of streams and body streams, and the reasons why others are left out, by name."""
    tables, without = [], {}
    for name in names:
        try:
            stream = recording[name]
            columns = _columns_of(stream)
            if columns is None:
                is_raw = type(stream) is PacketStream and recording.stored.sensor(name) is None
                without[name] = NOT_DECLARED if is_raw else NO_TABLE
                continue
            if isinstance(stream, MotionStream) and len(stream):
                stream.read(0)  # raises NotKnown here if the unit is unknown, not while the table is written
            numbers = stream.span(span.start, span.end)
            if span == ExportedSpan():
                numbers = np.arange(len(stream))
            elif unknown := np.count_nonzero(~np.isfinite(stream.times)):
                without[name] = f"in parts: {unknown} of its rows have no time"
            if isinstance(stream, RecordStream) and (bad := stream.stored.bad):
                without[name] = f"in parts: {len(bad)} packets cannot be read: {next(iter(bad.values()))}"
            tables.append(RecordingTable(name, numbers, columns))
        except (StorageError, SensorError, Refused) as error:
            without[name] = str(error)
    return tables, without


def _columns_of(stream: TimedStream) -> Callable[[Int64], Columns] | None:
    """Return a function from numbers of values to their columns; None if tables cannot hold the stream."""
    if isinstance(stream, MotionStream):
        unit = UNIT_NAMES.get(stream.unit, "as_sent")
        return _timed(
            stream, lambda rows: {f"{axis}_{unit}": stream.values[rows, k] for k, axis in enumerate("xyz")}
        )
    if isinstance(stream, HeadStream):
        return _timed(stream, lambda rows: {**_pose(stream.values[rows]), "world": stream.worlds[rows]})
    if isinstance(stream, HandStream):
        return _timed(stream, lambda rows: {**_joints(stream, rows), "world": stream.worlds[rows]})
    if isinstance(stream, GazeStream):
        return _timed(stream, lambda rows: {**_gaze(stream, rows), "world": stream.worlds[rows]})
    if isinstance(stream, RecordStream):
        names = {field: f"{field}_of_record" if field in TIMES else field for field in stream.fields}
        return _timed(stream, lambda rows: {name: stream[field][rows] for field, name in names.items()})
    if isinstance(stream, PosedStream):
        poses, worlds = stream.world_from_camera, stream.recording.worlds_of(stream.name)[stream.rows]
        return _timed(
            stream, lambda rows: {"row": stream.rows[rows], **_pose(poses[rows]), "world": worlds[rows]}
        )
    if isinstance(stream, FilmStream):
        return _timed(
            stream,
            lambda rows: {
                "picture": stream.rows[rows],
                "media_s": stream.media_times[rows],
                "bound_s": stream.bounds_s[rows],
            },
        )
    return None


def _timed(stream: TimedStream, more: Callable[[Int64], Columns]) -> Callable[[Int64], Columns]:
    """Add the times before other columns; they are empty in chapters of a video that are not aligned."""
    clock = stream.recording.clock

    def time_column(convert: Callable[[Int64], npt.NDArray[Any]], session_ns: Int64, type_: Any) -> Any:
        has_time = session_ns != UNKNOWN
        try:
            values = convert(np.where(has_time, session_ns, 0)).astype(np.int64)
        except NotKnown:  # a video with unknown start
            return pa.nulls(len(session_ns), type_)
        return pa.array(values, pa.int64(), mask=~has_time).cast(type_)

    def columns(rows: Int64) -> Columns:
        session_ns = stream.session_ns[rows]
        return {
            "session_s": stream.times[rows],
            "host_ns": time_column(clock.to_host, session_ns, pa.int64()),
            "utc": time_column(clock.to_utc, session_ns, UTC),
            "utc_bound_ns": time_column(clock.utc_bound_ns, session_ns, pa.int64()),
            **more(rows),
        }

    return columns


def _pose(transforms: Floats) -> Columns:
    values = np.column_stack([transforms[:, :3, 3], rotation_wxyz(transforms[:, :3, :3])])
    return {name: values[:, k] for k, name in enumerate(POSE)}


def _joints(stream: HandStream, rows: Int64) -> Columns:
    return {
        f"{side}_{joint}_{axis}_m": positions[rows, k, a]
        for side, positions in (("left", stream.left), ("right", stream.right))
        for k, joint in enumerate(stream.joints)
        for a, axis in enumerate("xyz")
    }


def _gaze(stream: GazeStream, rows: Int64) -> Columns:
    origin = {f"origin_{axis}_m": stream.origin[rows, k] for k, axis in enumerate("xyz")}
    return origin | {f"direction_{axis}": stream.direction[rows, k] for k, axis in enumerate("xyz")}


class ExportedTable(TypedDict):
    """One table of a recording."""

    rows: int
    files: list[str]


class TablesOfRecording(ExportedRecording):
    """The file about.json."""

    schema: str
    made_of: str
    "Hash of the recording and the options."
    span_s: list[float | None]
    tables: dict[str, ExportedTable]
    bytes: dict[str, int]


def write_tables(
    recording: OpenedRecording,
    out: Path,
    choice: ExportChoice,
    forms: tuple[str, ...],
    tell: Progress,
    *,
    force: bool = False,
) -> TablesOfRecording:
    """Write `<stream>.<form>` of each table into a new folder, and return its about.json.

    Raises OutputRefused, NoSuchSpan, UnknownStream, and the errors of reading.
    """
    span = choice.span(recording)
    source = source_digest(recording, choice, forms)
    if not force and (before := keep_existing(_stored(out, source), out, exists=(out / ABOUT).is_file())):
        return before
    tables, without = tables_of(recording, span, choice.names(recording))
    event_tables = dict(_event_tables(recording, span, without))
    if not any(map(len, (*(table.numbers for table in tables), *event_tables.values()))):
        span.check_inside(recording)
    written: dict[str, ExportedTable] = {}
    with written_folder(out, proof=ABOUT, force=force) as folder:
        for number, table in enumerate(tables):
            tell(number, len(tables), table.name)
            files = _write(folder, table.name, table.blocks, forms)
            written[table.name] = {"rows": len(table.numbers), "files": files}
        for name, rows in event_tables.items():
            written[name] = {"rows": len(rows), "files": _write(folder, name, partial(iter, [rows]), forms)}
        about: TablesOfRecording = {
            "schema": SCHEMA,
            "recording": recording.id,
            "made_of": source,
            "span_s": span.as_json,
            "tables": written,
            "bytes": {path: size for path, (size, _) in stamps_of(folder).items()},
            "left_out": without,
        }
        (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return about


def _stored(folder: Path, source: str) -> TablesOfRecording | None:
    """Return about.json of complete tables with the same sources; None otherwise."""
    try:
        about: TablesOfRecording = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        sizes = {path: size for path, (size, _) in stamps_of(folder).items() if path != ABOUT}
        return about if about["made_of"] == source and about["bytes"] == sizes else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _event_tables(
    recording: OpenedRecording, span: ExportedSpan, without: dict[str, str]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield steps, errors and events in a span; steps that are partly in it are complete."""
    with _errors_noted(without, "steps"):
        steps = recording.steps
        if span != ExportedSpan():
            steps = steps[(steps["end"] > span.start) & (steps["start"] < span.end)]
        yield "steps", pa.Table.from_pandas(steps, preserve_index=False)
    with _errors_noted(without, "errors"):
        errors = error_table([row for row in recording.error_rows if span.contains(time_of(row))])
        yield "errors", pa.Table.from_pandas(errors, ERROR_SCHEMA, preserve_index=False)
    with _errors_noted(without, "events"):
        events = recording.events
        events = events[(events["session_s"] >= span.start) & (events["session_s"] < span.end)]
        events = events.assign(body=[json.dumps(body, ensure_ascii=False) for body in events["body"]])
        yield "events", pa.Table.from_pandas(events, preserve_index=False)


@contextmanager
def _errors_noted(without: dict[str, str], name: str) -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        without[name] = str(error)


_TYPES = {"node": pa.int64(), "planned": pa.bool_(), "categories": pa.list_(pa.string())}
ERROR_SCHEMA = pa.schema(
    [
        (name, pa.float64() if name in ERROR_SECONDS else _TYPES.get(name, pa.string()))
        for name in ERROR_COLUMNS
    ]
)
"""Types of the table of errors: an empty table has no values to take them from."""


def _without_lists(block: pa.Table) -> pa.Table:
    """Return a block with each list joined to one text, as CSV has no lists."""
    for number, column in enumerate(block.schema):
        if pa.types.is_list(column.type):
            block = block.set_column(number, column.name, pc.binary_join(block[number], "; "))
    return block


def _write(
    out: Path, name: str, blocks: Callable[[], Iterable[pa.Table]], forms: tuple[str, ...]
) -> list[str]:
    """Write a table in each form; return the names of the files."""
    files = [f"{name}.{form}" for form in forms]
    for file, form in zip(files, forms, strict=True):
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        writer: Any = None
        try:
            for block in map(_without_lists, blocks()) if form == "csv" else blocks():
                if writer is None:
                    writer_type = pq.ParquetWriter if form == "parquet" else csv.CSVWriter
                    writer = writer_type(str(out / file), block.schema)
                writer.write_table(block)
        finally:
            if writer is not None:
                writer.close()
    return files
