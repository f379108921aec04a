"""The ChArUco board and the detection of its corners.

Board frame: x right and y down from the outer corner of the first square, z into the print, metres.
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
"""Layouts of OpenCV since 4.6 and before; with an even number of rows they have markers in opposite squares."""
MIN_MARKERS_FOR_LAYOUT = 4  # fewer fit several layouts
MAX_LAYOUT_ERROR, MIN_ERROR_RATIO = 0.4, 2.5
"""Largest deviation of the markers from a plane in the right layout, in sides of a marker (lens distortion included),
and the factor by which it must be larger in the other layout."""
MAX_SEARCH_WIDTH_PX = 1920
"Width to which frames are reduced for the search of markers; corners are refined at full size."
MAX_BLUR_PX = 2.3  # includes the 1.5 px of the Gaussian in `blur_px`
MAX_WINDOW_PX = 5
"""Half side of the window in which a corner is refined, at the size of the search; in a larger one the curved edges
of a fisheye image shift the corner."""
_FORM = re.compile(r"(\d{1,3})x(\d{1,3}):(\d{1,5}(?:\.\d{1,9})?)mm/(\d{1,5}(?:\.\d{1,9})?)mm(?::(\w+))?")


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
    def from_text(cls, text: str) -> Board:
        """Parse `11x8:24mm/18mm` or `11x8:24mm/18mm:DICT_4X4_250`. Raises Refused."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise Refused(
                f"board {text!r} is not of the form 11x8:24mm/18mm (squares across x down, square/marker)"
            )
        columns, rows, square, marker, dictionary = match.groups()
        size = float(square) / 1e3, float(marker) / 1e3
        return cls(int(columns), int(rows), *size, dictionary or cls.dictionary)

    def text(self) -> str:
        """Return the board in the form of `from_text`."""
        return f"{self.columns}x{self.rows}:{self.square_m * 1e3:g}mm/{self.marker_m * 1e3:g}mm:{self.dictionary}"

    @cached_property
    def opencv(self) -> Any:
        """The board as `cv2.aruco.CharucoBoard`, in the layout of our prints."""
        return self.in_layout(NEW)

    def in_layout(self, layout: str) -> Any:
        """Return the board with the markers of a layout; the inner corners are the same in both."""
        size = (self.columns, self.rows)
        board = cv2.aruco.CharucoBoard(size, self.square_m, self.marker_m, self.markers)
        board.setLegacyPattern(layout == OLD)
        return board

    @property
    def layouts(self) -> tuple[str, ...]:
        """The possible layouts of a print; with an odd number of rows they are the same."""
        return (NEW, OLD) if self.rows % 2 == 0 else (NEW,)

    @cached_property
    def markers(self) -> Any:
        """Its marker dictionary."""
        return cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, self.dictionary))

    @cached_property
    def corners_m(self) -> Floats:
        """Inner corners (n, 3), row by row; the index is a corner's id."""
        return np.asarray(self.opencv.getChessboardCorners(), np.float64)


@dataclass(frozen=True)
class BoardDetection:
    """Detected corners of the board in one frame."""

    name: str
    "Name of the frame for people: a file or a time."
    ids: npt.NDArray[np.intp]
    "(n,) ascending, each once."
    pixels: Floats
    "(n, 2)"
    size: tuple[int, int]
    "Width and height of the frame."
    edge_px: float = 0.0
    "Median width of the edges of its squares, which is large in a blurred frame."


COLLINEAR = "its corners lie on one line"


def is_collinear(view: BoardDetection, board: Board) -> bool:
    """Return whether all detected corners are on one line, which does not determine a pose."""
    flat = board.corners_m[view.ids, :2]
    return bool(np.linalg.matrix_rank(flat - flat.mean(0), tol=board.square_m / 2) < 2)


