"""One recording as one MCAP file: all streams merged in order of time."""

from __future__ import annotations

import heapq
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import foxglove
import numpy as np
from foxglove.mcap import MCAPCompression, MCAPWriteOptions
from mcap.exceptions import McapError
from mcap.reader import make_reader

from kitchensync.exports.export_state import ExportedRecording, keep_existing, source_digest
from kitchensync.exports.exported_span import (
    NOTHING_HERE,
    ExportChoice,
    ExportedSpan,
    Progress,
)
from kitchensync.exports.mcap_pieces import (
    McapChannels,
    Piece,
    camera_pieces,
    error_pieces,
    event_pieces,
    host_ns_of,
    lens_pieces,
    pieces_of,
    step_pieces,
)
from kitchensync.exports.video_packets import NoPlainVideo
from kitchensync.reader.body_streams import BodyStream
from kitchensync.reader.film_streams import FilmStream
from kitchensync.reader.headset_streams import PacketStream, PictureStream, PosedStream
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.headset_stream import RECORDS
from kitchensync.storage.disk.free_space import require_room
from kitchensync.storage.errors import StorageError
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.options.outputs import OutputRefused, check_output, written

SCHEMA = "export-mcap/1"
CHUNK_BYTES = 1 << 20  # a reader has to unpack a whole chunk for one message
EXPORT = "kitchensync_export"
"""Metadata record with the digest of the sources and the command's answer."""
PIECES = 50
"""Pieces between two checks of the free space."""
KNOTS_NS = 10_000_000_000
BEYOND_NS = 60 * KNOTS_NS
"""Time that the clock conversion covers before and after the headset's packets, for videos and touches."""


class McapContents(ExportedRecording):
    """What a file states of itself."""

    span_s: list[float | None]
    messages: dict[str, int]
    topics: list[str]


class McapExport(McapContents):
    """One file."""

    file: str
    bytes: int


def write_mcap(
    recording: OpenedRecording,
    out: Path,
    choice: ExportChoice,
    depth_as_stored: bool,
    tell: Progress,
    *,
    force: bool = False,
) -> McapExport:
    """Write a recording as MCAP; return topics, messages and what was left out, with the reasons.

    One packet of each stream is in memory at a time, and all poses and hands. Raises OutputRefused, and the errors of
    reading.
    """

    # It would log each failed message; below one error is raised for the file.
    foxglove.set_log_level("CRITICAL")
    span, names = choice.span(recording), choice.names(recording)
    source = source_digest(recording, choice, depth_as_stored)
    if not force and (before := keep_existing(_stored(out, source), out, exists=out.is_file())):
        return {**before, "file": str(out), "bytes": out.stat().st_size}
    check_output(out, force=force)
    context = foxglove.Context()
    channels, counts, without = McapChannels(context), dict[str, int](), dict[str, str]()
    options = MCAPWriteOptions(
        compression=MCAPCompression.Zstd, compression_level=1, compression_threads=0, chunk_size=CHUNK_BYTES
    )
    with (
        written(out, force=force, ending=".mcap") as part,
        _no_space(out),
        foxglove.open_mcap(part, context=context, writer_options=options) as file,
    ):
        file.write_metadata("kitchensync", _about(recording, span))
        pieces = _logged(recording, names, span, channels, depth_as_stored, without, tell)
        for number, (name, count) in enumerate(pieces):
            counts[name] = counts.get(name, 0) + count
            if number % PIECES == 0:  # on a full disk the writer would go on, with an error for each message
                require_room(out.parent, 8 * CHUNK_BYTES, kept=0)
        if not counts:
            span.check_inside(recording)
        empty = [name for name in names if name not in counts | without and not _is_body(recording, name)]
        without |= dict.fromkeys(empty, _why_empty(recording, span))
        if without:
            file.write_metadata("left_out", without)
        answer: McapContents = {
            "recording": recording.id,
            "span_s": span.as_json,
            "messages": counts,
            "topics": sorted(channels.by_topic),
            "left_out": without,
        }
        file.write_metadata(EXPORT, {"made_of": source, "told": json.dumps(answer)})
    return {**answer, "file": str(out), "bytes": out.stat().st_size}


def _why_empty(recording: OpenedRecording, span: ExportedSpan) -> str:
    """Return why a stream has no data in a span."""
    why = f"{NOTHING_HERE}, or has no data in this span"
    if not recording.stored.pauses or span == ExportedSpan():
        return why
    ends_s = max(span.start, 0.0), min(span.end, recording.duration)
    start_ns, end_ns = host_ns_of(recording, (np.array(ends_s) * 1e9).astype(np.int64)).tolist()
    if any(first < end_ns and start_ns < last for first, last in recording.stored.pauses):
        why += " outside of a privacy pause or cut"
    return why


def _stored(path: Path, source: str) -> McapContents | None:
    """Return the answer that a file has stored, if its sources are the same; None otherwise."""

    try:
        with path.open("rb") as file:
            records = {record.name: record.metadata for record in make_reader(file).iter_metadata()}
        stored = records[EXPORT]
        answer: McapContents = json.loads(stored["told"])
        return answer if stored["made_of"] == source else None
    except (OSError, McapError, KeyError, ValueError, struct.error):
        return None


@contextmanager
def _no_space(out: Path) -> Iterator[None]:
    """Raise OutputRefused for an error of the writer, which does not say what error the disk had."""
    try:
        yield
    except RuntimeError as error:
        if "MCAP" not in str(error):
            raise
        raise OutputRefused(
            out, f"cannot be written ({error})", "free some space, or choose another disk"
        ) from error


