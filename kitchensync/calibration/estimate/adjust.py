"""Bundle adjustment of parameters shared by all views and a pose for each view.

Levenberg-Marquardt on the reduced camera system (Triggs et al. 2000, section 6: the poses are eliminated by Schur
complement) with Huber weights. The covariance of the shared parameters is from the delete-one-view jackknife: errors
of corners in one frame are correlated (blur, a bent board), so views are independent but corners are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from kitchensync.calibration.estimate.freedom import ViewInformation
from kitchensync.shell.array_types import Floats

Residuals = Callable[[Floats, Floats], Floats]
"""(shared (p,), poses (v, 4, 4)) -> pixels observed less predicted (n, 2), sorted by view; NaN = not predicted."""

_MAX_STEPS = 60
_STEP = 1e-6
HUBER_PX = 1.5
"""Residual from which on the weight decreases (Huber 1964)."""
_NOT_PREDICTED_PX = 100.0  # residual of a corner outside the model's field of view


@dataclass(frozen=True)
class Adjusted:
    """Result of an adjustment."""

    shared: Floats
    "(p,)"
    poses: Floats
    "(v, 4, 4) camera from target, metres."
    covariance: Floats
    "(p, p) of `shared`, by leaving out one view at a time."
    information: ViewInformation
    "Information of each view about `shared`, from which the accuracy of the covariance follows."
    residuals: Floats
    "(n, 2) pixels."
    converged: bool


def adjust(
    residuals: Residuals,
    shared: Floats,
    poses: Floats,
    view_of: npt.NDArray[np.intp],
    scale: Floats,
    *,
    robust: bool = True,
) -> Adjusted:
    """Fit shared parameters and poses to all residuals.

    `view_of` (n,) is the view of each row, ascending. `scale` (p,) is the step of each shared parameter that moves
    pixels by about one, for numerical derivatives and damping. Without `robust` all residuals have the same weight.
    """
    problem = _Problem(residuals, view_of, len(poses), scale, HUBER_PX if robust else np.inf)
    damping, converged = 1e-3, False
    cost = problem.cost(shared, poses)
    for _ in range(_MAX_STEPS):
        system = problem.linearized(shared, poses)
        for _ in range(12):
            new_shared, new_poses = system.stepped(shared, poses, damping)
            new_cost = problem.cost(new_shared, new_poses)
            if new_cost < cost:
                break
            damping *= 5
        else:
            converged = True
            break
        gain, cost = 1 - new_cost / cost, new_cost
        shared, poses, damping = new_shared, new_poses, max(damping / 8, 1e-9)
        if gain < 1e-9:
            converged = True
            break
    system = problem.linearized(shared, poses)
    normal, moved = system.jackknife()
    covariance = (len(poses) - 1) / len(poses) * moved.T @ moved  # of the delete-one jackknife
    information = ViewInformation(normal * np.outer(scale, scale), np.diag(scale))
    return Adjusted(shared, poses, covariance, information, problem.at(shared, poses), converged)


class _Problem:
    """Residuals and their derivatives."""

    def __init__(
        self, residuals: Residuals, view_of: npt.NDArray[np.intp], views: int, scale: Floats, huber_px: float
    ) -> None:
        self._residuals, self.scale, self._huber_px = residuals, scale, huber_px
        self.starts = np.searchsorted(view_of, np.arange(views))

    def at(self, shared: Floats, poses: Floats) -> Floats:
        residuals = self._residuals(shared, poses)
        return np.where(np.isfinite(residuals), residuals, _NOT_PREDICTED_PX)

    def cost(self, shared: Floats, poses: Floats) -> float:
        """Return Huber's cost."""
        size = np.linalg.norm(self.at(shared, poses), axis=1)
        corner = self._huber_px if np.isfinite(self._huber_px) else 0.0
        return float(np.sum(np.where(size < self._huber_px, size**2, 2 * corner * size - corner**2)))

    def linearized(self, shared: Floats, poses: Floats) -> _System:
        here = self.at(shared, poses)
        by_shared = np.empty((*here.shape, len(shared)))
        for i, step in enumerate(self.scale * _STEP * 1e2):
            moved = shared.copy()
            moved[i] += step
            back = shared.copy()
            back[i] -= step
            by_shared[:, :, i] = (self.at(moved, poses) - self.at(back, poses)) / (2 * step)
        by_pose = np.empty((*here.shape, 6))
        for i in range(6):
            step = np.zeros((len(poses), 6))
            step[:, i] = _STEP
            by_pose[:, :, i] = (
                self.at(shared, stepped_poses(poses, step)) - self.at(shared, stepped_poses(poses, -step))
            ) / (2 * _STEP)
        size = np.linalg.norm(here, axis=1)
        weight = np.minimum(1.0, self._huber_px / np.maximum(size, 1e-12))
        return _System(self, here, by_shared, by_pose, weight)


