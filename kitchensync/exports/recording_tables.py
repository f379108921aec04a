"""The tables of a recording: motion, poses, hands, gaze, pictures' times, steps, errors, events; names have units."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from kitchensync.exports.export_state import left_in_place, made_of
from kitchensync.exports.exported_span import NO_TABLE, NOT_DECLARED, ExportChoice, ExportedSpan, Progress
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
UNIT_NAMES = {"rad/s": "rad_per_s", "m/s^2": "m_per_s2"}
"""Unit -> how a column's name says it; another is `as_sent`."""
POSE = ("x_m", "y_m", "z_m", "qw", "qx", "qy", "qz")
UTC = pa.timestamp("ns", tz="UTC")
Columns = dict[str, Any]
"""Arrays of NumPy or pyarrow, (n,) each."""


@dataclass(frozen=True)
class RecordingTable:
    """One table: its rows come in blocks."""

    name: str
    stream: TimedStream
    numbers: Int64
    "Of its rows, in order of time."
    columns: Callable[[Int64], Columns]
    "Columns of some numbers."


def tables_of(
    recording: OpenedRecording, span: ExportedSpan, names: list[str]
) -> tuple[list[RecordingTable], dict[str, str]]:
    """Return the tables of streams and bodies, and why others are left out, by stream."""
    found, without = [], {}
    for name in names:
        try:
            stream = recording[name]
            columns = _columns_of(stream)
            if columns is None:
                is_raw = type(stream) is PacketStream and recording.stored.sensor(name) is None
                without[name] = NOT_DECLARED if is_raw else f"{stream.kind}: {NO_TABLE}"
                continue
            if isinstance(stream, MotionStream) and len(stream):
                stream.read(0)  # whose unit may not be known
            numbers = stream.span(span.start, span.end)
            if span == ExportedSpan():
                numbers = np.arange(len(stream))
            elif unknown := np.count_nonzero(~np.isfinite(stream.times)):
                without[name] = f"in parts: {unknown} of its rows have no time"
            if isinstance(stream, RecordStream) and (bad := stream.stored.bad):
                without[name] = f"in parts: {len(bad)} packets cannot be read: {next(iter(bad.values()))}"
            found.append(RecordingTable(name, stream, numbers, columns))
        except (StorageError, SensorError, Refused) as error:
            without[name] = str(error)
    return found, without


def _columns_of(stream: TimedStream) -> Callable[[Int64], Columns] | None:
    """Return what gives the columns of some values of a stream; None where they fit into no table."""
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
        return _timed(stream, lambda rows: {_column(one): stream[one][rows] for one in stream.fields})
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
    """Put the times before the columns of some rows; empty where a film's chapter is not aligned."""

    def columns(rows: Int64) -> Columns:
        known = stream.session_ns[rows] != UNKNOWN
        at_ns, times, clock = np.where(known, stream.session_ns[rows], 0), {}, stream.recording.clock
        for name, of, form in (
            ("host_ns", clock.to_host, pa.int64()),
            ("utc", clock.to_utc, UTC),
            ("utc_bound_ns", clock.utc_bound_ns, pa.int64()),
        ):
            try:
                times[name] = pa.array(of(at_ns).astype(np.int64), pa.int64(), mask=~known).cast(form)
            except NotKnown:  # of a film of which nobody knows when it was made
                times[name] = pa.nulls(len(rows), form)
        return {"session_s": stream.times[rows], **times, **more(rows)}

    return columns


def _column(field: str) -> str:
    """Return the name of a record's column: the times' names are taken."""
    return f"{field}_of_record" if field in ("session_s", "host_ns", "utc", "utc_bound_ns") else field


def _pose(transforms: Floats) -> Columns:
    values = np.column_stack([transforms[:, :3, 3], rotation_wxyz(transforms[:, :3, :3])])
    return {name: values[:, k] for k, name in enumerate(POSE)}


def _joints(stream: HandStream, rows: Int64) -> Columns:
    return {
        f"{side}_{joint}_{axis}_m": places[rows, k, a]
        for side, places in (("left", stream.left), ("right", stream.right))
        for k, joint in enumerate(stream.joints)
        for a, axis in enumerate("xyz")
    }


