"""Intrinsic calibration: the lens from many views of a board, with its uncertainty, or a refusal with the reason.

The method is Zhang 2000 with the distortion of the model in question; the fit is `adjust`. What is claimed is
checked on views that the fit did not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from kitchensync.calibration.estimate.adjust import Adjusted, adjust
from kitchensync.calibration.estimate.board import IN_LINE, Board, BoardSeen, in_line
from kitchensync.calibration.estimate.freedom import UncertaintyPart, stated
from kitchensync.calibration.estimate.lens_quality import (
    check_spread,
    coverage,
    farther_out,
    picture_sigma,
    steps_of,
)
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.camera_models import Fisheye, Lens, Pinhole
from kitchensync.storage.geometry.errors import Refused

LENSES: dict[str, type[Pinhole] | type[Fisheye]] = {"pinhole": Pinhole, "fisheye": Fisheye}
FEWEST_CORNERS, FEWEST_VIEWS = 12, 8
FOLDS = 5
GUESSES = (0.35, 0.45, 0.55, 0.7, 0.9, 1.2)
"Focal lengths to start from, of the picture's width."
ROUNDS = 4
"So often at most a lens is fitted, with the views left out that fit far worse than the rest."
WORST_VIEW = 3.0
"A view this many times worse than the median is left out."
WORST_RMS_PX = 1.5
"At 1920 columns; in proportion at other sizes."


@dataclass(frozen=True)
class Intrinsics:
    """A lens and how well it is known."""

    lens: Pinhole | Fisheye
    sigma: Floats
    "(p,) of each parameter, in its unit: two of them hold 95 %, so they are widened by Student's quantile."
    freedom: Floats
    "(p,) degrees of freedom of the part that comes from leaving views out."
    covariance: Floats
    "(p, p) as estimated, the systematic part included; nothing is widened in it."
    rms_px: float
    "Of the views used."
    held_out_px: float
    "RMS of views that the fit did not see, by five-fold cross-validation."
    picture_sigma_px: Floats
    "(rows, columns) of a grid over the picture: one standard deviation of where a fixed ray lands, widened alike."
    used: tuple[str, ...]
    left_out: dict[str, str]
    "View -> why."
    poses: Floats
    "(v, 4, 4) camera from board of the views used, metres."
    residuals: tuple[Floats, ...]
    "(n, 2) of each view used, pixels."
    covered: float
    "Part of the picture's 8 x 6 cells that hold a corner."
    systematic: Floats
    "(p, p) the part of `covariance` that is alike in all views, and that leaving views out cannot see."


def estimate(
    views: Sequence[BoardSeen], board: Board, kind: str, *, square_pixels: bool = False, robust: bool = True
) -> Intrinsics:
    """Estimate a lens of a kind ("pinhole" or "fisheye") from views of a board.

    With `square_pixels` fx and fy are one. Without `robust` every view stays and all corners weigh the same: the
    plain least squares that OpenCV's calibration does.

    Raises Refused with the reason when there are too few views, pictures of several sizes, views that all look alike,
    corners in too small a part of the picture, or when the fit does not hold.
    """
    size, good, left_out = _checked(views, board)
    fit = _Fit(board, square_pixels, robust)
    lens, poses = _started(fit, good, LENSES[kind](*size, 1.0, 1.0, (size[0] - 1) / 2, (size[1] - 1) / 2))
    for attempt in range(ROUNDS):
        result = fit.run(lens, poses, good)
        lens = lens.changed(result.shared)
        bad = _outliers(result.residuals, good, lens.width) if robust and attempt + 1 < ROUNDS else {}
        if not bad:
            break
        for index in sorted(bad, reverse=True):
            left_out[good[index].name] = bad[index]
            del good[index]
        poses = np.delete(result.poses, sorted(bad), axis=0)
        if len(good) < FEWEST_VIEWS:
            raise Refused(_too_few(len(good), left_out), next(iter(left_out), None))
    check_spread(good, result.poses, size)
    residuals = tuple(np.split(result.residuals, np.cumsum([len(view.ids) for view in good])[:-1]))
    rms_px = float(np.sqrt(np.mean(np.sum(result.residuals**2, axis=1))))
    if rms_px > WORST_RMS_PX * size[0] / 1920:
        raise Refused(
            f"a {kind} lens leaves {rms_px:.2f} px: try the other model, or check that the board is flat and its "
            "squares have the given size"
        )
    systematic, each = np.outer(farther_out(lens), farther_out(lens)), np.eye(len(lens.names))

    def doubt(contrasts: Floats) -> Floats:
        known = result.witnesses.freedom(contrasts)
        return stated(
            contrasts, [UncertaintyPart(result.covariance, known), UncertaintyPart(systematic, np.inf)]
        )

    return Intrinsics(
        lens, doubt(each), result.witnesses.freedom(each), result.covariance + systematic, rms_px,
        _held_out(fit, lens, result.poses, good), picture_sigma(lens, doubt),
        tuple(view.name for view in good), left_out, result.poses, residuals, coverage(good, size), systematic,
    )  # fmt: skip


def estimate_best(views: Sequence[BoardSeen], board: Board) -> Intrinsics:
    """Estimate with both lens models and return the one that predicts unseen views better."""
    tried, refusals = [], []
    for kind in LENSES:
        try:
            tried.append(estimate(views, board, kind))
        except Refused as refusal:
            refusals.append(refusal)
    if not tried:
        raise refusals[0]
    return min(tried, key=lambda result: result.held_out_px)


def _checked(
    views: Sequence[BoardSeen], board: Board
) -> tuple[tuple[int, int], list[BoardSeen], dict[str, str]]:
    sizes = {view.size for view in views}
    if len(sizes) > 1:
        words = ", ".join(f"{width} x {height}" for width, height in sorted(sizes))
        odd = min(views, key=lambda view: sum(other.size == view.size for other in views))
        raise Refused(f"pictures of several sizes ({words}): calibrate each lens mode by itself", odd.name)
    good, left_out = [], {}
    for view in views:
        if len(view.ids) < FEWEST_CORNERS:
            left_out[view.name] = f"only {len(view.ids)} corners"
        elif in_line(view, board):
            left_out[view.name] = IN_LINE
        else:
            good.append(view)
    if len(good) < FEWEST_VIEWS:
        raise Refused(_too_few(len(good), left_out), next(iter(left_out), None))
    return good[0].size, good, left_out


def _too_few(count: int, left_out: dict[str, str]) -> str:
    why = f" ({len(left_out)} left out: {', '.join(sorted(set(left_out.values())))})" if left_out else ""
    return f"{count} usable views of the board, at least {FEWEST_VIEWS} are needed{why}: film it longer and nearer"


@dataclass(frozen=True)
class _Fit:
    """One way to fit a lens: which board, and what is held."""

    board: Board
    square_pixels: bool
    robust: bool

    def run(self, lens: Lens, poses: Floats, views: Sequence[BoardSeen]) -> Adjusted:
        """Fit the lens and the poses; `shared` and `covariance` of the result are of the lens's parameters."""
        points = np.concatenate([self.board.corners_m[view.ids] for view in views])
        pixels = np.concatenate([view.pixels for view in views])
        view_of = np.repeat(np.arange(len(views)), [len(view.ids) for view in views])
        spread = np.eye(len(lens.names))
        if self.square_pixels:
            spread = np.delete(spread, 1, axis=1)
            spread[1, 0] = 1.0

        def residuals(shared: Floats, at: Floats) -> Floats:
            in_camera = np.einsum("nij,nj->ni", at[view_of, :3, :3], points) + at[view_of, :3, 3]
            return pixels - lens.changed(spread @ shared).project(in_camera)

        free = np.linalg.pinv(spread) @ lens.parameters
        scale = np.abs(spread).T.clip(0, 1) @ steps_of(lens)
        found = adjust(residuals, free, poses, view_of, scale, robust=self.robust)
        return replace(
            found,
            shared=spread @ found.shared,
            covariance=spread @ found.covariance @ spread.T,
            witnesses=replace(found.witnesses, basis=spread @ found.witnesses.basis),
        )


