"""The ChArUco board: what it is, and where its corners are in a picture.

Board frame: x right and y down from the outer corner of the first square, z away from whoever looks at the print,
metres.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats, UInt8
from kitchensync.storage.geometry.errors import Refused

DICTIONARIES = ("DICT_4X4_250", "DICT_5X5_250", "DICT_6X6_250", "DICT_APRILTAG_36h11")
NEW, OLD = "new", "old"
"""Layouts of OpenCV since 4.6 and before: with an even number of rows the other squares have the markers."""
FEWEST_FOR_LAYOUT = 4
FITS, CLEARLY = 0.4, 2.5
"""Share of a marker's side by which markers may miss a plane in their own layout, in a lens that bends lines too; in
the other layout they miss it by so many times more."""
WIDEST_SEARCHED_PX = 1920
"Markers are looked for in a picture of at most this width, corners placed in the full one: 4K costs little more."
WIDEST_BLUR_PX = 2.3
WIDEST_WINDOW_PX = 5
"""Half a side of the window in which a corner is placed, at the size of the search: in a wider one the bent edges of
a fisheye picture pull the corner off."""
_WORDS = re.compile(r"(\d{1,3})x(\d{1,3}):(\d{1,5}(?:\.\d{1,9})?)mm/(\d{1,5}(?:\.\d{1,9})?)mm(?::(\w+))?")


@dataclass(frozen=True)
class Board:
    """A chessboard with markers in its white squares; `columns` and `rows` count squares."""

    columns: int = 11
    rows: int = 8
    square_m: float = 0.024
    marker_m: float = 0.018
    dictionary: str = "DICT_5X5_250"

    def __post_init__(self) -> None:
        if self.dictionary not in DICTIONARIES:
            raise Refused(f"marker dictionary {self.dictionary!r} is not one of {', '.join(DICTIONARIES)}")
        if not (3 <= self.columns <= 30 and 3 <= self.rows <= 30):
            raise Refused("a board has 3 to 30 squares a side")
        if not 0 < self.marker_m < self.square_m:
            raise Refused("a board's markers are smaller than its squares")
        if self.columns * self.rows // 2 > 250:
            raise Refused(
                f"{self.columns} x {self.rows} squares need more than the 250 markers of a dictionary"
            )

    @classmethod
    def from_words(cls, words: str) -> Board:
        """Read `11x8:24mm/18mm` or `11x8:24mm/18mm:DICT_4X4_250`. Raises Refused when it is not of this form."""
        match = _WORDS.fullmatch(words.strip())
        if match is None:
            raise Refused(
                f"board {words!r} is not of the form 11x8:24mm/18mm (squares across x down, square/marker)"
            )
        columns, rows, square, marker, dictionary = match.groups()
        size = float(square) / 1e3, float(marker) / 1e3
        return cls(int(columns), int(rows), *size, dictionary or cls.dictionary)

    def words(self) -> str:
        """Return the board in the words of `from_words`."""
        return f"{self.columns}x{self.rows}:{self.square_m * 1e3:g}mm/{self.marker_m * 1e3:g}mm:{self.dictionary}"

    @cached_property
    def opencv(self) -> Any:
        """The board as `cv2.aruco.CharucoBoard`, in the layout in which we print it."""
        return self.in_layout(NEW)

    def in_layout(self, layout: str) -> Any:
        """Return the board with its markers in the squares of a layout; its inner corners are the same in both."""
        size = (self.columns, self.rows)
        made = cv2.aruco.CharucoBoard(size, self.square_m, self.marker_m, self.markers)
        made.setLegacyPattern(layout == OLD)
        return made

    @property
    def layouts(self) -> tuple[str, ...]:
        """The layouts that a print may have: with an odd number of rows they are the same."""
        return (NEW, OLD) if self.rows % 2 == 0 else (NEW,)

    @cached_property
    def markers(self) -> Any:
        """Its marker dictionary."""
        return cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, self.dictionary))

    @cached_property
    def corners_m(self) -> Floats:
        """Inner corners (n, 3), row by row; the row number is a corner's id."""
        return np.asarray(self.opencv.getChessboardCorners(), np.float64)


@dataclass(frozen=True)
class BoardSeen:
    """The board in one picture."""

    name: str
    "Which picture, in words for people: a file or a time."
    ids: npt.NDArray[np.intp]
    "(n,) ascending, each once."
    pixels: Floats
    "(n, 2)"
    size: tuple[int, int]
    "Width and height of the picture."
    edge_px: float = 0.0
    "Median width of the edges of its squares: a blurred picture has wide ones."


IN_LINE = "its corners lie on one line"


