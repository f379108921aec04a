"""Draw the number of a frame into it, readable for people and programs.

The top band of the frame is black. Its first line has 34 square cells, each a fortieth of the width: white, black,
24 bits of the number with the highest first, 8 check bits (the exclusive or of the number's three bytes). A white
cell is 1. The number in digits is below.
"""

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]

BITS, CHECK_BITS, CELLS_ACROSS = 24, 8, 40
WHITE, BLACK, GREY = 235, 16, 128  # ends of the limited range of video, and its middle
BAND_CELLS = 3
ABOUT: dict[str, Any] = {
    "cell_px": f"width // {CELLS_ACROSS}",
    "cells": f"white, black, {BITS} bits highest first, {CHECK_BITS} bits exclusive or of the three bytes",
    "headset": "the number k of the packet in truth/hololens/<stream>.jsonl",
    "gopro": "the number of the picture in its recording, on through all chapters",
}
"""Description for truth.json."""


def cells(number: int) -> npt.NDArray[np.bool_]:
    """Return which cells are white, (34,)."""
    check = (number ^ number >> 8 ^ number >> 16) & 0xFF
    word = (number & (1 << BITS) - 1) << CHECK_BITS | check
    bits = [word >> place & 1 for place in reversed(range(BITS + CHECK_BITS))]
    return np.array([1, 0, *bits], bool)


def draw_grey(picture: Image, number: int) -> None:
    """Draw a number into a grey frame (height, width), in place."""
    cell = picture.shape[1] // CELLS_ACROSS
    picture[: BAND_CELLS * cell] = BLACK
    line = np.where(cells(number), WHITE, BLACK).astype(np.uint8)
    picture[:cell, : len(line) * cell] = np.repeat(line, cell)
    scale = cell / 12
    place = cell, BAND_CELLS * cell - cell // 2
    cv2.putText(picture, str(number), place, cv2.FONT_HERSHEY_SIMPLEX, scale, WHITE, max(1, cell // 6))


def draw_i420(picture: Image, number: int, height: int) -> None:
    """Draw a number into a planar 4:2:0 frame, (height * 3 / 2, width), in place."""
    draw_grey(picture[:height], number)
    width = picture.shape[1]
    band = BAND_CELLS * (width // CELLS_ACROSS) // 2
    for plane in picture[height:].reshape(2, height // 2, width // 2):
        plane[: band + 1] = GREY


def number_in(luma: Image) -> int | None:
    """Return the number drawn into a frame, from its luma (height, width); None if it cannot be read."""
    cell = luma.shape[1] // CELLS_ACROSS
    middle = slice(cell // 4, cell - cell // 4)
    starts = range(0, (2 + BITS + CHECK_BITS) * cell, cell)
    means = np.array([luma[middle, at + cell // 4 : at + cell - cell // 4].mean() for at in starts])
    white = means > (WHITE + BLACK) / 2
    number = int("".join("01"[int(is_white)] for is_white in white[2 : 2 + BITS]), 2)
    return number if (white == cells(number)).all() else None