def _started(fit: _Fit, views: Sequence[BoardSeen], blank: Lens) -> tuple[Pinhole | Fisheye, Floats]:
    """Try several focal lengths without distortion, refine each a little on few views, and keep the best."""
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


def board_poses(lens: Lens, views: Sequence[BoardSeen], board: Board) -> Floats:
    """Return camera from board (v, 4, 4) of each view by PnP on the rays of its corners (lens known)."""
    poses = np.empty((len(views), 4, 4))
    for index, view in enumerate(views):
        rays = lens.rays(view.pixels)
        ok = np.isfinite(rays[:, 0]) & (rays[:, 2] > 0.05)
        plane = rays[ok, :2] / rays[ok, 2:]
        points = board.corners_m[view.ids[ok]]
        if len(points) < 4:
            plane, points = (
                (view.pixels - [lens.width / 2, lens.height / 2]) / lens.width,
                board.corners_m[view.ids],
            )
        poses[index] = _planar_pose(points, plane)
    return poses


def _planar_pose(points: Floats, plane: Floats) -> Floats:
    turn, shift = cv2.solvePnP(points, plane.reshape(-1, 1, 2), np.eye(3), None, flags=cv2.SOLVEPNP_IPPE)[1:]
    pose = np.eye(4)
    pose[:3, :3] = cv2.Rodrigues(turn)[0]
    pose[:3, 3] = shift[:, 0]
    return pose


def _outliers(residuals: Floats, views: Sequence[BoardSeen], width: int) -> dict[int, str]:
    """Name the views that fit far worse than the rest."""
    counts = np.array([len(view.ids) for view in views])
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    each = np.sqrt(np.add.reduceat(np.sum(residuals**2, axis=1), starts) / counts)
    limit = max(WORST_VIEW * float(np.median(each)), 0.3 * width / 1920)
    return {int(i): f"{each[i]:.1f} px off where {limit:.1f} are usual" for i in np.flatnonzero(each > limit)}


def _held_out(fit: _Fit, lens: Lens, poses: Floats, views: Sequence[BoardSeen]) -> float:
    """Return the RMS in pixels of views that a fit to the others predicts, their poses apart."""
    folds = min(FOLDS, len(views))
    squares, count = 0.0, 0
    for fold in range(folds):
        mine = np.arange(len(views)) % folds == fold
        others = [view for view, held in zip(views, mine, strict=True) if not held]
        fitted = lens.changed(fit.run(lens, poses[~mine], others).shared)
        for view, pose in zip(
            [v for v, held in zip(views, mine, strict=True) if held], poses[mine], strict=True
        ):
            rest = reprojection(fitted, pose, view, fit.board)
            squares, count = squares + float(np.sum(rest**2)), count + len(rest)
    return float(np.sqrt(squares / count))


def reprojection(lens: Lens, pose: Floats, view: BoardSeen, board: Board) -> Floats:
    """Return pixels observed less predicted (n, 2) after the view's pose alone was fitted to it."""
    points = board.corners_m[view.ids]

    def residuals(_: Floats, at: Floats) -> Floats:
        return view.pixels - lens.project(points @ at[0, :3, :3].T + at[0, :3, 3])

    nothing = np.zeros(0)
    return adjust(residuals, nothing, pose[None], np.zeros(len(points), np.intp), nothing).residuals
