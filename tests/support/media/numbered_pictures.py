"""Read the number that the virtual kitchen draws into its pictures, knowing only what truth.json says of it."""

from __future__ import annotations

import numpy as np

CELLS, ACROSS = 34, 40


def number_in(luma: np.ndarray) -> int | None:
    """Return the number in a picture's luma (h, w); None where there is none, or its check does not hold."""
    cell = luma.shape[1] // ACROSS
    middle = slice(cell // 4, cell - cell // 4)
    light = [float(luma[middle, k * cell : (k + 1) * cell][:, middle].mean()) > 125 for k in range(CELLS)]
    word = int("".join("01"[one] for one in light[2:]), 2)
    number, check = word >> 8, word & 0xFF
    sound = light[:2] == [True, False] and check == (number & 255) ^ (number >> 8 & 255) ^ number >> 16
    return number if sound else None


def luma_of(picture) -> np.ndarray:
    """Return the luma of a decoded picture (`av.VideoFrame`)."""
    plane = picture.planes[0]
    return np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
