"""How good a lens is known: where corners lay, what is left open, and what a ray is worth where in the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from kitchensync.calibration.estimate.board import BoardSeen
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.camera_models import Lens
from kitchensync.storage.geometry.errors import Refused

FEWEST_CELLS = 0.45
"The part of an 8 x 6 grid over the picture that corners must lie in."
LEAST_TILT_DEG = 10.0
"A fifth of the views must be slanted by this."
DETECTOR_PX = 0.01
"""One standard deviation of an error of the corner detector that is alike in all views, at the left and right edge of
a picture of 1920 columns, in proportion elsewhere: what rendered boards leave on the mean (decision 0015)."""


def check_spread(views: Sequence[BoardSeen], poses: Floats, size: tuple[int, int]) -> None:
    """Refuse views that leave the lens open: all from one side, or all in one part of the picture."""
    tilt = np.degrees(np.arccos(np.clip(np.abs(poses[:, 2, 2]), 0, 1)))
    if np.percentile(tilt, 80) < LEAST_TILT_DEG:
        raise Refused(
            f"the board was never tilted (at most {tilt.max():.0f} degrees): focal length and distance cannot be "
            "told apart; film it slanted by 20 to 45 degrees",
            views[int(np.argmin(tilt))].name,
        )
    covered = coverage(views, size)
    if covered < FEWEST_CELLS:
        raise Refused(
            f"corners lie in {covered:.0%} of the picture, {FEWEST_CELLS:.0%} are needed: bring the board everywhere",
            views[0].name,
        )


def cells(views: Sequence[BoardSeen], size: tuple[int, int]) -> npt.NDArray[np.intp]:
    """Count the corners in each cell (6, 8) of a grid over the picture."""
    pixels = np.concatenate([view.pixels for view in views])
    edges = [np.linspace(-0.5, size[1] - 0.5, 7), np.linspace(-0.5, size[0] - 0.5, 9)]
    return np.histogram2d(pixels[:, 1], pixels[:, 0], bins=edges)[0].astype(np.intp)


def coverage(views: Sequence[BoardSeen], size: tuple[int, int]) -> float:
    """Return the part of the picture's 8 x 6 cells that hold a corner."""
    return float(np.mean(cells(views, size) > 0))


def steps_of(lens: Lens) -> Floats:
    """Return the size of a change of each parameter that moves a picture by about a pixel."""
    pixel = 1.0 / lens.parameters[0] if lens.parameters[0] > 10 else 1e-3
    return np.where(np.arange(len(lens.names)) < 4, 1.0, pixel)


def farther_out(lens: Lens) -> Floats:
    """Return the change (p,) of a lens's parameters when all corners lie a `DETECTOR_PX` too far from its middle.

    Places that are stretched about the middle of the picture are those of longer focal lengths, and of nothing else.
    """
    change = np.zeros(len(lens.names))
    change[:2] = lens.parameters[:2] * DETECTOR_PX / (1920 / 2)
    return change


def picture_sigma(lens: Lens, doubt: Callable[[Floats], Floats], rows: int = 9, columns: int = 16) -> Floats:
    """Propagate the doubt to where fixed rays land: one sigma in pixels over a grid (rows, columns).

    `doubt` gives one standard deviation (c,) of contrasts (c, p) of the lens's parameters. A turn of the camera is no
    error of the lens (it goes into the pose), so the best turn is taken out of each change.
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
    for i, step in enumerate(steps_of(lens) * 1e-4):
        change = np.zeros(len(lens.names))
        change[i] = step
        by[:, i] = ((lens.changed(lens.parameters + change).project(rays[ok]) - here) / step).ravel()
    by -= turns @ np.linalg.lstsq(turns, by, rcond=None)[0]
    grid = np.full(rows * columns, np.nan)
    grid[ok] = np.linalg.norm(doubt(by).reshape(-1, 2), axis=1)
    return grid.reshape(rows, columns)