def in_line(seen: BoardSeen, board: Board) -> bool:
    """Return whether all corners seen lie on one line, as when one row of the board is in view: no pose follows."""
    flat = board.corners_m[seen.ids, :2]
    return bool(np.linalg.matrix_rank(flat - flat.mean(0), tol=board.square_m / 2) < 2)


class Detector:
    """Finds one board in pictures."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.layout = board.layouts[0] if len(board.layouts) == 1 else ""
        """Empty until a picture has told it."""
        self._charuco = {one: cv2.aruco.CharucoDetector(board.in_layout(one)) for one in board.layouts}
        self._markers = cv2.aruco.ArucoDetector(board.markers)

    def find(self, grey: UInt8, name: str) -> BoardSeen | None:
        """Return the board's corners in a picture (height, width) uint8, or None when fewer than four are seen."""
        shrink = max(1, -(-grey.shape[1] // WIDEST_SEARCHED_PX))
        size = (grey.shape[1] // shrink, grey.shape[0] // shrink)
        small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA) if shrink > 1 else grey
        self.layout = self.layout or self._layout_in(small)
        if not self.layout:
            return None
        corners, ids, _, _ = self._charuco[self.layout].detectBoard(small)
        if ids is None or len(ids) < 4:
            return None
        order = np.argsort(ids.ravel())
        pixels: Floats = corners.reshape(-1, 2)[order].astype(np.float64)
        found = ids.ravel()[order].astype(np.intp)
        found, pixels = self._refined(grey, found, (pixels + 0.5) * shrink - 0.5, shrink)
        if len(found) < 4:
            return None
        full = (grey.shape[1], grey.shape[0])
        return BoardSeen(name, found, pixels, full, edge_width_px(grey, self.board, found, pixels))

    def _layout_in(self, grey: Any) -> str:
        """Return the layout in which a picture's markers lie on a plane; empty where that is not clear."""
        corners, ids, _ = self._markers.detectMarkers(grey)
        known = self.board.columns * self.board.rows // 2
        if ids is None or len(ids) < FEWEST_FOR_LAYOUT or int(ids.max()) >= known:
            return ""
        side_px = float(
            np.median([np.linalg.norm(np.diff(one[0], axis=0), axis=1).mean() for one in corners])
        )
        missed = {one: self._missed_px(one, corners, ids) / side_px for one in self.board.layouts}
        best, other = sorted(missed, key=lambda one: missed[one])
        return best if missed[best] < FITS and missed[other] > CLEARLY * missed[best] else ""

    def _missed_px(self, layout: str, corners: Any, ids: Any) -> float:
        """Return how far (root mean square) a layout's markers lie from a plane that is seen in perspective."""
        printed = np.asarray(self.board.in_layout(layout).getObjPoints(), np.float64)[ids.ravel(), :, :2]
        flat, there = printed.reshape(-1, 1, 2), np.asarray(corners, np.float64).reshape(-1, 1, 2)
        onto = cv2.findHomography(flat, there)[0]
        if onto is None:
            return float("inf")
        drawn = cv2.perspectiveTransform(flat, onto)
        return float(np.sqrt(np.mean(np.sum((drawn - there) ** 2, axis=2))))

    def _refined(
        self, grey: UInt8, ids: npt.NDArray[np.intp], pixels: Floats, shrink: int
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        """Place corners exactly in the full picture; those that run away are dropped.

        OpenCV's board detector stops at steps of 0.1 px, in windows of up to 10 px that reach the markers' corners.
        """
        ends = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 40, 0.001)
        fine = pixels.copy()
        windows = np.clip(self._free_px(ids, pixels) - 1.5, 2, WIDEST_WINDOW_PX * shrink).astype(int)
        for window in np.unique(windows):
            mine = windows == window
            start = np.ascontiguousarray(pixels[mine].reshape(-1, 1, 2), np.float32)
            placed = cv2.cornerSubPix(grey, start, (int(window), int(window)), (-1, -1), ends)
            fine[mine] = placed.reshape(-1, 2)
        kept = np.linalg.norm(fine - pixels, axis=1) < 1.5 * shrink
        return ids[kept], fine[kept]

    def _free_px(self, ids: npt.NDArray[np.intp], pixels: Floats) -> Floats:
        """Return how near (n,) the corner of a marker comes to each corner, the larger of across and down, pixels."""
        flat = self.board.corners_m[ids, :2]
        onto = cv2.findHomography(flat, pixels)[0]
        if onto is None:
            return np.zeros(len(ids))
        rim = (self.board.square_m - self.board.marker_m) / 2
        around = flat[:, None] + rim * np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)])
        there = cv2.perspectiveTransform(around.reshape(-1, 1, 2), onto).reshape(-1, 4, 2)
        here = cv2.perspectiveTransform(flat[:, None], onto)
        nearest: Floats = np.abs(there - here).max(2).min(1)
        return nearest

    def why_not(self, grey: UInt8) -> str:
        """Describe in words why no board was found: mirrored, another board, or nothing there."""
        upright = self._marker_ids(grey)
        mirrored = self._marker_ids(np.ascontiguousarray(grey[:, ::-1]))
        if len(mirrored) >= 4 and len(mirrored) > 2 * len(upright):
            return "the board is mirrored: switch the camera's or the player's mirror mode off"
        known = self.board.columns * self.board.rows // 2
        strange = [marker for marker in upright if marker >= known]
        if len(upright) >= 4 and (strange or not self._fits(grey)):
            return (
                f"its markers do not lie as on a board of {self.board.columns} x {self.board.rows} squares: "
                "give the board that was filmed with --board"
            )
        for other in DICTIONARIES:
            words = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, other))
            ids = cv2.aruco.ArucoDetector(words).detectMarkers(grey)[1]
            if other != self.board.dictionary and ids is not None and len(ids) >= 6:
                return (
                    f"its markers are of {other}, not of {self.board.dictionary}: give the board with --board"
                )
        if blur_px(grey) > WIDEST_BLUR_PX:
            return "the picture is blurred: hold the board still, in focus and in good light"
        return "no board is to be seen, or it is too far away to read its markers"

    def _marker_ids(self, grey: UInt8) -> list[int]:
        ids = self._markers.detectMarkers(grey)[1]
        return [] if ids is None else [int(marker) for marker in ids.ravel()]

    def _fits(self, grey: UInt8) -> bool:
        found = self.find(grey, "")
        return found is not None and len(found.ids) >= 6


