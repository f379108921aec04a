"""`report.html`: one self-contained page by which a person can judge a recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sensors.errors import SensorError
from storage.errors import StorageError
from storage.recording import Recording, open_recording
from storage.shell.outputs import write_output
from storage.verify import keep_verdict, verify
from sync.errors import SyncError
from sync.report import facts
from sync.report.alignment import ShownAlignment, read_alignments
from sync.report.cameras import ShownFile, read_cameras
from sync.report.events import KINDS, Story, read_story
from sync.report.mounts import read_mounts
from sync.report.numbers import numbers
from sync.report.pictures import DAMAGED, Strip, picture_strip
from sync.report.rates import rate_of
from sync.report.render import clock, local_time, render
from sync.report.streams import ReadStream, ShownTime, TicksToHost, read_clock, read_stream
from sync.report.timeline import (
    Hole,
    Lane,
    ShownSpan,
    axis_lane,
    camera_lane,
    clock_lane,
    empty_lane,
    event_lane,
    holes_of,
    span_of,
    stream_lane,
)

NAME = Path("sync") / "report.html"
MOST_GAPS = 15
DECODED_PARTS = 4
"""Parts of each picture stream that are decoded for a report; `kitchensync verify --deep` decodes all."""


def write_report(recording: Path, verification: dict[str, Any] | None = None) -> Path:
    """Write the page of a recording and return its path.

    `verification` is the object `verify/1`, made anew when not given. Damage inside a recording is named on the
    page. Raises NotARecording, CannotWrite.
    """
    judged = verification or verify(recording, deep=True, most_parts=DECODED_PARTS)
    with open_recording(recording) as opened:
        page = render(gather(opened, judged))
    path = recording / NAME
    write_output(path, page.encode(), force=True)
    if judged.get("checked", True):
        keep_verdict(recording, judged)
    return path


def gather(recording: Recording, verification: dict[str, Any]) -> dict[str, Any]:
    """Collect what the page shows."""
    manifest = recording.manifest
    streams = [read_stream(recording.readable, name, manifest["streams"][name]) for name in recording.streams]
    clocks = _clocks(recording, streams)
    alignments = read_alignments(recording.path)
    said = [one.said for one in alignments]
    cameras = read_cameras(recording, alignments, clocks)
    time = _time(recording, streams)
    story = read_story(recording.path, manifest, time)
    span = span_of(list(_moments(streams, clocks, cameras, story, time)), time)
    holes = _holes(streams, verification, clocks, span)
    armed = [name for name, device in manifest["devices"].items() if device.get("kind") == "gopro"]
    problems = [*story.problems, *(f"{f.name}: {f.problem}" for f in cameras if f.problem)]
    return {
        "recording": str(manifest.get("recording") or recording.path.name),
        "data": facts.data_verdict(verification),
        "alignment": facts.alignment_verdict(said, cameras, armed),
        "state_note": facts.state_note(manifest),
        "rows": facts.what_was_recorded(
            manifest, verification, recording.readable, span, _data_s(streams, cameras)
        ),
        "devices": facts.devices(manifest),
        "profiles": facts.profiles(manifest),
        "losses": facts.losses(manifest),
        "damages": facts.damages(streams, [d for c in clocks.values() for d in c.damage], problems),
        "zero": _zero_words(manifest, time),
        "lanes": list(_lanes(streams, holes, clocks, cameras, story, armed, span)),
        "holes": sorted((h for found in holes.values() for h in found), key=lambda h: h.start_s - h.end_s),
        "most_gaps": MOST_GAPS,
        "rates": [rate_of(s, verification["streams"].get(s.name, {}), clocks.get(s.device)) for s in streams],
        "cameras": cameras,
        "alignments": [
            {
                "about": one.said,
                "numbers": numbers(one.said, _first_picture(one, cameras, span)),
                "figures": one.figures,
                "overlays": one.overlays,
            }
            for one in alignments
        ],
        "mounts": read_mounts(recording.path),
        "strip": _strip(recording, _front_camera(recording, streams), clocks, cameras, span),
        "story": story,
        "commands": facts.commands(recording.path),
        "versions": facts.versions(manifest, said),
    }


def _clocks(recording: Recording, streams: list[ReadStream]) -> dict[str, TicksToHost]:
    devices = dict.fromkeys(stream.device for stream in streams)
    found = {device: read_clock(recording.readable, device, streams) for device in devices}
    return {device: known for device, known in found.items() if known is not None}


def _time(recording: Recording, streams: list[ReadStream]) -> ShownTime:
    """Session time; where damage or the lack of a headset hides it, since the first packet, or the start."""
    try:
        session = recording.session_time
    except DAMAGED:
        session = None
    if session is not None and session.clock is not None:
        return ShownTime(session, int(session.clock.lines[0].to_host_ns(session.ticks0)))
    arrivals = [int(stream.index["host_ns"][0]) for stream in streams if len(stream.index)]
    started = recording.manifest.get("started") or {}
    return ShownTime(None, min(arrivals) if arrivals else int(started.get("host_ns") or 0))


def _zero_words(manifest: dict[str, Any], time: ShownTime) -> str:
    started = manifest.get("started") or {}
    whose = "recording computer" if time.session is None else "headset"
    words = f"Minutes and seconds on the clock of the {whose}; 0:00 is the first packet"
    if not started.get("utc_ns") or not started.get("host_ns"):
        return words
    utc_ns = int(started["utc_ns"]) + time.zero_host_ns - int(started["host_ns"])
    return f"{words}, {local_time(utc_ns, manifest.get('zone') or {})}"


def _moments(
    streams: list[ReadStream],
    clocks: dict[str, TicksToHost],
    cameras: list[ShownFile],
    story: Story,
    time: ShownTime,
) -> Iterator[float]:
    """Everything that has to be inside the shown time, seconds."""
    for stream in streams:
        if len(stream.index) and stream.device in clocks:
            to_host = clocks[stream.device].to_host
            yield from (time.seconds(int(to_host.to_host_ns(int(stream.ticks[row])))) for row in (0, -1))
    for file in cameras:
        yield from (time.seconds(ns) for ns in (file.start_host_ns, file.end_host_ns) if ns is not None)
    yield from (mark.at_s for mark in story.marks)


def _data_s(streams: list[ReadStream], cameras: list[ShownFile]) -> float:
    spans = [float(s.ticks[-1] - s.ticks[0]) / 1e7 for s in streams if len(s.index) > 1]
    return max([0.0, *spans, *(file.seconds or 0.0 for file in cameras)])


def _holes(
    streams: list[ReadStream], verification: dict[str, Any], clocks: dict[str, TicksToHost], span: ShownSpan
) -> dict[str, list[Hole]]:
    found = {}
    for stream in streams:
        gaps = verification["streams"].get(stream.name, {}).get("gaps", [])
        known = clocks.get(stream.device)
        found[stream.name] = holes_of(stream, gaps, known, span) if known and len(stream.index) else []
    return found


def _lanes(
    streams: list[ReadStream],
    holes: dict[str, list[Hole]],
    clocks: dict[str, TicksToHost],
    cameras: list[ShownFile],
    story: Story,
    armed: list[str],
    span: ShownSpan,
) -> Iterator[Lane]:
    yield axis_lane(span)
    for stream in streams:
        if len(stream.index) and stream.device in clocks:
            yield stream_lane(stream, holes[stream.name], clocks[stream.device], span)
        else:
            yield empty_lane(stream.name, "no packet can be read" if stream.damage else "no packet", span)
    for file in cameras:
        yield camera_lane(file, span)
    for device in armed:
        if not any(file.device == device for file in cameras):
            yield empty_lane(device, "no file of this camera is here", span)
    for kind in (*KINDS, "other"):
        if marks := story.of_kind(kind):
            yield event_lane(f"event: {kind}", marks, span)
    for known in clocks.values():
        yield clock_lane(known, span)


def _first_picture(alignment: ShownAlignment, cameras: list[ShownFile], span: ShownSpan) -> str:
    """Say when the first picture of an aligned file was."""
    starts = [f.start_host_ns for f in cameras if f.aligned and alignment.is_of(f.device, f.path.name)]
    return f"at {clock(span.seconds(starts[0]))} of the recording" if starts and starts[0] is not None else ""


def _front_camera(recording: Recording, streams: list[ReadStream]) -> ReadStream | None:
    """Return the first front camera that sent anything."""
    sensors = [(stream, recording.sensor(stream.name)) for stream in streams if len(stream.index)]
    return next((stream for stream, sensor in sensors if sensor and sensor.is_front_camera), None)


def _strip(
    recording: Recording,
    pv: ReadStream | None,
    clocks: dict[str, TicksToHost],
    cameras: list[ShownFile],
    span: ShownSpan,
) -> Strip:
    """Make the pictures; when a file stands in the way, say which."""
    try:
        if pv is not None:
            pv.hidden = recording.hides(pv.name, pv.index)
        return picture_strip(pv, clocks.get(pv.device) if pv else None, cameras, span)
    except (*DAMAGED, SyncError, SensorError, StorageError) as error:
        return Strip([], False, f"The pictures cannot be shown: {' '.join(str(error).split())}")
