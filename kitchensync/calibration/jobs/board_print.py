"""Write a board as PDF in true scale, with a ruler to check the print."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from kitchensync.calibration.estimate.board import Board
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.options.outputs import write_output

PAPERS_MM = {"a4": (297.0, 210.0), "a3": (420.0, 297.0), "a2": (594.0, 420.0), "letter": (279.4, 215.9)}
"Width and height, landscape."
_MARGIN_MM = 5.0
_RULER_ROOM_MM = 8.0
_RULER_MM = 100


def print_board(board: Board, paper: str, path: Path, *, force: bool = False) -> None:
    """Write the board as PDF. Raises OutputRefused; Refused if the paper is too small or fpdf2 is missing."""
    try:
        from fpdf import FPDF
    except ImportError as error:
        raise Refused("printing a board needs the package fpdf2: pip install 'kitchensync[calib]'") from error
    width, height = PAPERS_MM[paper]
    square = board.square_m * 1e3
    board_width, board_height = board.columns * square, board.rows * square
    if board_width > width - 2 * _MARGIN_MM or board_height > height - 2 * _MARGIN_MM - _RULER_ROOM_MM:
        raise Refused(
            f"a board of {board_width:.0f} x {board_height:.0f} mm does not fit on {paper} "
            f"({width:.0f} x {height:.0f} mm) with its rim: take fewer or smaller squares, or larger paper"
        )
    left, top = (width - board_width) / 2, (height - board_height - _RULER_ROOM_MM) / 2
    pdf = FPDF(orientation="landscape", unit="mm", format=(height, width))
    pdf.set_auto_page_break(False)
    pdf.set_creator("KitchenSync")
    pdf.add_page()
    pdf.set_fill_color(0)
    for x, y, w, h in black_rectangles(board):
        pdf.rect(left + x, top + y, w, h, style="F")
    _ruler(pdf, board, left, top + board_height + 3.0)
    write_output(path, bytes(pdf.output()), force=force)


def black_rectangles(board: Board) -> list[tuple[float, float, float, float]]:
    """Return the black rectangles (x, y, width, height) in millimetres from the corner; runs of bits are joined."""
    square, marker = board.square_m * 1e3, board.marker_m * 1e3
    bits = board.markers.markerSize + 2
    rim, bit = (square - marker) / 2, marker / bits
    parts = []
    number = 0
    for row in range(board.rows):
        for column in range(board.columns):
            x, y = column * square, row * square
            if (row + column) % 2 == 0:
                parts.append((x, y, square, square))
                continue
            picture = cv2.aruco.generateImageMarker(board.markers, number, bits, borderBits=1)
            number += 1
            for line, start, length in _runs(np.asarray(picture) == 0):
                parts.append((x + rim + start * bit, y + rim + line * bit, length * bit, bit))
    return parts


def _runs(black: np.ndarray) -> list[tuple[int, int, int]]:
    """Return row, first column and length of each run of black bits."""
    runs = []
    for row, bits in enumerate(black):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], bits.astype(int), [0]))))
        runs += [(row, int(start), int(stop - start)) for start, stop in edges.reshape(-1, 2)]
    return runs


def _ruler(pdf: object, board: Board, left: float, y: float) -> None:
    pdf.set_line_width(0.2)  # type: ignore[attr-defined]
    pdf.line(left, y, left + _RULER_MM, y)  # type: ignore[attr-defined]
    for mm in range(0, _RULER_MM + 1, 10):
        pdf.line(left + mm, y, left + mm, y + (3 if mm % 50 == 0 else 1.5))  # type: ignore[attr-defined]
    pdf.set_font("helvetica", size=7)  # type: ignore[attr-defined]
    text = f"{board.text()}   print at 100 %; this line is {_RULER_MM} mm long, measure it"
    pdf.text(left + _RULER_MM + 4, y + 2.5, text)  # type: ignore[attr-defined]