def _about(recording: OpenedRecording, span: ExportedSpan) -> dict[str, str]:
    """Return the file's metadata: conversion of its times to session time and UTC, and error bounds."""
    # Pairs of session ns and host ns every ten seconds; readers interpolate linearly between them.
    session_ns = np.arange(-BEYOND_NS, round(recording.duration * 1e9) + BEYOND_NS, KNOTS_NS)
    knots = np.column_stack([session_ns, host_ns_of(recording, session_ns)])
    alignment = recording.alignment
    return {
        "recording": recording.id,
        "uuid": str(recording.stored.manifest.get("uuid", "")),
        "session_ns_and_host_ns": json.dumps(knots.tolist()),
        **_utc(recording),
        "alignment": alignment.status,
        "gyroscopes_within_ms": str(alignment.gyroscopes_within_ms or ""),
        "span_s": json.dumps(span.as_json),
        "pauses": json.dumps(len(recording.stored.pauses)),
    }


def _utc(recording: OpenedRecording) -> dict[str, str]:
    """Return the offset from host ns to UTC ns at session second 0, host ns and UTC ns of each anchor, and bounds.

    The UTC of a message is that of the nearest anchor; before an anchor its error bound is that of the anchor. Empty
    if the recording has no UTC.
    """
    zero = np.zeros(1, np.int64)
    try:
        utc_ns, times = int(recording.clock.to_utc(zero).astype(np.int64)[0]), recording.clock.utc
    except NotKnown:
        return {"utc_minus_host_ns": "", "host_ns_and_utc_ns": "[]", "utc_bounds_ns": "[]"}
    offset_ns = utc_ns - int(host_ns_of(recording, zero)[0])
    return {
        "utc_minus_host_ns": str(offset_ns),
        "host_ns_and_utc_ns": json.dumps(times.pairs()),
        "utc_bounds_ns": json.dumps(times.bounds_ns()),
    }


def _logged(
    recording: OpenedRecording, names: list[str], span: ExportedSpan, channels: McapChannels, depth_as_stored: bool,
    without: dict[str, str], tell: Progress,
) -> Iterator[tuple[str, int]]:  # fmt: skip
    """Log the pieces of all streams in order of time; yield the name and the number of messages of each."""
    all_pieces = _named_pieces(recording, names, span, channels, depth_as_stored)
    streams = [_guarded(name, pieces, without) for name, pieces in all_pieces]
    zero_ns, end = int(host_ns_of(recording, np.zeros(1, np.int64))[0]), min(span.end, recording.duration)
    for at_ns, name, log in heapq.merge(*streams, key=lambda piece: piece[0]):
        if at_ns < 0:
            without.setdefault(
                name, "in parts: MCAP has no times before the capture computer's clock started"
            )
            continue
        try:
            yield name, log()
        except (StorageError, SensorError, Refused) as error:
            without.setdefault(name, f"in parts: {error}")
        tell(min(max((at_ns - zero_ns) / 1e9, 0.0), end), end, name)


def _named_pieces(
    recording: OpenedRecording,
    names: list[str],
    span: ExportedSpan,
    channels: McapChannels,
    depth_as_stored: bool,
) -> Iterator[tuple[str, Callable[[], Iterator[Piece]]]]:
    """Yield the name and the pieces of all exported data; body records are exported as head, hands and gaze."""
    for name in names:
        if _is_body(recording, name):
            continue
        kind = recording.kind_of(name)
        yield name, partial(_pieces, recording, name, pieces_of, span, channels, depth_as_stored)
        if issubclass(kind, PosedStream):
            yield f"{name} poses", partial(_pieces, recording, name, camera_pieces, span, channels)
        if issubclass(kind, PictureStream):
            yield f"{name} lens", partial(_pieces, recording, name, lens_pieces, span, channels)
    yield "steps", partial(step_pieces, recording, span, channels)
    yield "errors", partial(error_pieces, recording, span, channels)
    yield "events", partial(event_pieces, recording, span, channels)


def _pieces(
    recording: OpenedRecording, name: str, make: Callable[..., Iterator[Piece]], *options: Any
) -> Iterator[Piece]:
    """Open a stream and yield its pieces. Raises NoPlainVideo after the last piece if some are missing."""
    stream = recording[name]
    yield from make(stream, *options)
    bad = stream.stored.bad if isinstance(stream, PacketStream | BodyStream) else {}
    if bad:
        row = min(bad)
        raise NoPlainVideo(f"in parts: {len(bad)} packets cannot be read, first packet {row}: {bad[row]}")
    if isinstance(stream, FilmStream) and (untimed := int(np.count_nonzero(~np.isfinite(stream.times)))):
        raise NoPlainVideo(f"in parts: {untimed} of its frames have no time")


def _is_body(recording: OpenedRecording, name: str) -> bool:
    sensor = recording.stored.sensor(name) if name in recording.stored.streams else None
    return sensor is not None and sensor.kind == RECORDS


def _guarded(
    name: str, pieces: Callable[[], Iterator[Piece]], without: dict[str, str]
) -> Iterator[tuple[int, str, Callable[[], int]]]:
    """Yield the pieces of a stream; an error ends this stream only, and its reason goes into `without`."""
    try:
        for at_ns, log in pieces():
            yield at_ns, name, log
    except (StorageError, SensorError, Refused) as error:
        without[name] = str(error)