def blur_px(grey: UInt8) -> float:
    """Estimate how blurred a picture (height, width) is, by its steepest edges: the spread of a Gaussian, pixels.

    A step blurred by s has the largest slope h / (s sqrt(2 pi)) and curvature h / (s^2 sqrt(2 pi e)); the ratio is
    s sqrt(e). A Gaussian of 1.5 px against noise is part of the result.
    """
    smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), 1.5)
    slope = np.hypot(cv2.Scharr(smooth, -1, 1, 0), cv2.Scharr(smooth, -1, 0, 1)) / 32
    curvature = np.maximum(np.abs(cv2.Laplacian(smooth, -1, ksize=1)), 1e-6)
    return float(np.percentile(slope, 99.8) / np.percentile(curvature, 99.8) / np.sqrt(np.e))


def edge_width_px(grey: UInt8, board: Board, ids: npt.NDArray[np.intp], pixels: Floats) -> float:
    """Measure how wide the edges between neighbouring corners are: the spread of a Gaussian-blurred step, pixels.

    Across the middle of the edge between two neighbours the brightness steps; its largest slope s and its height h
    give
    the standard deviation h / (s sqrt(2 pi)). Only the white rim around a marker is used, so that a board far away
    (a rim of few pixels) cannot look wider than about that rim.
    """
    place = dict(zip(ids.tolist(), pixels, strict=True))
    rim = 0.45 * (1 - board.marker_m / board.square_m)
    widths = []
    for corner, at in place.items():
        if (corner + 1) % (board.columns - 1) and corner + 1 in place:
            widths.append(_edge_width(grey, at, place[corner + 1], rim))
        if corner + board.columns - 1 in place:
            widths.append(_edge_width(grey, at, place[corner + board.columns - 1], rim))
    known = np.array([width for width in widths if np.isfinite(width)])
    return float(np.median(known)) if len(known) else float("nan")


def _edge_width(grey: UInt8, start: Floats, end: Floats, rim: float) -> float:
    length = float(np.linalg.norm(end - start))
    reach = min(length * rim, 12.0)
    if length < 8:
        return float("nan")
    across = np.array([start[1] - end[1], end[0] - start[0]]) / length
    steps = max(3, int(np.ceil(reach * 2)))
    offsets = np.arange(-steps, steps + 1) * (reach / steps)
    along = np.linspace(0.3, 0.7, 9)
    points = start + along[:, None, None] * (end - start) + offsets[None, :, None] * across
    columns, rows = points[..., 0].astype(np.float32), points[..., 1].astype(np.float32)
    profile = cv2.remap(grey, columns, rows, cv2.INTER_LINEAR).astype(np.float64).mean(0)
    height = abs(float(profile[-2:].mean() - profile[:2].mean()))
    slope = float(np.abs(np.diff(profile)).max() / (offsets[1] - offsets[0]))
    return height / (slope * np.sqrt(2 * np.pi)) if height > 15 and slope > 0 else float("nan")
