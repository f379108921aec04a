"""Intrinsic calibration: estimate a lens and its uncertainty from many views of a board.

The method is Zhang 2000 with the distortion of the lens model; the fit is `adjust`. The result is validated by
cross-validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from kitchensync.calibration.estimate.adjust import Adjusted, adjust
from kitchensync.calibration.estimate.board import COLLINEAR, Board, BoardDetection, is_collinear
from kitchensync.calibration.estimate.freedom import UncertaintyPart, stated_sigma
from kitchensync.calibration.estimate.lens_quality import (
    check_spread,
    coverage,
    detector_error,
    parameter_steps,
    picture_sigma,
)
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.camera_models import Fisheye, Lens, Pinhole
from kitchensync.storage.geometry.errors import Refused

LENSES: dict[str, type[Pinhole] | type[Fisheye]] = {"pinhole": Pinhole, "fisheye": Fisheye}
MIN_CORNERS, MIN_VIEWS = 12, 8
FOLDS = 5
GUESSES = (0.35, 0.45, 0.55, 0.7, 0.9, 1.2)
"Initial focal lengths in widths of the frame."
ROUNDS = 4
"Largest number of fits, each without the outliers of the previous one."
MAX_VIEW_RATIO = 3.0
"RMS of a view, in medians of all views, above which it is an outlier."
MAX_RMS_PX = 1.5
"At 1920 columns; proportional at other sizes."


@dataclass(frozen=True)
class Intrinsics:
    """A lens and its uncertainty."""

    lens: Pinhole | Fisheye
    sigma: Floats
    "(p,) of each parameter in its unit, widened by Student's quantile: two sigmas contain 95 %."
    freedom: Floats
    "(p,) degrees of freedom of the part from the jackknife."
    covariance: Floats
    "(p, p) as estimated, including the systematic part; not widened."
    rms_px: float
    "RMS of the used views."
    held_out_px: float
    "RMS of held-out views, by five-fold cross-validation."
    picture_sigma_px: Floats
    "(rows, columns) of a grid over the frame: widened sigma of the projection of a fixed ray."
    used: tuple[str, ...]
    left_out: dict[str, str]
    "Reasons by view."
    poses: Floats
    "(v, 4, 4) camera from board of the used views, metres."
    residuals: tuple[Floats, ...]
    "(n, 2) of each used view, pixels."
    covered: float
    "Share of the frame's 8 x 6 cells that contain a corner."
    systematic: Floats
    "(p, p) the part of `covariance` that is common to all views, which the jackknife cannot show."


def estimate(
    views: Sequence[BoardDetection],
    board: Board,
    kind: str,
    *,
    square_pixels: bool = False,
    robust: bool = True,
) -> Intrinsics:
    """Estimate a lens of a kind ("pinhole" or "fisheye") from views of a board.

    With `square_pixels` fx equals fy. Without `robust` all views and corners are used with equal weights, as in
    OpenCV's calibration.

    Raises Refused if there are too few views, frames of several sizes, views that are too similar, corners in too
    small a part of the frame, or if the residuals are too large.
    """
    size, good, left_out = _checked(views, board)
    fit = _Fit(board, square_pixels, robust)
    lens, poses = _initial_lens(
        fit, good, LENSES[kind](*size, 1.0, 1.0, (size[0] - 1) / 2, (size[1] - 1) / 2)
    )
    for attempt in range(ROUNDS):
        result = fit.run(lens, poses, good)
        lens = lens.changed(result.shared)
        # After the last fit no view is dropped: the result has to come from exactly the used views.
        bad = _outliers(result.residuals, good, lens.width) if robust and attempt + 1 < ROUNDS else {}
        if not bad:
            break
        for index in sorted(bad, reverse=True):
            left_out[good[index].name] = bad[index]
            del good[index]
        poses = np.delete(result.poses, sorted(bad), axis=0)
        if len(good) < MIN_VIEWS:
            raise Refused(_too_few(len(good), left_out), next(iter(left_out), None))
    check_spread(good, result.poses, size)
    residuals = tuple(np.split(result.residuals, np.cumsum([len(view.ids) for view in good])[:-1]))
    rms_px = float(np.sqrt(np.mean(np.sum(result.residuals**2, axis=1))))
    if rms_px > MAX_RMS_PX * size[0] / 1920:
        raise Refused(
            f"a {kind} lens leaves {rms_px:.2f} px: try the other model, or check that the board is flat and its "
            "squares have the given size"
        )
    systematic, each = np.outer(detector_error(lens), detector_error(lens)), np.eye(len(lens.names))

    def sigma(contrasts: Floats) -> Floats:
        freedom = result.information.freedom(contrasts)
        return stated_sigma(
            contrasts, [UncertaintyPart(result.covariance, freedom), UncertaintyPart(systematic, np.inf)]
        )

    return Intrinsics(
        lens, sigma(each), result.information.freedom(each), result.covariance + systematic, rms_px,
        _held_out(fit, lens, result.poses, good), picture_sigma(lens, sigma),
        tuple(view.name for view in good), left_out, result.poses, residuals, coverage(good, size), systematic,
    )  # fmt: skip


def estimate_best(views: Sequence[BoardDetection], board: Board) -> Intrinsics:
    """Estimate with both lens models and return the one that predicts held-out views better."""
    results, refusals = [], []
    for kind in LENSES:
        try:
            results.append(estimate(views, board, kind))
        except Refused as refusal:
            refusals.append(refusal)
    if not results:
        raise refusals[0]
    return min(results, key=lambda result: result.held_out_px)


def _checked(
    views: Sequence[BoardDetection], board: Board
) -> tuple[tuple[int, int], list[BoardDetection], dict[str, str]]:
    sizes = {view.size for view in views}
    if len(sizes) > 1:
        listed = ", ".join(f"{width} x {height}" for width, height in sorted(sizes))
        odd = min(views, key=lambda view: sum(other.size == view.size for other in views))
        raise Refused(f"pictures of several sizes ({listed}): calibrate each lens mode by itself", odd.name)
    good, left_out = [], {}
    for view in views:
        if len(view.ids) < MIN_CORNERS:
            left_out[view.name] = f"only {len(view.ids)} corners"
        elif is_collinear(view, board):
            left_out[view.name] = COLLINEAR
        else:
            good.append(view)
    if len(good) < MIN_VIEWS:
        raise Refused(_too_few(len(good), left_out), next(iter(left_out), None))
    return good[0].size, good, left_out


def _too_few(count: int, left_out: dict[str, str]) -> str:
    why = f" ({len(left_out)} left out: {', '.join(sorted(set(left_out.values())))})" if left_out else ""
    return (
        f"{count} usable views of the board, at least {MIN_VIEWS} are needed{why}: film it longer and nearer"
    )


@dataclass(frozen=True)
class _Fit:
    """Settings of a fit."""

    board: Board
    square_pixels: bool
    robust: bool

    def run(self, lens: Lens, poses: Floats, views: Sequence[BoardDetection]) -> Adjusted:
        """Fit the lens and the poses; `shared` and `covariance` of the result are those of the lens parameters."""
        points = np.concatenate([self.board.corners_m[view.ids] for view in views])
        pixels = np.concatenate([view.pixels for view in views])
        view_of = np.repeat(np.arange(len(views)), [len(view.ids) for view in views])
        spread = np.eye(len(lens.names))
        if self.square_pixels:
            spread = np.delete(spread, 1, axis=1)
            spread[1, 0] = 1.0  # fx and fy are the same free parameter

        def residuals(shared: Floats, at: Floats) -> Floats:
            in_camera = np.einsum("nij,nj->ni", at[view_of, :3, :3], points) + at[view_of, :3, 3]
            return pixels - lens.changed(spread @ shared).project(in_camera)

        free = np.linalg.pinv(spread) @ lens.parameters
        scale = np.abs(spread).T.clip(0, 1) @ parameter_steps(lens)
        adjusted = adjust(residuals, free, poses, view_of, scale, robust=self.robust)
        return replace(
            adjusted,
            shared=spread @ adjusted.shared,
            covariance=spread @ adjusted.covariance @ spread.T,
            information=replace(adjusted.information, basis=spread @ adjusted.information.basis),
        )


def _initial_lens(
    fit: _Fit, views: Sequence[BoardDetection], blank: Lens
) -> tuple[Pinhole | Fisheye, Floats]:
    """Fit few views from several focal lengths without distortion; return the best lens and its poses."""
    few = list(views[:: max(1, len(views) // 12)])
    best: tuple[float, Lens] | None = None
    for guess in GUESSES:
        parameters = blank.parameters
        parameters[:2] = guess * blank.width
        lens = blank.changed(parameters)
        result = fit.run(lens, board_poses(lens, few, fit.board), few)
        spread = float(np.median(np.sum(result.residuals**2, axis=1)))
        if best is None or spread < best[0]:
            best = spread, lens.changed(result.shared)
    assert best is not None
    return best[1], board_poses(best[1], views, fit.board)


def board_poses(lens: Lens, views: Sequence[BoardDetection], board: Board) -> Floats:
    """Return camera from board (v, 4, 4) of each view for a known lens, by PnP on the rays of its corners."""
    poses = np.tile(np.eye(4), (len(views), 1, 1))
    for index, view in enumerate(views):
        rays = lens.rays(view.pixels)
        # Rays at about 90 degrees and more from the axis have no point on the plane z = 1.
        ok = np.isfinite(rays[:, 0]) & (rays[:, 2] > 0.05)
        plane = rays[ok, :2] / rays[ok, 2:]
        points = board.corners_m[view.ids[ok]]
        if len(points) < 4:  # the initial lens is far off: use a pinhole
            plane = (view.pixels - [lens.width / 2, lens.height / 2]) / lens.width
            points = board.corners_m[view.ids]
        corners = plane.reshape(-1, 1, 2)
        turn, shift = cv2.solvePnP(points, corners, np.eye(3), None, flags=cv2.SOLVEPNP_IPPE)[1:]
        poses[index, :3, :3], poses[index, :3, 3] = cv2.Rodrigues(turn)[0], shift[:, 0]
    return poses


def _outliers(residuals: Floats, views: Sequence[BoardDetection], width: int) -> dict[int, str]:
    """Return the indices of views that fit far worse than the others, with the reasons."""
    counts = np.array([len(view.ids) for view in views])
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    each = np.sqrt(np.add.reduceat(np.sum(residuals**2, axis=1), starts) / counts)
    limit = max(MAX_VIEW_RATIO * float(np.median(each)), 0.3 * width / 1920)
    return {int(i): f"{each[i]:.1f} px off where {limit:.1f} are usual" for i in np.flatnonzero(each > limit)}


def _held_out(fit: _Fit, lens: Lens, poses: Floats, views: Sequence[BoardDetection]) -> float:
    """Return the RMS in pixels of held-out views with a lens from the other views; only their poses are fitted."""
    folds = min(FOLDS, len(views))
    squares, count = 0.0, 0
    for fold in range(folds):
        is_held = np.arange(len(views)) % folds == fold
        others = [view for view, held in zip(views, is_held, strict=True) if not held]
        fitted = lens.changed(fit.run(lens, poses[~is_held], others).shared)
        for index in np.flatnonzero(is_held).tolist():
            residuals = reprojection(fitted, poses[index], views[index], fit.board)
            squares, count = squares + float(np.sum(residuals**2)), count + len(residuals)
    return float(np.sqrt(squares / count))


def reprojection(lens: Lens, pose: Floats, view: BoardDetection, board: Board) -> Floats:
    """Return pixels observed less predicted (n, 2) of a view after fitting only its pose."""
    points = board.corners_m[view.ids]

    def residuals(_: Floats, at: Floats) -> Floats:
        return view.pixels - lens.project(points @ at[0, :3, :3].T + at[0, :3, 3])

    nothing = np.zeros(0)
    return adjust(residuals, nothing, pose[None], np.zeros(len(points), np.intp), nothing).residuals
