"""Joints, gaze and outlines drawn into a picture. Colours differ for every kind of eye (Okabe and Ito 2008)."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from calibration.geometry.visibility import JointVisibility, PointsSeen
from calibration.space.body import BONES
from calibration.space.onlooker import Sighting
from sensors.array_types import Floats, UInt8

LEFT, RIGHT, GAZE, EDGE = (230, 159, 0), (86, 180, 233), (240, 80, 200), (0, 220, 150)
SIDES = {"left": LEFT, "right": RIGHT}
_DARK, _LIGHT = (20, 20, 20), (245, 245, 245)
_SHIFT = 4
"Coordinates are drawn to a sixteenth of a pixel."
_FAR_PX = 20_000.0
"Lines may end outside of the picture, but not where their coordinates overflow."
_FONT = cv2.FONT_HERSHEY_SIMPLEX
Colour = tuple[int, int, int]


def draw(picture: UInt8, sighting: Sighting, words: str) -> UInt8:
    """Draw a sighting and a line of words into a picture (h, w, 3) RGB, which is changed and returned."""
    picture = np.ascontiguousarray(picture)
    thick = max(1, round(picture.shape[1] / 900))
    if len(sighting.edges):
        cv2.polylines(picture, list(_fixed(sighting.edges)), False, EDGE, thick, cv2.LINE_AA, _SHIFT)
    for side, seen in sighting.hands.items():
        _hand(picture, seen, SIDES[side], thick)
    if sighting.gaze is not None:
        _gaze(picture, sighting.gaze, thick, is_met=sighting.gaze_m is not None)
    _caption(picture, words, thick)
    return picture


def caption(seconds: float, sighting: Sighting) -> str:
    """Say in one line when it was and what is drawn."""
    parts = [f"{seconds:.2f} s"]
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
