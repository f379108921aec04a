"""Summary of an opened recording, for a terminal and for a notebook."""

from __future__ import annotations

from html import escape

import numpy as np

from kitchensync.reader.headset_streams import PacketStream
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.sensors.errors import SensorError
from kitchensync.storage.errors import StorageError

HEAD = ("stream", "values", "from s", "to s")


def _rows(recording: RecordingSource) -> list[tuple[str, ...]]:
    """Return a row for each stream; none is decoded: a headset's streams are counted in packets."""
    bodies = [(name, f"of {recording.source_of(name)}", "", "") for name in recording.bodies]
    return [*(_row(recording, name) for name in recording.streams), *bodies]


def _row(recording: RecordingSource, name: str) -> tuple[str, ...]:
    camera, _, kind = name.rpartition("/")
    if camera in recording.films and kind != "video":
        return name, "in the same file", "", ""
    stream = recording[name] if camera in recording.films else PacketStream(recording, name)
    try:
        count, times = f"{len(stream)} {stream.kind}", stream.times[np.isfinite(stream.times)]
    except (StorageError, SensorError) as error:
        return name, str(error), "", ""
    ends = (f"{times.min():.2f}", f"{times.max():.2f}") if len(times) else ("", "")
    return name, count, *ends


def _summary(recording: RecordingSource) -> str:
    videos = f"videos {recording.alignment.status.replace('_', ' ')}"
    facts = filter(None, (f"{recording.duration:.1f} s", videos, recording.alignment.bounds))
    return f"{recording.id}: {', '.join(facts)}"


def as_text(recording: RecordingSource) -> str:
    """Return a summary and a table of the streams."""
    rows = [HEAD, *_rows(recording)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([_summary(recording), *(f"  {line}" for line in lines)])


def as_html(recording: RecordingSource) -> str:
    """Return summary and table as HTML."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in HEAD)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in _rows(recording)
    )
    return f"<p>{escape(_summary(recording))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
