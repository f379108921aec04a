"""One recording as one MCAP file: every stream with its times, merged in the order of time."""

from __future__ import annotations

import heapq
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.exports.export_state import left_in_place, made_of
from kitchensync.exports.exported_span import NOTHING_HERE, ExportChoice, ExportedSpan, Progress
from kitchensync.exports.mcap_pieces import (
    DepthChoice,
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
CHUNK_BYTES = 1 << 20
EXPORT = "kitchensync_export"
"""Metadata that says of what a file was made, and what was said of it."""
PIECES = 50
"""Room is looked for after so many pieces."""
KNOTS_NS = 10_000_000_000
BEYOND_NS = 60 * KNOTS_NS
"""Films and touches may lie so far before and after what the headset sent."""


def write_mcap(
    recording: OpenedRecording,
    out: Path,
    choice: ExportChoice,
    depth: DepthChoice,
    tell: Progress,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Write a recording as MCAP; return topics, messages and what was left out, with the reasons.

    One packet of each stream is in memory at a time, beside poses and hands. Raises OutputRefused, what reading
    raises.
    """
    import foxglove
    from foxglove.mcap import MCAPCompression, MCAPWriteOptions

    foxglove.set_log_level("CRITICAL")  # what it says is said of the whole file below
    span, names = choice.span(recording), choice.names(recording)
    source = made_of(recording, choice, depth)
    if not force and (before := left_in_place(_told_in(out, source), out, is_there=out.is_file())):
        return before | {"file": str(out), "bytes": out.stat().st_size}
    check_output(out, force=force)
    context = foxglove.Context()
    made, counts, without = McapChannels(context), dict[str, int](), dict[str, str]()
    options = MCAPWriteOptions(
        compression=MCAPCompression.Zstd, compression_level=1, compression_threads=0, chunk_size=CHUNK_BYTES
    )
    with (
        written(out, force=force, ending=".mcap") as part,
        _no_space(out),
        foxglove.open_mcap(part, context=context, writer_options=options) as file,
    ):
        file.write_metadata("kitchensync", _about(recording, span))
        pieces = _logged(recording, names, span, made, depth, without, tell)
        for number, (name, count) in enumerate(pieces):
            counts[name] = counts.get(name, 0) + count
            if number % PIECES == 0:  # the writer itself goes on, and says it of each message
                require_room(out.parent, 8 * CHUNK_BYTES, kept=0)
        if not counts:
            span.check_inside(recording)
        silent = [one for one in names if one not in counts | without and not _is_body(recording, one)]
        without |= dict.fromkeys(silent, _why_silent(recording, span))
        if without:
            file.write_metadata("left_out", without)
        told = {
            "recording": recording.id,
            "span_s": span.said,
            "messages": counts,
            "topics": sorted(made.made),
            "left_out": without,
        }
        file.write_metadata(EXPORT, {"made_of": source, "told": json.dumps(told)})
    return told | {"file": str(out), "bytes": out.stat().st_size}


def _why_silent(recording: OpenedRecording, span: ExportedSpan) -> str:
    """Return why nothing of a stream is in a span."""
    if not recording.stored.pauses or span == ExportedSpan():
        return f"{NOTHING_HERE}, or nothing in this span"
    ends_s = max(span.start, 0.0), min(span.end, recording.duration)
    start_ns, end_ns = host_ns_of(recording, (np.array(ends_s) * 1e9).astype(np.int64)).tolist()
    if any(first < end_ns and start_ns < last for first, last in recording.stored.pauses):
        return f"{NOTHING_HERE}, or nothing in this span but what a privacy pause or a cut hides"
    return f"{NOTHING_HERE}, or nothing in this span"


def _told_in(path: Path, source: str) -> dict[str, Any] | None:
    """Return what was said of a file that lies there, if it was made of the same; None otherwise."""
    from mcap.exceptions import McapError
    from mcap.reader import make_reader

    try:
        with path.open("rb") as file:
            records = {one.name: one.metadata for one in make_reader(file).iter_metadata()}
        found = records[EXPORT]
        told: dict[str, Any] = json.loads(found["told"])
        return told if found["made_of"] == source else None
    except (OSError, McapError, KeyError, ValueError, struct.error):
        return None


@contextmanager
def _no_space(out: Path) -> Iterator[None]:
    """Raise what the writer's own error is about: it tells of a disk without saying which error it had."""
    try:
        yield
    except RuntimeError as error:
        if "MCAP" not in str(error):
            raise
        raise OutputRefused(
            out, f"cannot be written ({error})", "free some space, or choose another disk"
        ) from error


def _about(recording: OpenedRecording, span: ExportedSpan) -> dict[str, str]:
    """Return what the file says of itself: how its times become session time, and how far those may be off."""
    alignment = recording.alignment
    return {
        "recording": recording.id,
        "uuid": str(recording.stored.manifest.get("uuid", "")),
        "session_ns_and_host_ns": json.dumps(_knots(recording)),
        **_utc(recording),
        "alignment": alignment.status,
        "gyroscopes_within_ms": str(alignment.gyroscopes_within_ms or ""),
        "span_s": json.dumps(span.said),
        "pauses": json.dumps(len(recording.stored.pauses)),
    }


def _utc(recording: OpenedRecording) -> dict[str, str]:
    """Return what is added to host ns to have UTC ns at 0:00, host ns and UTC ns of each anchor, and bounds.

    A message has the UTC of the anchor nearest to it; before each anchor it may be off by that one's bound. Nothing
    where nobody noted it.
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


def _knots(recording: OpenedRecording) -> list[list[int]]:
    """Return pairs of session ns and host ns, each ten seconds; between two of them time passes evenly."""
    session_ns = np.arange(-BEYOND_NS, round(recording.duration * 1e9) + BEYOND_NS, KNOTS_NS)
    return np.column_stack([session_ns, host_ns_of(recording, session_ns)]).tolist()


def _logged(
    recording: OpenedRecording, names: list[str], span: ExportedSpan, made: McapChannels, depth: DepthChoice,
    without: dict[str, str], tell: Progress,
) -> Iterator[tuple[str, int]]:  # fmt: skip
    """Log the pieces of all streams in the order of time; yield what each is of and how many messages it had."""
    streams = [
        _guarded(name, make, without) for name, make in _named_pieces(recording, names, span, made, depth)
    ]
    zero_ns, end = int(host_ns_of(recording, np.zeros(1, np.int64))[0]), min(span.end, recording.duration)
    for at_ns, name, log in heapq.merge(*streams, key=lambda one: one[0]):
        if at_ns < 0:
            without.setdefault(
                name, "in parts: MCAP has no times before the clock of the capture computer began"
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
    made: McapChannels,
    depth: DepthChoice,
) -> Iterator[tuple[str, Callable[[], Iterator[Piece]]]]:
    """Yield what is handed over of each stream: records of a body as head, hands and gaze."""
    for name in (one for one in names if not _is_body(recording, one)):
        kind = recording.kind_of(name)
        yield name, partial(_pieces, recording, name, pieces_of, span, made, depth)
        if issubclass(kind, PosedStream):
            yield f"{name} poses", partial(_pieces, recording, name, camera_pieces, span, made)
        if issubclass(kind, PictureStream):
            yield f"{name} lens", partial(_pieces, recording, name, lens_pieces, span, made)
    yield "steps", partial(step_pieces, recording, span, made)
    yield "errors", partial(error_pieces, recording, span, made)
    yield "events", partial(event_pieces, recording, span, made)


def _pieces(
    recording: OpenedRecording, name: str, make: Callable[..., Iterator[Piece]], *how: Any
) -> Iterator[Piece]:
    """Open a stream when its turn comes. Raises NoPlainVideo behind the last piece where some are lacking."""
    stream = recording[name]
    yield from make(stream, *how)
    bad = stream.stored.bad if isinstance(stream, PacketStream | BodyStream) else {}
    if bad:
        row = min(bad)
        raise NoPlainVideo(f"in parts: {len(bad)} packets cannot be read, packet {row} the first: {bad[row]}")
    if isinstance(stream, FilmStream) and (lost := int(np.count_nonzero(~np.isfinite(stream.times)))):
        raise NoPlainVideo(f"in parts: {lost} of its pictures have no time")


def _is_body(recording: OpenedRecording, name: str) -> bool:
    sensor = recording.stored.sensor(name) if name in recording.stored.streams else None
    return sensor is not None and sensor.kind == RECORDS


def _guarded(
    name: str, pieces: Callable[[], Iterator[Piece]], without: dict[str, str]
) -> Iterator[tuple[int, str, Callable[[], int]]]:
    """Yield the pieces of a stream; what cannot be handed over is named, and the others go on."""
    try:
        for at_ns, log in pieces():
            yield at_ns, name, log
    except (StorageError, SensorError, Refused) as error:
        without[name] = str(error)
