"""Find the screen clock in a picture and read its cells: a white rim around black with a code that checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from sensors.array_types import Floats, Mask, UInt8

COLUMNS, CODE_ROWS = 12, 2
STRIDES = 1, 5
"How far the white column moves on at each refresh in the upper and the lower band; each is its own inverse."
NUMBER_BITS, CHECK_BITS, SWEEP_BITS = 12, 4, 6
SWEEPS = 1 << SWEEP_BITS
CODE_SHARE = 0.2812
"Height of the two rows of the code, as a share of the face."
COLUMNS_FROM = 0.3281
"Where the columns begin."
RIM_SHARE = 0.0345
"Width of the white rim, as a share of the face's width."


def cells(number: int, sweep: int) -> Mask:
    """Return which of the 24 cells are white: white, black, 12 bits number, 4 check, 6 sweep in Gray's code."""
    check = number ^ number >> 4 ^ number >> 8
    gray = (sweep % SWEEPS) ^ (sweep % SWEEPS) >> 1
    word = (number & (1 << NUMBER_BITS) - 1) << CHECK_BITS | check & (1 << CHECK_BITS) - 1
    word = word << SWEEP_BITS | gray
    places = range(NUMBER_BITS + CHECK_BITS + SWEEP_BITS - 1, -1, -1)
    return np.array([1, 0, *(word >> place & 1 for place in places)], bool)


def read_cells(light: Floats) -> tuple[int, int] | None:
    """Return number and sweep of the 24 cells' light (0 to 1); None where they are no code.

    Number 0 is never shown: any bright frame with one bright corner would be it.
    """
    white = light > 0.5
    word = int("".join("01"[int(one)] for one in white[2:]), 2)
    gray = word & SWEEPS - 1
    sweep = gray
    while gray := gray >> 1:
        sweep ^= gray
    number = word >> SWEEP_BITS + CHECK_BITS
    return (number, sweep) if number and (cells(number, sweep) == white).all() else None


ROWS = 8
"Places at which a column's light is read, from top to bottom: half of them in each band."
LEAST_WIDTH_PX = 60
LEAST_CONTRAST = 60.0
GAMMA = 2.2
WIDE_PX, HIGH_PX, RIM_PX = 240, 132, 8
"The face, straightened, with its rim around it."
_BLOCK_SHARE, _DARKER = 0.12, 12.0


@dataclass(frozen=True, slots=True)
class SeenScreen:
    """One picture's reading: the code, the light of the columns (ROWS, COLUMNS) 0 to 1, and where it stands.

    `row` is the height of each reading in the picture, -0.5 top to 0.5 bottom, (ROWS,).
    """

    number: int
    sweep: int
    light: Floats
    row: Floats


def find_screen(grey: UInt8) -> SeenScreen | None:
    """Read the screen clock in a picture without colour (h, w); None where there is none."""
    for corners in _rims(grey):
        for turned in range(0, 4, 2):
            seen = _read(grey, np.roll(corners, turned, axis=0))
            if seen is not None:
                return seen
    return None


def _rims(grey: UInt8) -> Iterator[Floats]:
    """Yield the corners (4, 2) of bright four-sided things, clockwise from the left top; the largest thing first."""
    block = int(grey.shape[1] * _BLOCK_SHARE) | 1
    bright = cv2.adaptiveThreshold(grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY, block, -_DARKER)
    outlines, _ = cv2.findContours(bright, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    for outline in sorted(outlines, key=cv2.contourArea, reverse=True):
        if cv2.contourArea(outline) < LEAST_WIDTH_PX**2 * 0.4:
            return
        around = cv2.approxPolyDP(outline, 0.03 * cv2.arcLength(outline, closed=True), closed=True)
        if len(around) == 4 and cv2.isContourConvex(around):
            yield _ordered(around.reshape(4, 2).astype(np.float64))


def _ordered(corners: Floats) -> Floats:
    """Put them clockwise in the picture, that nearest the left top first."""
    middle = corners.mean(axis=0)
    turn = np.argsort(np.arctan2(corners[:, 1] - middle[1], corners[:, 0] - middle[0]))
    corners = corners[turn]
    return np.roll(corners, -int(np.argmin(corners.sum(axis=1))), axis=0)


def _read(grey: UInt8, corners: Floats) -> SeenScreen | None:
    """Read what lies within four corners as a screen; None where it is none."""
    high, wide = HIGH_PX + 2 * RIM_PX, WIDE_PX + 2 * RIM_PX
    target = np.array([[0, 0], [wide, 0], [wide, high], [0, high]], np.float32) - 0.5
    flat = cv2.getPerspectiveTransform(corners.astype(np.float32), target)
    glass = cv2.warpPerspective(grey, flat, (wide, high), flags=cv2.INTER_LINEAR).astype(np.float64)
    face = glass[RIM_PX:-RIM_PX, RIM_PX:-RIM_PX]
    rim = np.concatenate((glass[2:5, RIM_PX:-RIM_PX].ravel(), glass[-5:-2, RIM_PX:-RIM_PX].ravel()))
    gap = face[int(HIGH_PX * (CODE_SHARE + 0.012)) : int(HIGH_PX * COLUMNS_FROM) - 1, 20:-20]
    white, black = float(np.median(rim)), float(np.median(gap))
    if white - black < LEAST_CONTRAST:
        return None
    light = np.clip((face - black) / (white - black), 0.0, 1.05) ** GAMMA
    code = _means(light[: round(HIGH_PX * CODE_SHARE)], CODE_ROWS)
    said = read_cells(code.ravel())
    if said is None:
        return None
    top = round(HIGH_PX * COLUMNS_FROM) + 2
    places = top + (np.arange(ROWS) + 0.5) * (HIGH_PX - 3 - top) / ROWS + RIM_PX
    back = np.linalg.inv(flat) @ np.stack((np.full(ROWS, wide / 2), places, np.ones(ROWS)))
    row = (back[1] / back[2] + 0.5) / grey.shape[0] - 0.5
    return SeenScreen(*said, light=_means(light[top : HIGH_PX - 3], ROWS), row=row)


def _means(light: Floats, rows: int) -> Floats:
    """Return the mean of the inner part of each of `rows` times twelve cells."""
    found = np.empty((rows, COLUMNS))
    tall, wide = light.shape[0] / rows, light.shape[1] / COLUMNS
    for row in range(rows):
        for column in range(COLUMNS):
            part = light[
                round((row + 0.1) * tall) : round((row + 0.9) * tall),
                round((column + 0.25) * wide) : round((column + 0.75) * wide),
            ]
            found[row, column] = part.mean()
    return found
