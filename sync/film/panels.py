"""Draw pictures with their times into one sheet: OpenCV and NumPy, no files."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from sensors.array_types import UInt8

WIDTH, HEIGHT, LINE = 640, 360, 24
MOST_COLUMNS = 2
FONT, SIZE = cv2.FONT_HERSHEY_SIMPLEX, 0.46
INK, PAPER, EMPTY = (240, 240, 240), (24, 28, 32), (60, 64, 70)


@dataclass(frozen=True, slots=True)
class Panel:
    """One stream at one instant; `picture` (HEIGHT, WIDTH, 3), or None with the reason in `words`."""

    name: str
    picture: UInt8 | None
    words: str


def drawn(picture: UInt8) -> UInt8:
    """Fit an RGB picture of any size into a panel, on black."""
    height, width = picture.shape[:2]
    scale = min(WIDTH / width, HEIGHT / height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    out = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    left, top = (WIDTH - size[0]) // 2, (HEIGHT - size[1]) // 2
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    out[top : top + size[1], left : left + size[0]] = cv2.resize(picture, size, interpolation=method)
    return out


def sheet(panels: list[Panel], title: str) -> UInt8:
    """Put panels side by side, two in a row, each with its words below, under one title."""
    columns = min(MOST_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    out = np.empty((LINE + rows * (HEIGHT + LINE), columns * WIDTH, 3), np.uint8)
    out[:] = PAPER
    _write(out, title, 8, LINE - 7)
    for k, panel in enumerate(panels):
        top, left = LINE + k // columns * (HEIGHT + LINE), k % columns * WIDTH
        place = out[top : top + HEIGHT, left : left + WIDTH]
        if panel.picture is None:
            place[:] = EMPTY
            _write(place, panel.words, 16, HEIGHT // 2)
            _write(out, panel.name, left + 8, top + HEIGHT + LINE - 7)
        else:
            place[:] = panel.picture
            _write(out, f"{panel.name}  {panel.words}", left + 8, top + HEIGHT + LINE - 7)
    return out


def _write(picture: UInt8, text: str, left: int, bottom: int) -> None:
    cv2.putText(picture, text, (left, bottom), FONT, SIZE, INK, 1, cv2.LINE_AA)
