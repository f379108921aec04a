"""A camera's film with hands, gaze and the outlines of things burnt in: `kitchensync overlay`."""

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
SEGMENT_PICTURES = 600
"A piece of film of this length is finished before the next one is begun: work that is cut off goes on behind it."
NO_DEPTH = "none"
Progress = Callable[[float, float, str], None]


@dataclass(frozen=True)
class OverlayRequest:
    """What is wanted."""

    camera: str = "pv"
    "`pv`, `gopro`, or the name of a film."
    depth: str | None = None
    "Stream that hides and bounds things; by default far depth before near, `none` for none."
    start_s: float = 0.0
    seconds: float | None = None
    width: int | None = 1280
    "Columns of the film; None as the camera took it. It is never made larger."


@dataclass
class _Count:
    """What was drawn."""

    pictures: int = 0
    unplaced: int = 0
    lost: int = 0
    "Of those: pictures that were taken while tracking was lost."
    hands: int = 0
    gazes: int = 0
    edges: int = 0


def make_overlay(
    path: Path,
    out: Path,
    data: Path,
    wanted: OverlayRequest,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Write the film as MP4 and return what it shows; work that was cut off is taken up.

    One picture and two depth pictures are in memory at a time. `data` holds the calibrations; `force` lets `out`
    be replaced. Raises Refused, NotAligned, StorageError, SensorError.
    """
    with OpenedRecording(path) as recording, eye_of(recording, wanted.camera, data) as eye:
        rows = _rows(eye, wanted)
        source = _source(recording, wanted, eye)
        width = eye.size[0] if wanted.width is None else min(wanted.width // 2 * 2, eye.size[0])
        request = [
            recording.id,
            recording.stored.pauses,
            eye.rests_on,
            source.name if source else NO_DEPTH,
            width,
            rows.start,
            rows.stop,
        ]
        partial = Partial(out, {"schema": SCHEMA, "of": request, "piece": SEGMENT_PICTURES}, force=force)
        partial.begin()
        count, pieces = _Count(), []
        for start in range(rows.start, rows.stop, SEGMENT_PICTURES):
            piece = range(start, min(start + SEGMENT_PICTURES, rows.stop))
            file = partial.folder / f"{start:08d}.mp4"
            if not file.is_file():
                sightings = SightingFinder(recording, eye.headset, source)
                _film(file, eye, sightings, piece, rows, width, count, progress)
            if file.is_file():  # else nothing of it can be shown
                pieces.append((file, units_of_ticks(int(eye.ticks[start] - eye.ticks[rows.start]))))
        _join(out, pieces, force=force)
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


def _rows(eye: Eye, wanted: OverlayRequest) -> range:
    if not len(eye.ticks):
        raise Refused(f"{eye.name} holds no pictures")
    at_s = (eye.ticks - eye.ticks[0]) / TICKS_PER_S
    end_s = np.inf if wanted.seconds is None else wanted.start_s + wanted.seconds
    chosen = np.flatnonzero((at_s >= wanted.start_s) & (at_s < end_s))
    if not len(chosen):
        raise Refused(f"{eye.name} lasts {at_s[-1]:.1f} s: there is nothing from {wanted.start_s:g} s on")
    return range(int(chosen[0]), int(chosen[-1]) + 1)


def _source(recording: OpenedRecording, wanted: OverlayRequest, eye: Eye) -> DepthSource | None:
    """Return the depth that is used; by default what there is, else what was asked for or a refusal."""
    if wanted.depth == NO_DEPTH:
        return None
    try:
        source = DepthSource(recording, depth_stream(recording, wanted.depth))
    except Refused:
        if wanted.depth is not None:
            raise
        return None
    if source.headset != eye.headset:
        raise Refused(
            f"{source.name} and {eye.name} are on different heads: name a depth stream of {eye.headset}"
        )
    return source


def _film(
    file: Path,
    eye: Eye,
    sightings: SightingFinder,
    piece: range,
    rows: range,
    width: int,
    count: _Count,
    progress: Progress | None,
) -> None:
    """Write one piece of the film, under another name until it is whole."""
    part = file.with_name(file.name + ".part")
    first, begin = int(eye.ticks[0]), int(eye.ticks[piece.start])
    with FilmWriter(part, crf=21) as film:
        for shot in eye.shots(piece, width):
            sighting = sightings.at(shot)
            count.pictures += 1
            count.unplaced += shot.view is None
            count.lost += shot.unplaced == TRACKING_LOST
            count.hands += len(sighting.hands)
            count.gazes += sighting.gaze is not None
            count.edges += len(sighting.edges)
            words = caption((shot.ticks - first) / TICKS_PER_S, sighting)
            picture = draw(shot.rgb, sighting, words, turns=eye.turns)
            film.write(picture, units_of_ticks(shot.ticks - begin))
            if progress is not None:
                progress(shot.row + 1 - rows.start, len(rows), eye.name)
    if film.pictures:
        os.replace(part, file)


def _join(out: Path, pieces: list[tuple[Path, int]], *, force: bool) -> None:
    """Write the pieces, each with its place in the film (1/90000 s), as one, without encoding anew."""
    stream: Any = None
    with written(out, force=force) as part, av.open(str(part), "w", format="mp4") as container:
        for file, place in pieces:
            for packet in _packets(file):
                if stream is None:
                    stream = container.add_stream_from_template(packet.stream)
                    stream.time_base = Fraction(1, TIMESCALE)
                scale = packet.time_base * TIMESCALE
                packet.pts = round(packet.pts * scale) + place
                packet.dts = round(packet.dts * scale) + place
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
"Lines may end outside of the picture, but not where their coordinates overflow."
_FONT = cv2.FONT_HERSHEY_SIMPLEX
Colour = tuple[int, int, int]


def draw(picture: UInt8, sighting: Sighting, words: str, *, turns: int = 0) -> UInt8:
    """Draw a sighting and a line of words into a picture (h, w, 3) RGB, and return it upright.

    `turns` are the quarters by which the stored picture, as its lens is calibrated, is turned for players.
    """
    picture = np.ascontiguousarray(picture)
    thick = max(1, round(picture.shape[1] / 900))
    if len(sighting.edges):
        cv2.polylines(picture, list(_fixed(sighting.edges)), False, EDGE, thick, cv2.LINE_AA, _SHIFT)
    for side, seen in sighting.hands.items():
        _hand(picture, seen, SIDES[side], thick)
    if sighting.gaze is not None:
        _gaze(picture, sighting.gaze, thick, is_met=sighting.gaze_m is not None)
    picture = np.ascontiguousarray(np.rot90(picture, turns))
    _caption(picture, words, thick)
    return picture


def caption(seconds: float, sighting: Sighting) -> str:
    """Say in one line when it was and what is drawn, or why nothing is."""
    parts = [f"{seconds:.2f} s", *([sighting.unplaced] if sighting.unplaced else [])]
    for side, seen in sighting.hands.items():
        parts.append(f"{side} hand {int(np.count_nonzero(seen.visible))}/26")
    if sighting.gaze is not None:
        parts.append("gaze" if sighting.gaze_m is None else f"gaze {sighting.gaze_m:.2f} m")
    if sighting.depth_late_s is not None:
        parts.append(f"depth {1e3 * sighting.depth_late_s:+.0f} ms")
    return "  ".join(parts)


def _fixed(pixels: Floats) -> npt.NDArray[np.int32]:
    return np.rint(pixels * (1 << _SHIFT)).astype(np.int32)


def _drawable(seen: PointsSeen) -> npt.NDArray[np.bool_]:
    return np.asarray((seen.sight == JointVisibility.VISIBLE) | (seen.sight == JointVisibility.HIDDEN))


def _hand(picture: UInt8, seen: PointsSeen, colour: Colour, thick: int) -> None:
    """Draw bones and joints: what is seen full, what is hidden thin and hollow."""
    there, at = _drawable(seen), _fixed(np.nan_to_num(seen.pixels).clip(-_FAR_PX, _FAR_PX))
    placed = there | (seen.sight == JointVisibility.OUTSIDE)
    for one, other in BONES:
        if placed[one] and placed[other] and (there[one] or there[other]):
            visible = not (seen.sight[[one, other]] == JointVisibility.HIDDEN).any()
            _line(picture, at[one], at[other], colour, 2 * thick if visible else thick, halo=visible)
    for index in np.flatnonzero(there):
        radius = (3 * thick) << _SHIFT
        place = (int(at[index, 0]), int(at[index, 1]))
        filled = -1 if seen.visible[index] else thick
        cv2.circle(picture, place, radius + (thick << _SHIFT), _DARK, filled, cv2.LINE_AA, _SHIFT)
        cv2.circle(picture, place, radius, colour, filled, cv2.LINE_AA, _SHIFT)


def _line(
    picture: UInt8,
    one: npt.NDArray[np.int32],
    other: npt.NDArray[np.int32],
    colour: Colour,
    thick: int,
    *,
    halo: bool,
) -> None:
    ends = (int(one[0]), int(one[1])), (int(other[0]), int(other[1]))
    if halo:
        cv2.line(picture, *ends, _DARK, thick + 2, cv2.LINE_AA, _SHIFT)
    cv2.line(picture, *ends, colour, thick, cv2.LINE_AA, _SHIFT)


def _gaze(picture: UInt8, seen: PointsSeen, thick: int, *, is_met: bool) -> None:
    """Draw a ring; with a dot where depth tells how far away the eyes look, hollow where that is assumed."""
    if not _drawable(seen)[0]:
        return
    at = _fixed(seen.pixels)[0]
    place = (int(at[0]), int(at[1]))
    radius = (9 * thick) << _SHIFT
    cv2.circle(picture, place, radius, _DARK, 2 * thick + 2, cv2.LINE_AA, _SHIFT)
    cv2.circle(picture, place, radius, GAZE, 2 * thick, cv2.LINE_AA, _SHIFT)
    if is_met:
        cv2.circle(picture, place, (2 * thick) << _SHIFT, GAZE, -1, cv2.LINE_AA, _SHIFT)


def _caption(picture: UInt8, words: str, thick: int) -> None:
    """Write words on a dark band along the top, where no hands are, and what each colour is at its right."""
    width = picture.shape[1]
    size = max(0.33, width / 1900)
    band = round(34 * size)
    picture[:band] = picture[:band] // 4
    base = round(24 * size)
    cv2.putText(picture, words, (round(8 * size), base), _FONT, size, _LIGHT, thick, cv2.LINE_AA)
    x = width - round(8 * size)
    for name, colour in (("edges", EDGE), ("gaze", GAZE), ("right", RIGHT), ("left", LEFT)):
        (wide, _), _ = cv2.getTextSize(name, _FONT, size, thick)
        x -= wide + round(16 * size)
        cv2.putText(picture, name, (x, base), _FONT, size, colour, thick, cv2.LINE_AA)
