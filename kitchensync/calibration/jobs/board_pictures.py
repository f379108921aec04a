"""Pictures for people: where the corners lay, how far off they are, and how well the lens is known where."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.calibration.estimate.board import BoardSeen
from kitchensync.calibration.estimate.intrinsics import Intrinsics
from kitchensync.calibration.estimate.joint_cameras import RigPose
from kitchensync.shell.array_types import Floats, UInt8

_WIDTH = 960
_INK, _MUTED, _PAPER, _MARK = (40, 40, 40), (150, 150, 150), (255, 255, 255), (40, 90, 200)
_FONT = cv2.FONT_HERSHEY_SIMPLEX
ARROWS = 100.0
"Residuals are drawn this many times their length."


def coverage_picture(found: Intrinsics, views: Sequence[BoardSeen]) -> UInt8:
    """Draw corners with their residuals (left), and one standard deviation of the lens over the picture (right)."""
    by_name = {view.name: view for view in views}
    corners = [(by_name[name].pixels, off) for name, off in zip(found.used, found.residuals, strict=True)]
    left = _reprojections((found.lens.width, found.lens.height), corners)
    words = f"{len(found.used)} views, {found.rms_px:.2f} px left, {found.held_out_px:.2f} unseen"
    right = _sigma_map(found, left.shape[0])
    largest = float(np.nanmax(found.picture_sigma_px))
    doubt = f"One sigma of the lens: {np.nanmedian(found.picture_sigma_px):.2f} px, at most {largest:.2f} px"
    return np.hstack([_titled(left, f"Residuals x {ARROWS:.0f}: {words}"), _titled(right, doubt)])


def mount_picture(found: RigPose) -> UInt8:
    """Draw the corners of all instants with their residuals: front camera left, the camera in question right."""
    panels = []
    for side, name in ((0, "Front camera"), (1, "Camera")):
        seen = [(pair.in_a, pair.in_b)[side] for pair in found.pairs]
        corners = [(view.pixels, off[side]) for view, off in zip(seen, found.left, strict=True)]
        words = f"{name}, residuals x {ARROWS:.0f}: {len(seen)} instants, {found.rms_px[side]:.2f} px left"
        panels.append(_titled(_reprojections(seen[0].size, corners), words))
    height = max(panel.shape[0] for panel in panels)
    return np.hstack(
        [
            cv2.copyMakeBorder(panel, 0, height - panel.shape[0], 0, 0, cv2.BORDER_CONSTANT, value=_PAPER)
            for panel in panels
        ]
    )


def _reprojections(size: tuple[int, int], corners: Sequence[tuple[Floats, Floats]]) -> UInt8:
    """Draw corners (n, 2) on an 8 x 6 grid over a picture of a size, each with its residual (n, 2), enlarged."""
    scale = _WIDTH / size[0]
    height = round(size[1] * scale)
    drawn = np.full((height, _WIDTH, 3), 255, np.uint8)
    for column in range(1, 8):
        cv2.line(drawn, (column * _WIDTH // 8, 0), (column * _WIDTH // 8, height), (232, 232, 232), 1)
    for row in range(1, 6):
        cv2.line(drawn, (0, row * height // 6), (_WIDTH, row * height // 6), (232, 232, 232), 1)
    for pixels, residuals in corners:
        for at, off in zip(pixels * scale, residuals * scale * ARROWS, strict=True):
            start, end = (tuple(np.rint(point).astype(int).tolist()) for point in (at, at + off))
            cv2.circle(drawn, start, 3, _MUTED, -1, cv2.LINE_AA)
            cv2.line(drawn, start, end, _MARK, 2, cv2.LINE_AA)
    return drawn


def _sigma_map(found: Intrinsics, height: int) -> UInt8:
    grid = found.picture_sigma_px
    largest = max(0.5, float(np.nanmax(grid)))
    grey = np.where(np.isfinite(grid), 255 - 200 * np.nan_to_num(grid) / largest, 0).astype(np.float32)
    smooth = cv2.resize(grey, (_WIDTH, height), interpolation=cv2.INTER_LINEAR)
    picture = cv2.applyColorMap(np.asarray(255 - smooth, np.uint8), cv2.COLORMAP_VIRIDIS)
    rows, columns = grid.shape
    for row in range(0, rows, 2):
        for column in range(1, columns, 3):
            value = grid[row, column]
            words = f"{value:.2f}" if np.isfinite(value) else "none"
            at = (int((column + 0.1) * _WIDTH / columns), int((row + 0.6) * height / rows))
            cv2.putText(picture, words, at, _FONT, 0.8, _PAPER, 2, cv2.LINE_AA)
    return np.asarray(picture, np.uint8)


def _titled(picture: UInt8, words: str) -> UInt8:
    lines = textwrap.wrap(words, 58)
    bar = np.full((12 + 40 * len(lines), picture.shape[1], 3), 255, np.uint8)
    for number, line in enumerate(lines):
        cv2.putText(bar, line, (8, 36 + 40 * number), _FONT, 0.85, _INK, 2, cv2.LINE_AA)
    return np.vstack([bar, picture])


def example_picture(grey: npt.NDArray[np.uint8], words: str, seen: BoardSeen | None) -> UInt8:
    """Draw a picture that was refused, the corners found in it, and why."""
    scale = _WIDTH / grey.shape[1]
    small = cv2.resize(grey, (_WIDTH, round(grey.shape[0] * scale)), interpolation=cv2.INTER_AREA)
    picture = np.asarray(cv2.cvtColor(small, cv2.COLOR_GRAY2BGR), np.uint8)
    if seen is not None:
        for at in (seen.pixels + 0.5) * scale - 0.5:
            cv2.circle(picture, tuple(np.rint(at).astype(int).tolist()), 4, (0, 200, 255), 1, cv2.LINE_AA)
    return _titled(picture, words)


def write_png(path: Path, picture: UInt8) -> None:
    """Write a picture (height, width, 3) uint8 BGR."""
    path.write_bytes(cv2.imencode(".png", picture)[1].tobytes())
