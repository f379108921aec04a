"""Draw hands, gaze and outlines of objects into a camera's video: `kitchensync overlay`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.calibration.space.body import BONES
from kitchensync.calibration.space.partial import Partial
from kitchensync.calibration.space.sightings import Sighting, SightingFinder
from kitchensync.reader.cameras.depth_views import DepthSource, depth_stream
from kitchensync.reader.cameras.eyes import TRACKING_LOST, Eye, eye_of
from kitchensync.reader.cameras.recorded import TICKS_PER_S
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.shell.array_types import Floats, UInt8
from kitchensync.storage.exports.film import TIMESCALE, FilmWriter, units_of_ticks
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.geometry.visibility import JointVisibility, PointsSeen
from kitchensync.storage.options.outputs import written

SCHEMA = "overlay/1"
SEGMENT_FRAMES = 600
"Length of a segment of the video; an interrupted run resumes after the last complete segment."
NO_DEPTH = "none"
Progress = Callable[[float, float, str], None]


@dataclass(frozen=True)
class OverlayRequest:
    """Options of `make_overlay`."""

    camera: str = "pv"
    "`pv`, `gopro`, or the name of a video file."
    depth: str | None = None
    "Depth stream for occlusion and outlines; by default far depth, else near depth; `none` for none."
    start_s: float = 0.0
    end_s: float = np.inf
    width: int | None = 1280
    "Width of the video, at most that of the camera; None for the camera's own."


@dataclass
class _Count:
    """Numbers of frames and of drawn objects."""

    pictures: int = 0
    unplaced: int = 0
    lost: int = 0
    "Unplaced frames that were taken while tracking was lost."
    hands: int = 0
    gazes: int = 0
    edges: int = 0


def make_overlay(
    path: Path,
    out: Path,
    data: Path,
    request: OverlayRequest,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Write the video as MP4 and return its facts; an interrupted run is resumed.

    One frame and two depth frames are in memory at a time. `data` is the folder of the calibrations; `force` allows
    to replace `out`. Raises Refused, NotAligned, StorageError, SensorError.
    """
    with OpenedRecording(path) as recording, eye_of(recording, request.camera, data) as eye:
        rows = _rows(eye, request)
        source = _source(recording, request, eye)
        # Video in 4:2:0 has an even width.
        width = eye.size[0] if request.width is None else min(request.width // 2 * 2, eye.size[0])
        inputs = [
            recording.id,
            recording.stored.pauses,
            eye.rests_on,
            source.name if source else NO_DEPTH,
            width,
            rows.start,
            rows.stop,
        ]
        partial = Partial(out, {"schema": SCHEMA, "of": inputs, "piece": SEGMENT_FRAMES}, force=force)
        partial.begin()
        count, segments = _Count(), []
        for start in range(rows.start, rows.stop, SEGMENT_FRAMES):
            segment = range(start, min(start + SEGMENT_FRAMES, rows.stop))
            file = partial.folder / f"{start:08d}.mp4"
            if not file.is_file():
                sightings = SightingFinder(recording, eye.headset, source)
                _write_segment(file, eye, sightings, segment, rows, width, count, progress)
            if file.is_file():  # it is missing if none of its frames may be shown
                segments.append((file, units_of_ticks(int(eye.ticks[start] - eye.ticks[rows.start]))))
        _join(out, segments, force=force)
        partial.remove()
        return {
            "schema": SCHEMA,
            "recording": recording.id,
            "status": "ok",
            "path": str(out),
            "camera": eye.name,
            "depth": source.name if source else None,
            "width": width,
            "pictures": len(rows),
            "drawn_now": vars(count),
        }


def _rows(eye: Eye, request: OverlayRequest) -> range:
    if not len(eye.ticks):
        raise Refused(f"{eye.name} holds no pictures")
    at_s = (eye.ticks - eye.ticks[0]) / TICKS_PER_S
    chosen = np.flatnonzero((at_s >= request.start_s) & (at_s < request.end_s))
    if not len(chosen):
        until = "on" if np.isinf(request.end_s) else f"to {request.end_s:g} s"
        raise Refused(
            f"{eye.name} lasts {at_s[-1]:.1f} s: there is nothing from {request.start_s:g} s {until}"
        )
    return range(int(chosen[0]), int(chosen[-1]) + 1)


def _source(recording: OpenedRecording, request: OverlayRequest, eye: Eye) -> DepthSource | None:
    """Return the depth to use, None without any. Raises Refused if the requested depth cannot be used."""
    if request.depth == NO_DEPTH:
        return None
    try:
        source = DepthSource(recording, depth_stream(recording, request.depth))
    except Refused:
        if request.depth is not None:
            raise
        return None
    if source.headset != eye.headset:
        raise Refused(
            f"{source.name} and {eye.name} are on different heads: name a depth stream of {eye.headset}"
        )
    return source


def _write_segment(
    file: Path,
    eye: Eye,
    sightings: SightingFinder,
    segment: range,
    rows: range,
    width: int,
    count: _Count,
    progress: Progress | None,
) -> None:
    """Write one segment of the video, under a temporary name until it is complete."""
    part = file.with_name(file.name + ".part")
    first, begin = int(eye.ticks[0]), int(eye.ticks[segment.start])
    with FilmWriter(part, crf=21) as film:
        for shot in eye.shots(segment, width):
            sighting = sightings.at(shot)
            count.pictures += 1
            count.unplaced += shot.view is None
            count.lost += shot.unplaced == TRACKING_LOST
            count.hands += len(sighting.hands)
            count.gazes += sighting.gaze is not None
            count.edges += len(sighting.edges)
            text = caption((shot.ticks - first) / TICKS_PER_S, sighting)
            picture = draw(shot.rgb, sighting, text, turns=eye.turns)
            film.write(picture, units_of_ticks(shot.ticks - begin))
            if progress is not None:
                progress(shot.row + 1 - rows.start, len(rows), eye.name)
    if film.pictures:
        os.replace(part, file)


def _join(out: Path, segments: list[tuple[Path, int]], *, force: bool) -> None:
    """Join segments, each with its start in 1/90000 s, into one video without re-encoding."""
    stream: Any = None
    with written(out, force=force) as part, av.open(str(part), "w", format="mp4") as container:
        for file, start in segments:
            for packet in _packets(file):
                if stream is None:
                    stream = container.add_stream_from_template(packet.stream)
                    stream.time_base = Fraction(1, TIMESCALE)
                # The container of a segment may have another time base, and each segment begins at 0.
                scale = packet.time_base * TIMESCALE
                packet.pts = round(packet.pts * scale) + start
                packet.dts = round(packet.dts * scale) + start
                packet.time_base, packet.stream = Fraction(1, TIMESCALE), stream
                container.mux(packet)
        if stream is None:
            raise Refused(f"no picture of {out.name} can be shown")


def _packets(file: Path) -> Iterator[Any]:
    with av.open(str(file)) as container:
        if container.streams.video:
            yield from (packet for packet in container.demux(video=0) if packet.pts is not None)


LEFT, RIGHT, GAZE, EDGE = (230, 159, 0), (86, 180, 233), (240, 80, 200), (0, 220, 150)
SIDES = {"left": LEFT, "right": RIGHT}
_DARK, _LIGHT = (20, 20, 20), (245, 245, 245)
_SHIFT = 4
"Coordinates are drawn to a sixteenth of a pixel."
_FAR_PX = 20_000.0
"Bound of coordinates outside of the frame, which would overflow otherwise."
_FONT = cv2.FONT_HERSHEY_SIMPLEX
Colour = tuple[int, int, int]


def draw(picture: UInt8, sighting: Sighting, text: str, *, turns: int = 0) -> UInt8:
    """Draw a sighting and a line of text into a frame (h, w, 3) RGB, and return it upright.

    `turns` is the number of quarter turns from the stored frame, as the lens is calibrated, to the upright one.
    """
    picture = np.ascontiguousarray(picture)
    thick = max(1, round(picture.shape[1] / 900))
    if len(sighting.edges):
        cv2.polylines(picture, list(_fixed(sighting.edges)), False, EDGE, thick, cv2.LINE_AA, _SHIFT)
    for side, joints in sighting.hands.items():
        _hand(picture, joints, SIDES[side], thick)
    if sighting.gaze is not None:
        _gaze(picture, sighting.gaze, thick, is_met=sighting.gaze_m is not None)
    picture = np.ascontiguousarray(np.rot90(picture, turns))
    _caption(picture, text, thick)
    return picture


def caption(seconds: float, sighting: Sighting) -> str:
    """Return one line with the time and the drawn objects, or why nothing is drawn."""
    parts = [f"{seconds:.2f} s", *([sighting.unplaced] if sighting.unplaced else [])]
    for side, joints in sighting.hands.items():
        parts.append(f"{side} hand {int(np.count_nonzero(joints.visible))}/26")
    if sighting.gaze is not None:
        parts.append("gaze" if sighting.gaze_m is None else f"gaze {sighting.gaze_m:.2f} m")
    if sighting.depth_late_s is not None:
        parts.append(f"depth {1e3 * sighting.depth_late_s:+.0f} ms")
    return "  ".join(parts)


def _fixed(pixels: Floats) -> npt.NDArray[np.int32]:
    return np.rint(pixels * (1 << _SHIFT)).astype(np.int32)


def _drawable(points: PointsSeen) -> npt.NDArray[np.bool_]:
    return np.asarray((points.sight == JointVisibility.VISIBLE) | (points.sight == JointVisibility.HIDDEN))


def _hand(picture: UInt8, joints: PointsSeen, colour: Colour, thick: int) -> None:
    """Draw bones and joints: visible ones thick and filled, hidden ones thin and hollow."""
    inside, at = _drawable(joints), _fixed(np.nan_to_num(joints.pixels).clip(-_FAR_PX, _FAR_PX))
    placed = inside | (joints.sight == JointVisibility.OUTSIDE)
    for start, end in BONES:
        if placed[start] and placed[end] and (inside[start] or inside[end]):
            visible = not (joints.sight[[start, end]] == JointVisibility.HIDDEN).any()
            ends = at[start].tolist(), at[end].tolist()
            if visible:
                cv2.line(picture, *ends, _DARK, 2 * thick + 2, cv2.LINE_AA, _SHIFT)
            cv2.line(picture, *ends, colour, 2 * thick if visible else thick, cv2.LINE_AA, _SHIFT)
    for index in np.flatnonzero(inside):
        radius = (3 * thick) << _SHIFT
        place = (int(at[index, 0]), int(at[index, 1]))
        filled = -1 if joints.visible[index] else thick
        cv2.circle(picture, place, radius + (thick << _SHIFT), _DARK, filled, cv2.LINE_AA, _SHIFT)
        cv2.circle(picture, place, radius, colour, filled, cv2.LINE_AA, _SHIFT)


def _gaze(picture: UInt8, point: PointsSeen, thick: int, *, is_met: bool) -> None:
    """Draw a ring, with a dot if its distance is from depth and not assumed."""
    if not _drawable(point)[0]:
        return
    at = _fixed(point.pixels)[0]
    place = (int(at[0]), int(at[1]))
    radius = (9 * thick) << _SHIFT
    cv2.circle(picture, place, radius, _DARK, 2 * thick + 2, cv2.LINE_AA, _SHIFT)
    cv2.circle(picture, place, radius, GAZE, 2 * thick, cv2.LINE_AA, _SHIFT)
    if is_met:
        cv2.circle(picture, place, (2 * thick) << _SHIFT, GAZE, -1, cv2.LINE_AA, _SHIFT)


def _caption(picture: UInt8, text: str, thick: int) -> None:
    """Write text and the legend of colours on a dark band along the top, where no hands are."""
    width = picture.shape[1]
    size = max(0.33, width / 1900)
    band = round(34 * size)
    picture[:band] = picture[:band] // 4
    base = round(24 * size)
    cv2.putText(picture, text, (round(8 * size), base), _FONT, size, _LIGHT, thick, cv2.LINE_AA)
    x = width - round(8 * size)
    for name, colour in (("edges", EDGE), ("gaze", GAZE), ("right", RIGHT), ("left", LEFT)):
        (wide, _), _ = cv2.getTextSize(name, _FONT, size, thick)
        x -= wide + round(16 * size)
        cv2.putText(picture, name, (x, base), _FONT, size, colour, thick, cv2.LINE_AA)