def _gaze(stream: GazeStream, rows: Int64) -> Columns:
    origin = {f"origin_{axis}_m": stream.origin[rows, k] for k, axis in enumerate("xyz")}
    return origin | {f"direction_{axis}": stream.direction[rows, k] for k, axis in enumerate("xyz")}


def write_tables(
    recording: OpenedRecording,
    out: Path,
    choice: ExportChoice,
    forms: tuple[str, ...],
    tell: Progress,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Write `<stream>.<form>` of each table into a folder as a whole, some rows in memory beside the stream's own.

    Return what was written. Raises OutputRefused, NoSuchSpan, UnknownStream, what reading raises.
    """
    span = choice.span(recording)
    source = made_of(recording, choice, forms)
    if not force and (before := left_in_place(_told_in(out, source), out, is_there=(out / ABOUT).is_file())):
        return before
    tables, without = tables_of(recording, span, choice.names(recording))
    told = dict(told_in(recording, span, without))
    if not any(map(len, (*(table.numbers for table in tables), *told.values()))):
        span.check_inside(recording)
    said: dict[str, Any] = {}
    with written_folder(out, proof=ABOUT, force=force) as folder:
        for number, table in enumerate(tables):
            tell(number, len(tables), table.name)
            files = _write(folder, table.name, partial(_blocks, table), forms)
            said[table.name] = {"rows": len(table.numbers), "files": files}
        for name, frame in told.items():
            whole = (
                frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
            )
            said[name] = {"rows": len(frame), "files": _write(folder, name, partial(iter, [whole]), forms)}
        about = {
            "schema": SCHEMA,
            "recording": recording.id,
            "made_of": source,
            "span_s": span.said,
            "tables": said,
            "bytes": {path: size for path, (size, _) in stamps_of(folder).items()},
            "left_out": without,
        }
        (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return about


def _told_in(folder: Path, source: str) -> dict[str, Any] | None:
    """Return what was said of tables that lie there whole, if they were made of the same; None otherwise."""
    try:
        told: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        here = {path: size for path, (size, _) in stamps_of(folder).items() if path != ABOUT}
        return told if told["made_of"] == source and told["bytes"] == here else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def told_in(
    recording: OpenedRecording, span: ExportedSpan, without: dict[str, str]
) -> Iterator[tuple[str, Any]]:
    """Yield steps, errors and events of a span: steps of which a part lies in it; all where nothing is cut off."""
    with _named(without, "steps"):
        steps = recording.steps
        inside = (steps["end"] > span.start) & (steps["start"] < span.end)
        yield "steps", steps if span == ExportedSpan() else steps[inside]
    with _named(without, "errors"):
        errors = error_table([row for row in recording.error_rows if span.holds(time_of(row))])
        yield "errors", pa.Table.from_pandas(errors, ERROR_SCHEMA, preserve_index=False)
    with _named(without, "events"):
        events = recording.events
        events = events[(events["session_s"] >= span.start) & (events["session_s"] < span.end)]
        yield "events", events.assign(body=[json.dumps(body, ensure_ascii=False) for body in events["body"]])


@contextmanager
def _named(without: dict[str, str], name: str) -> Iterator[None]:
    """Name what cannot be told, and go on."""
    try:
        yield
    except StorageError as error:
        without[name] = str(error)


def _blocks(table: RecordingTable) -> Iterator[pa.Table]:
    for first in range(0, max(len(table.numbers), 1), BLOCK):
        columns = table.columns(table.numbers[first : first + BLOCK])
        yield pa.table({name: _array(values) for name, values in columns.items()})


_TYPES = {"node": pa.int64(), "planned": pa.bool_(), "categories": pa.list_(pa.string())}
ERROR_SCHEMA = pa.schema(
    [
        (name, pa.float64() if name in ERROR_SECONDS else _TYPES.get(name, pa.string()))
        for name in ERROR_COLUMNS
    ]
)
"""Types of the table of errors, also where it is empty."""


def _array(values: Any) -> Any:
    """Return a column; what is not a number is empty."""
    return values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)


def _without_lists(block: pa.Table) -> pa.Table:
    """Return a block with the words of each list in one text."""
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
                    made = pq.ParquetWriter if form == "parquet" else csv.CSVWriter
                    writer = made(str(out / file), block.schema)
                writer.write_table(block)
        finally:
            if writer is not None:
                writer.close()
    return files