class Detector:
    """Detects one board in frames."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.layout = board.layouts[0] if len(board.layouts) == 1 else ""
        """The layout of the print, "" until a frame has shown it."""
        self._charuco = {
            layout: cv2.aruco.CharucoDetector(board.in_layout(layout)) for layout in board.layouts
        }
        self._markers = cv2.aruco.ArucoDetector(board.markers)

    def find(self, grey: UInt8, name: str) -> BoardDetection | None:
        """Return the board's corners in a frame (height, width) uint8, None if fewer than four are detected."""
        shrink = max(1, -(-grey.shape[1] // MAX_SEARCH_WIDTH_PX))
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
        corner_ids = ids.ravel()[order].astype(np.intp)
        # The centre of the first pixel is 0, so the edge of the frame is at -0.5 in every size.
        corner_ids, pixels = self._refined(grey, corner_ids, (pixels + 0.5) * shrink - 0.5, shrink)
        if len(corner_ids) < 4:
            return None
        full = (grey.shape[1], grey.shape[0])
        edge_px = edge_width_px(grey, self.board, corner_ids, pixels)
        return BoardDetection(name, corner_ids, pixels, full, edge_px)

    def _layout_in(self, grey: Any) -> str:
        """Return the layout in which the markers are on a plane, "" if that is not clear."""
        corners, ids, _ = self._markers.detectMarkers(grey)
        markers = self.board.columns * self.board.rows // 2
        if ids is None or len(ids) < MIN_MARKERS_FOR_LAYOUT or int(ids.max()) >= markers:
            return ""
        sides = [np.linalg.norm(np.diff(marker[0], axis=0), axis=1).mean() for marker in corners]
        side_px = float(np.median(sides))
        errors = {
            layout: self._plane_error_px(layout, corners, ids) / side_px for layout in self.board.layouts
        }
        best, other = sorted(errors, key=lambda layout: errors[layout])
        is_clear = errors[best] < MAX_LAYOUT_ERROR and errors[other] > MIN_ERROR_RATIO * errors[best]
        return best if is_clear else ""

    def _plane_error_px(self, layout: str, corners: Any, ids: Any) -> float:
        """Return the deviation (RMS) of a layout's markers from the perspective image of a plane."""
        printed = np.asarray(self.board.in_layout(layout).getObjPoints(), np.float64)[ids.ravel(), :, :2]
        flat, pixels = printed.reshape(-1, 1, 2), np.asarray(corners, np.float64).reshape(-1, 1, 2)
        homography = cv2.findHomography(flat, pixels)[0]
        if homography is None:
            return float("inf")
        projected = cv2.perspectiveTransform(flat, homography)
        return float(np.sqrt(np.mean(np.sum((projected - pixels) ** 2, axis=2))))

    def _refined(
        self, grey: UInt8, ids: npt.NDArray[np.intp], pixels: Floats, shrink: int
    ) -> tuple[npt.NDArray[np.intp], Floats]:
        """Refine corners in the full frame; corners that move too far are dropped."""
        # OpenCV's board detector stops at 0.1 px, and its windows of up to 10 px include corners of markers.
        ends = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 40, 0.001)
        fine = pixels.copy()
        windows = np.clip(self._marker_distance_px(ids, pixels) - 1.5, 2, MAX_WINDOW_PX * shrink).astype(int)
        for window in np.unique(windows):
            rows = windows == window
            start = np.ascontiguousarray(pixels[rows].reshape(-1, 1, 2), np.float32)
            refined = cv2.cornerSubPix(grey, start, (int(window), int(window)), (-1, -1), ends)
            fine[rows] = refined.reshape(-1, 2)
        kept = np.linalg.norm(fine - pixels, axis=1) < 1.5 * shrink
        return ids[kept], fine[kept]

    def _marker_distance_px(self, ids: npt.NDArray[np.intp], pixels: Floats) -> Floats:
        """Return the distance (n,) in pixels from each corner to the nearest marker, the larger of x and y."""
        flat = self.board.corners_m[ids, :2]
        homography = cv2.findHomography(flat, pixels)[0]
        if homography is None:
            return np.zeros(len(ids))
        rim = (self.board.square_m - self.board.marker_m) / 2
        around = flat[:, None] + rim * np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)])
        markers = cv2.perspectiveTransform(around.reshape(-1, 1, 2), homography).reshape(-1, 4, 2)
        corners = cv2.perspectiveTransform(flat[:, None], homography)
        nearest: Floats = np.abs(markers - corners).max(2).min(1)
        return nearest

    def explain_missing(self, grey: UInt8) -> str:
        """Return a message why no board was detected: mirrored, another board, blurred, or none in view."""
        upright = self._marker_ids(grey)
        mirrored = self._marker_ids(np.ascontiguousarray(grey[:, ::-1]))
        if len(mirrored) >= 4 and len(mirrored) > 2 * len(upright):
            return "the board is mirrored: switch the camera's or the player's mirror mode off"
        markers = self.board.columns * self.board.rows // 2
        has_other_markers = any(marker >= markers for marker in upright)
        if len(upright) >= 4:
            view = None if has_other_markers else self.find(grey, "")
            if view is None or len(view.ids) < 6:
                return (
                    f"its markers do not lie as on a board of {self.board.columns} x {self.board.rows} squares: "
                    "give the board that was filmed with --board"
                )
        for other in DICTIONARIES:
            dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, other))
            ids = cv2.aruco.ArucoDetector(dictionary).detectMarkers(grey)[1]
            if other != self.board.dictionary and ids is not None and len(ids) >= 6:
                return (
                    f"its markers are of {other}, not of {self.board.dictionary}: give the board with --board"
                )
        if blur_px(grey) > MAX_BLUR_PX:
            return "the picture is blurred: hold the board still, in focus and in good light"
        return "no board is to be seen, or it is too far away to read its markers"

    def _marker_ids(self, grey: UInt8) -> list[int]:
        ids = self._markers.detectMarkers(grey)[1]
        return [] if ids is None else [int(marker) for marker in ids.ravel()]


