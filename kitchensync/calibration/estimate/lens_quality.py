"""Quality of a lens calibration: coverage of the frame, tilt of the views, and uncertainty over the frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kitchensync.calibration.estimate.board import BoardDetection
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.camera_models import Lens
from kitchensync.storage.geometry.errors import Refused

MIN_COVERAGE = 0.45
"Share of the cells of an 8 x 6 grid over the frame that must contain a corner."
MIN_TILT_DEG = 10.0
"Tilt that a fifth of the views must have."
DETECTOR_PX = 0.01
"""Sigma of the corner detector's error common to all views, at the left and right edge of a frame of 1920 columns and
proportional to the distance from the centre; measured on rendered boards (decision 0015)."""


def check_spread(views: Sequence[BoardDetection], poses: Floats, size: tuple[int, int]) -> None:
    """Check that tilt and coverage of the views determine the lens. Raises Refused."""
    tilt = np.degrees(np.arccos(np.clip(np.abs(poses[:, 2, 2]), 0, 1)))
    if np.percentile(tilt, 80) < MIN_TILT_DEG:
        raise Refused(
            f"the board was never tilted (at most {tilt.max():.0f} degrees): focal length and distance cannot be "
            "told apart; film it slanted by 20 to 45 degrees",
            views[int(np.argmin(tilt))].name,
        )
    covered = coverage(views, size)
    if covered < MIN_COVERAGE:
        raise Refused(
            f"corners lie in {covered:.0%} of the picture, {MIN_COVERAGE:.0%} are needed: bring the board everywhere",
            views[0].name,
        )


def coverage(views: Sequence[BoardDetection], size: tuple[int, int]) -> float:
    """Return the share of the frame's 8 x 6 cells that contain a corner."""
    pixels = np.concatenate([view.pixels for view in views])
    edges = [np.linspace(-0.5, size[1] - 0.5, 7), np.linspace(-0.5, size[0] - 0.5, 9)]
    return float(np.mean(np.histogram2d(pixels[:, 1], pixels[:, 0], bins=edges)[0] > 0))


def parameter_steps(lens: Lens) -> Floats:
    """Return the change of each parameter that moves pixels by about one."""
    pixel = 1.0 / lens.parameters[0] if lens.parameters[0] > 10 else 1e-3
    return np.where(np.arange(len(lens.names)) < 4, 1.0, pixel)


def detector_error(lens: Lens) -> Floats:
    """Return the change (p,) of a lens's parameters by the detector's common error of `DETECTOR_PX`.

    An image stretched about its centre is that of longer focal lengths; the other parameters do not change.
    """
    change = np.zeros(len(lens.names))
    change[:2] = lens.parameters[:2] * DETECTOR_PX / (1920 / 2)
    return change


def picture_sigma(lens: Lens, sigma: Callable[[Floats], Floats], rows: int = 9, columns: int = 16) -> Floats:
    """Return the sigma in pixels of the projection of fixed rays, over a grid (rows, columns).

    `sigma` returns standard deviations (c,) of contrasts (c, p) of the lens's parameters. A rotation of the camera is
    part of the pose and no error of the lens, so the best-fitting rotation is subtracted from each change.
    """
    u, v = np.meshgrid(np.linspace(0, lens.width - 1, columns), np.linspace(0, lens.height - 1, rows))
    rays = lens.rays(np.column_stack((u.ravel(), v.ravel())))
    ok = np.isfinite(rays[:, 0])
    here = lens.project(rays[ok])
    turns = np.stack(
        [
            (lens.project(rays[ok] + 1e-6 * np.cross(axis, rays[ok])) - here).ravel() / 1e-6
            for axis in np.eye(3)
        ],
        1,
    )
    by = np.empty((turns.shape[0], len(lens.names)))
    for i, step in enumerate(parameter_steps(lens) * 1e-4):
        change = np.zeros(len(lens.names))
        change[i] = step
        by[:, i] = ((lens.changed(lens.parameters + change).project(rays[ok]) - here) / step).ravel()
    by -= turns @ np.linalg.lstsq(turns, by, rcond=None)[0]
    grid = np.full(rows * columns, np.nan)
    grid[ok] = np.linalg.norm(sigma(by).reshape(-1, 2), axis=1)
    return grid.reshape(rows, columns)
