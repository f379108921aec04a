"""Pictures of a calibration for people: corners with residuals, and the uncertainty over the frame."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.calibration.estimate.board import BoardDetection
from kitchensync.calibration.estimate.intrinsics import Intrinsics
from kitchensync.calibration.estimate.joint_cameras import RigPose
from kitchensync.shell.array_types import Floats, UInt8

_WIDTH = 960
_INK, _MUTED, _PAPER, _MARK = (40, 40, 40), (150, 150, 150), (255, 255, 255), (40, 90, 200)
_FONT = cv2.FONT_HERSHEY_SIMPLEX
ARROWS = 100.0
"Factor by which residuals are enlarged."


def coverage_picture(intrinsics: Intrinsics, views: Sequence[BoardDetection]) -> UInt8:
    """Draw the corners with their residuals (left) and the sigma of the lens over the frame (right)."""
    by_name = {view.name: view for view in views}
    corners = [
        (by_name[name].pixels, residuals)
        for name, residuals in zip(intrinsics.used, intrinsics.residuals, strict=True)
    ]
    left = _reprojections((intrinsics.lens.width, intrinsics.lens.height), corners)
    text = (
        f"{len(intrinsics.used)} views, {intrinsics.rms_px:.2f} px RMS, {intrinsics.held_out_px:.2f} held out"
    )
    sigma_px = intrinsics.picture_sigma_px
    right = _sigma_map(sigma_px, left.shape[0])
    sigma = f"Sigma of the lens: {np.nanmedian(sigma_px):.2f} px, at most {float(np.nanmax(sigma_px)):.2f} px"
    return np.hstack([_titled(left, f"Residuals x {ARROWS:.0f}: {text}"), _titled(right, sigma)])


def mount_picture(pose: RigPose) -> UInt8:
    """Draw the corners of all instants with their residuals: front camera left, the other camera right."""
    panels = []
    for side, name in ((0, "Front camera"), (1, "Camera")):
        views = [(pair.in_a, pair.in_b)[side] for pair in pose.pairs]
        corners = [
            (view.pixels, residuals[side]) for view, residuals in zip(views, pose.residuals, strict=True)
        ]
        text = f"{name}, residuals x {ARROWS:.0f}: {len(views)} instants, {pose.rms_px[side]:.2f} px RMS"
        panels.append(_titled(_reprojections(views[0].size, corners), text))
    height = max(panel.shape[0] for panel in panels)
    return np.hstack(
        [
            cv2.copyMakeBorder(panel, 0, height - panel.shape[0], 0, 0, cv2.BORDER_CONSTANT, value=_PAPER)
            for panel in panels
        ]
    )


def _reprojections(size: tuple[int, int], corners: Sequence[tuple[Floats, Floats]]) -> UInt8:
    """Draw corners (n, 2) with their enlarged residuals (n, 2) on an 8 x 6 grid over a frame of a size."""
    scale = _WIDTH / size[0]
    height = round(size[1] * scale)
    drawn = np.full((height, _WIDTH, 3), 255, np.uint8)
    for column in range(1, 8):
        cv2.line(drawn, (column * _WIDTH // 8, 0), (column * _WIDTH // 8, height), (232, 232, 232), 1)
    for row in range(1, 6):
        cv2.line(drawn, (0, row * height // 6), (_WIDTH, row * height // 6), (232, 232, 232), 1)
    for pixels, residuals in corners:
        for at, arrow in zip(pixels * scale, residuals * scale * ARROWS, strict=True):
            start, end = (tuple(np.rint(point).astype(int).tolist()) for point in (at, at + arrow))
            cv2.circle(drawn, start, 3, _MUTED, -1, cv2.LINE_AA)
            cv2.line(drawn, start, end, _MARK, 2, cv2.LINE_AA)
    return drawn


def _sigma_map(grid: Floats, height: int) -> UInt8:
    largest = max(0.5, float(np.nanmax(grid)))
    grey = np.where(np.isfinite(grid), 255 - 200 * np.nan_to_num(grid) / largest, 0).astype(np.float32)
    smooth = cv2.resize(grey, (_WIDTH, height), interpolation=cv2.INTER_LINEAR)
    picture = cv2.applyColorMap(np.asarray(255 - smooth, np.uint8), cv2.COLORMAP_VIRIDIS)
    rows, columns = grid.shape
    for row in range(0, rows, 2):
        for column in range(1, columns, 3):
            value = grid[row, column]
            text = f"{value:.2f}" if np.isfinite(value) else "none"
            at = (int((column + 0.1) * _WIDTH / columns), int((row + 0.6) * height / rows))
            cv2.putText(picture, text, at, _FONT, 0.8, _PAPER, 2, cv2.LINE_AA)
    return np.asarray(picture, np.uint8)


def _titled(picture: UInt8, title: str) -> UInt8:
    lines = textwrap.wrap(title, 58)
    bar = np.full((12 + 40 * len(lines), picture.shape[1], 3), 255, np.uint8)
    for number, line in enumerate(lines):
        cv2.putText(bar, line, (8, 36 + 40 * number), _FONT, 0.85, _INK, 2, cv2.LINE_AA)
    return np.vstack([bar, picture])


def example_picture(grey: npt.NDArray[np.uint8], reason: str, view: BoardDetection | None) -> UInt8:
    """Draw a refused frame with the reason and the detected corners."""
    scale = _WIDTH / grey.shape[1]
    small = cv2.resize(grey, (_WIDTH, round(grey.shape[0] * scale)), interpolation=cv2.INTER_AREA)
    picture = np.asarray(cv2.cvtColor(small, cv2.COLOR_GRAY2BGR), np.uint8)
    if view is not None:
        for at in (view.pixels + 0.5) * scale - 0.5:
            cv2.circle(picture, tuple(np.rint(at).astype(int).tolist()), 4, (0, 200, 255), 1, cv2.LINE_AA)
    return _titled(picture, reason)


def write_png(path: Path, picture: UInt8) -> None:
    """Write a picture (height, width, 3) uint8 BGR."""
    path.write_bytes(cv2.imencode(".png", picture)[1].tobytes())