def blur_px(grey: UInt8) -> float:
    """Estimate the blur of a frame (height, width) from its steepest edges, as the sigma of a Gaussian in pixels.

    A step of height h blurred by s has the largest slope h / (s sqrt(2 pi)) and curvature h / (s^2 sqrt(2 pi e)),
    whose ratio is s sqrt(e). The result includes a Gaussian of 1.5 px that reduces noise.
    """
    smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), 1.5)
    slope = np.hypot(cv2.Scharr(smooth, -1, 1, 0), cv2.Scharr(smooth, -1, 0, 1)) / 32
    curvature = np.maximum(np.abs(cv2.Laplacian(smooth, -1, ksize=1)), 1e-6)
    return float(np.percentile(slope, 99.8) / np.percentile(curvature, 99.8) / np.sqrt(np.e))


def edge_width_px(grey: UInt8, board: Board, ids: npt.NDArray[np.intp], pixels: Floats) -> float:
    """Return the median width of the edges between neighbouring corners, as the sigma of a blurred step in pixels.

    A step with height h and largest slope s has the sigma h / (s sqrt(2 pi)). The profile stays within the white rim
    around a marker, so a distant board with a narrow rim cannot appear wider than about that rim.
    """
    corners = dict(zip(ids.tolist(), pixels, strict=True))
    rim = 0.45 * (1 - board.marker_m / board.square_m)
    widths = []
    for corner, at in corners.items():
        if (corner + 1) % (board.columns - 1) and corner + 1 in corners:
            widths.append(_edge_width(grey, at, corners[corner + 1], rim))
        if corner + board.columns - 1 in corners:
            widths.append(_edge_width(grey, at, corners[corner + board.columns - 1], rim))
    finite = np.array([width for width in widths if np.isfinite(width)])
    return float(np.median(finite)) if len(finite) else float("nan")


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