class _System:
    """The normal equations at one point, with the poses eliminated."""

    def __init__(
        self, of: _Problem, here: Floats, by_shared: Floats, by_pose: Floats, weight: Floats
    ) -> None:
        def summed(left: Floats, right: Floats) -> Floats:
            product = np.einsum("n,nij,nik->njk", weight, left, right)
            return np.add.reduceat(product, of.starts, axis=0)

        column = here[:, :, None]
        self.scale = of.scale
        self.shared_shared = summed(by_shared, by_shared)
        self.pose_pose, self.pose_shared = summed(by_pose, by_pose), summed(by_pose, by_shared)
        self.shared_gradient = summed(by_shared, column)[:, :, 0]
        self.pose_gradient = summed(by_pose, column)[:, :, 0]

    def stepped(self, shared: Floats, poses: Floats, damping: float) -> tuple[Floats, Floats]:
        """Return shared parameters and poses after one damped Gauss-Newton step."""
        damped = self.pose_pose + damping * np.einsum("vij,ij->vij", self.pose_pose, np.eye(6))
        carried = np.linalg.solve(damped, self.pose_shared)
        eased = np.linalg.solve(damped, self.pose_gradient[:, :, None])
        whole = self.shared_shared.sum(0)
        whole = whole + damping * np.diag(np.diag(whole) + 1e-9 / self.scale**2)
        reduced = whole - np.einsum("vij,vik->jk", self.pose_shared, carried)
        gradient = self.shared_gradient.sum(0) - np.einsum("vij,vik->jk", self.pose_shared, eased)[:, 0]
        step = -_solved(reduced, gradient, self.scale)
        pose_step = -(eased[:, :, 0] + np.einsum("vij,j->vi", carried, step))
        return shared + step, stepped_poses(poses, pose_step)

    def jackknife(self) -> tuple[Floats, Floats]:
        """Return each view's information about the shared parameters (v, p, p), and their change without it (v, p).

        The changes are one Gauss-Newton step each, less their mean.
        """
        carried = np.linalg.solve(self.pose_pose + 1e-12 * np.eye(6), self.pose_shared)
        informed = self.shared_shared - np.einsum("vij,vik->vjk", self.pose_shared, carried)
        score = self.shared_gradient - np.einsum("vij,vi->vj", carried, self.pose_gradient)
        whole = informed.sum(0)
        moved = np.stack(
            [_solved(whole - of, of_score, self.scale) for of, of_score in zip(informed, score, strict=True)]
        )
        return informed, moved - moved.mean(0)


def _solved(matrix: Floats, right: Floats, scale: Floats) -> Floats:
    """Solve in units of `scale`, which conditions a matrix of pixels and distortion coefficients."""
    scaled = matrix * np.outer(scale, scale)
    solution: Floats = np.linalg.lstsq(scaled, right * scale, rcond=1e-14)[0] * scale
    return solution


def stepped_poses(poses: Floats, steps: Floats) -> Floats:
    """Change poses (v, 4, 4) by `steps` (v, 6): rotation vector in the camera frame (rad), then translation (m)."""
    turn = Rotation.from_rotvec(steps[:, :3]).as_matrix()
    result = poses.copy()
    result[:, :3, :3] = turn @ poses[:, :3, :3]
    result[:, :3, 3] = poses[:, :3, 3] + steps[:, 3:]
    return result
