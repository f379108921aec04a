"""`report.html`: one self-contained page to assess a recording."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from kitchensync.storage.manifest import Manifest
from kitchensync.storage.options.outputs import write_output
from kitchensync.storage.recording import Recording, open_recording
from kitchensync.storage.timeline.utc_times import utc_times
from kitchensync.storage.verify import keep_verdict, verify
from kitchensync.storage.verify.by_life import RecordingVerification
from kitchensync.sync.errors import SyncError
from kitchensync.sync.report import facts
from kitchensync.sync.report.alignment import ShownAlignment, read_alignments
from kitchensync.sync.report.cameras import ShownFile, read_cameras
from kitchensync.sync.report.events import SIGNS, Story, read_story
from kitchensync.sync.report.mounts import read_mounts
from kitchensync.sync.report.numbers import numbers
from kitchensync.sync.report.pictures import DAMAGED, Strip, picture_strip
from kitchensync.sync.report.rates import rate_of
from kitchensync.sync.report.render import clock, local_time, render
from kitchensync.sync.report.streams import ReadStream, ShownTime, TicksToHost, read_clock
from kitchensync.sync.report.timeline import (
    Hole,
    Lane,
    ShownSpan,
    axis_lane,
    camera_lane,
    clock_lane,
    empty_lane,
    event_lane,
    holes_of,
    stream_lane,
)

NAME = Path("sync") / "report.html"
AFTER_S = 30.0
"""Maximum time of shown events after the last packet; later ones are work on the recording."""
DECODED_PARTS = 4
"""Parts of each picture stream that are decoded for a report; `kitchensync verify --deep` decodes all."""


def write_report(recording: Path, verification: RecordingVerification | None = None) -> Path:
    """Write the page of a recording and return its path.

    `verification` is the object `verify/1`, computed by default. Damage inside a recording is shown on the page.
    Raises NotARecording, OutputRefused.
    """
    judged: RecordingVerification = verification or verify(recording, deep=True, most_parts=DECODED_PARTS)
    with open_recording(recording) as opened:
        page = render("report.html.j2", **gather(opened, judged))
    path = recording / NAME
    write_output(path, page.encode(), force=True)
    if judged.get("checked", True):
        keep_verdict(recording, judged)
    return path


@dataclass(frozen=True)
class PageContents:
    """The read contents of a recording, and its time axis."""

    streams: list[ReadStream]
    clocks: dict[str, TicksToHost]
    alignments: list[ShownAlignment]
    cameras: list[ShownFile]
    armed: list[str]  # the cameras of the rig
    story: Story
    time: ShownTime

    @cached_property
    def span(self) -> ShownSpan:
        """The time of all recorded data, without later work on the recording."""
        moments_ns = [
            ns for file in self.cameras for ns in (file.start_host_ns, file.end_host_ns) if ns is not None
        ]
        for stream in self.streams:
            if self.is_placed(stream):
                clock = self.clocks[stream.device]
                moments_ns += [clock.host_ns(stream.ticks[row]) for row in (0, -1)]
        recorded_s = [self.time.seconds(ns) for ns in moments_ns]
        last_s = max(recorded_s) + AFTER_S if recorded_s else math.inf
        seconds = [*recorded_s, *(mark.at_s for mark in self.story.marks if mark.at_s <= last_s)]
        first, last = min([0.0, *seconds]), max([1.0, *seconds])
        return ShownSpan(self.time, first, last + 0.01 * (last - first))

    def is_placed(self, stream: ReadStream) -> bool:
        """Return whether a stream has packets and a clock."""
        return len(stream.index) > 0 and stream.device in self.clocks


def gather(recording: Recording, verification: RecordingVerification) -> dict[str, Any]:
    """Collect the values of the template."""
    manifest, checked = recording.manifest, verification["streams"]
    read = _read(recording)
    alignments = [shown.alignment for shown in read.alignments]
    holes = {
        s.name: holes_of(s, checked.get(s.name, {}).get("gaps", []), read.clocks[s.device], read.span)
        for s in read.streams
        if read.is_placed(s)
    }
    parts: list[ReadStream | TicksToHost] = [*read.streams, *read.clocks.values()]
    damages = [f"{damage.file}: {damage.why}" for part in parts for damage in part.damage]
    damages += [*read.story.problems, *(f"{f.name}: {f.problem}" for f in read.cameras if f.problem)]
    lengths_s = [float(s.ticks[-1] - s.ticks[0]) / 1e7 for s in read.streams if len(s.index) > 1]
    data_s = max([0.0, *lengths_s, *(file.seconds or 0.0 for file in read.cameras)])
    return {
        "recording": str(manifest.get("recording") or recording.path.name),
        "data": facts.data_verdict(verification),
        "alignment": facts.alignment_verdict(alignments, read.cameras, read.armed),
        "state_note": facts.state_note(manifest),
        "rows": facts.what_was_recorded(manifest, verification, recording.readable, data_s),
        "devices": facts.devices(manifest),
        "profiles": facts.profiles(manifest),
        "losses": facts.losses(manifest),
        "damages": damages,
        "zero": _zero_words(manifest, read.time),
        "lanes": list(_lanes(read, holes)),
        "holes": sorted(
            (h for stream_holes in holes.values() for h in stream_holes), key=lambda h: h.start_s - h.end_s
        ),
        "rates": [rate_of(s, checked.get(s.name, {}), read.clocks.get(s.device)) for s in read.streams],
        "cameras": read.cameras,
        "alignments": [
            {"numbers": numbers(shown.alignment, _first_picture(shown, read)), "shown": shown}
            for shown in read.alignments
        ],
        "mounts": read_mounts(recording.path),
        "strip": _strip(recording, read),
        "story": read.story,
        "folder": shlex.quote(recording.path.resolve().name),
        "versions": facts.versions(manifest, alignments),
    }


def _read(recording: Recording) -> PageContents:
    manifest = recording.manifest
    streams = [
        ReadStream(recording.readable, name, manifest["streams"][name], partial(recording.hides, name))
        for name in recording.streams
    ]
    clocks = {}
    for device in dict.fromkeys(stream.device for stream in streams):
        if (device_clock := read_clock(recording.readable, device, streams)) is not None:
            clocks[device] = device_clock
    alignments = read_alignments(recording.path)
    try:
        session = recording.session_time
    except DAMAGED:
        session = None
    if session is not None and session.clock is not None:
        time = ShownTime(session, int(session.clock.lines[0].to_host_ns(session.ticks0)))
    else:  # without session time: since the first packet, or the start
        arrivals = [int(stream.index["host_ns"][0]) for stream in streams if len(stream.index)]
        started_ns = (manifest.get("started") or {}).get("host_ns") or 0
        time = ShownTime(None, min(arrivals) if arrivals else int(started_ns))
    return PageContents(
        streams,
        clocks,
        alignments,
        cameras=read_cameras(recording, alignments, clocks),
        armed=[name for name, device in manifest["devices"].items() if device.get("kind") == "gopro"],
        story=read_story(recording.path, manifest, time),
        time=time,
    )


def _zero_words(manifest: Manifest, time: ShownTime) -> str:
    times = utc_times(manifest)
    device = "recording computer" if time.session is None else "headset"
    words = f"Minutes and seconds on the clock of the {device}; 0:00 is the first packet"
    if times is None:
        return words
    utc_ns = int(times.to_utc(time.zero_host_ns))
    return f"{words}, {local_time(utc_ns, manifest.get('zone') or {})}"


def _lanes(read: PageContents, holes: dict[str, list[Hole]]) -> Iterator[Lane]:
    span = read.span
    yield axis_lane(span)
    for stream in read.streams:
        if stream.name in holes:
            yield stream_lane(stream, holes[stream.name], read.clocks[stream.device], span)
        else:
            yield empty_lane(stream.name, "no packet can be read" if stream.damage else "no packet", span)
    for file in read.cameras:
        yield camera_lane(file, span)
    for device in read.armed:
        if not any(file.device == device for file in read.cameras):
            yield empty_lane(device, "no file of this camera is here", span)
    for kind in SIGNS:
        if marks := [mark for mark in read.story.marks if mark.lane == kind and mark.at_s <= span.last_s]:
            yield event_lane(f"event: {kind}", marks, span)
    for device_clock in read.clocks.values():
        yield clock_lane(device_clock, span)


def _first_picture(alignment: ShownAlignment, read: PageContents) -> str:
    """Return the time of the first picture of an aligned file in words."""
    files = (f for f in read.cameras if f.clock_map and alignment.is_of(f.device, f.path.name))
    start_ns = next((file.start_host_ns for file in files), None)
    return f"at {clock(read.span.seconds(start_ns))} of the recording" if start_ns is not None else ""


def _strip(recording: Recording, read: PageContents) -> Strip:
    """Return the pictures, of the headset those of the first front camera with any, or the problem."""
    try:
        sensors = [(stream, recording.sensor(stream.name)) for stream in read.streams if len(stream.index)]
        pv = next((stream for stream, sensor in sensors if sensor and sensor.is_front_camera), None)
        return picture_strip(pv, read.clocks.get(pv.device) if pv else None, read.cameras, read.span)
    except (*DAMAGED, SyncError) as error:
        return Strip([], False, f"The pictures cannot be shown: {' '.join(str(error).split())}")
