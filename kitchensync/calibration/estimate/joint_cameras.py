"""Pose of one camera relative to another, from a board that both see.

`b_from_a` (4, 4) transforms points of camera a to camera b, column vectors, metres.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from kitchensync.calibration.estimate.adjust import Adjusted, adjust
from kitchensync.calibration.estimate.board import COLLINEAR, Board, BoardDetection, is_collinear
from kitchensync.calibration.estimate.freedom import UncertaintyPart, stated_sigma
from kitchensync.calibration.estimate.intrinsics import Intrinsics, board_poses
from kitchensync.calibration.estimate.lens_quality import detector_error
from kitchensync.shell.array_types import Floats
from kitchensync.storage.geometry.camera_models import Lens
from kitchensync.storage.geometry.errors import Refused

MIN_PAIRS = 8
ROUNDS = 4
"Largest number of fits, each without the outliers of the previous one."
MIN_CORNERS = 8  # fewer than for a lens: lenses are known here, a view only fixes a pose
MAX_RMS_PX = 2.5
"Of both frames, at 1920 columns."
MAX_PAIR_RATIO = 4.0
"RMS of a pair, in medians of all pairs, above which it is an outlier: the head moved."


@dataclass(frozen=True)
class BoardPair:
    """The board in the frames of both cameras at one instant."""

    in_a: BoardDetection
    in_b: BoardDetection
    lens_a: Lens
    "Lens of camera a at that instant; with autofocus it differs between frames."


@dataclass(frozen=True)
class RigPose:
    """Camera b from camera a, with its uncertainty."""

    b_from_a: Floats
    "(4, 4)"
    sigma: Floats
    "(6,) rotation vector in camera b (rad), then metres, widened by Student's quantile: two sigmas contain 95 %."
    sigma_deg: float
    "The same of the rotation about its worst axis, degrees."
    sigma_mm: float
    "The same of the translation along its worst axis, millimetres."
    covariance: Floats
    "(6, 6) as estimated, including the systematic part; not widened."
    systematic: Floats
    "(6, 6) the part of `covariance` that is common to all instants."
    rms_px: tuple[float, float]
    "In the frames of a and b."
    used: tuple[str, ...]
    left_out: dict[str, str]
    residuals: tuple[tuple[Floats, Floats], ...]
    "(n, 2) observed less predicted in the frames of a and b, for each used pair, pixels."
    pairs: tuple[BoardPair, ...]
    "The used pairs."


def worst_axes(covariance: Floats) -> Floats:
    """Return the unit axes (2, 6) of largest variance in a mount's covariance (6, 6): of rotation and translation."""
    axes = np.zeros((2, 6))
    axes[0, :3] = np.linalg.eigh(covariance[:3, :3])[1][:, -1]
    axes[1, 3:] = np.linalg.eigh(covariance[3:, 3:])[1][:, -1]
    return axes


def from_board(pairs: Sequence[BoardPair], board: Board, b: Intrinsics) -> RigPose:
    """Estimate camera b from camera a.

    Lens a of each pair is taken as exact; the covariance of lens b is propagated. Its degrees of freedom are the
    fewest of focal length and principal point, on which a mount depends most.

    Raises Refused if there are too few pairs or they do not fit one rigid mount.
    """
    good, left_out = _with_enough_corners(pairs, board)
    start = _consensus(good, b.lens, board)
    for attempt in range(ROUNDS):
        fitted = _Fit(good, board, start)
        result = fitted.run(b.lens)
        bad = fitted.outliers(result.residuals) if attempt + 1 < ROUNDS else []
        start = fitted.mounted(result.shared)
        if not bad:
            break
        left_out |= {good[i].in_a.name: "the mount or the head moved" for i in bad}
        good = [pair for i, pair in enumerate(good) if i not in bad]
        if len(good) < MIN_PAIRS:
            raise Refused(_too_few(len(good)), next(iter(left_out), None))
    rms = fitted.rms(result.residuals)
    widths = good[0].lens_a.width, b.lens.width
    if max(r * 1920 / w for r, w in zip(rms, widths, strict=True)) > MAX_RMS_PX:
        raise Refused(
            f"one rigid mount does not explain the pictures (residuals of {rms[0]:.1f} and {rms[1]:.1f} px): check"
            " the time alignment, the board's size, and that the mount is tight"
        )
    systematic = _covariance_from_lens(fitted, result.shared, b.lens, b.systematic)
    systematic += _covariance_from_detector(good, board, start, b.lens)
    lens_part = _covariance_from_lens(fitted, result.shared, b.lens, b.covariance - b.systematic)
    covariance = result.covariance + lens_part + systematic
    contrasts = np.concatenate((np.eye(6), worst_axes(covariance)))
    *sigma, sigma_rad, sigma_m = stated_sigma(
        contrasts,
        [
            UncertaintyPart(result.covariance, result.information.freedom(contrasts)),
            UncertaintyPart(lens_part, float(b.freedom[:4].min())),
            UncertaintyPart(systematic, np.inf),
        ],
    )
    used, residuals = tuple(pair.in_a.name for pair in good), fitted.by_pair(result.residuals)
    return RigPose(
        start, np.array(sigma), float(np.degrees(sigma_rad)), float(1e3 * sigma_m), covariance, systematic,
        rms, used, left_out, residuals, tuple(good),
    )  # fmt: skip


def _too_few(count: int) -> str:
    return f"{count} instants with the board in both pictures, at least {MIN_PAIRS} are needed: hold still longer"


def _with_enough_corners(pairs: Sequence[BoardPair], board: Board) -> tuple[list[BoardPair], dict[str, str]]:
    good, left_out = [], {}
    for pair in pairs:
        fewest = min(len(pair.in_a.ids), len(pair.in_b.ids))
        if fewest < MIN_CORNERS:
            left_out[pair.in_a.name] = f"only {fewest} corners"
        elif is_collinear(pair.in_a, board) or is_collinear(pair.in_b, board):
            left_out[pair.in_a.name] = COLLINEAR
        else:
            good.append(pair)
    if len(good) < MIN_PAIRS:
        raise Refused(_too_few(len(good)), next(iter(left_out), None))
    return good, left_out


def _consensus(pairs: Sequence[BoardPair], lens_b: Lens, board: Board) -> Floats:
    """Return the mount of the pair that agrees best with the others; the pose from a single pair can be flipped."""
    in_a = np.concatenate([board_poses(pair.lens_a, [pair.in_a], board) for pair in pairs])
    in_b = board_poses(lens_b, [pair.in_b for pair in pairs], board)
    mounts = in_b @ np.linalg.inv(in_a)
    turns = Rotation.from_matrix(mounts[:, :3, :3])
    angles = np.stack([(turns * turn.inv()).magnitude() for turn in turns])
    shifts = np.linalg.norm(mounts[:, None, :3, 3] - mounts[None, :, :3, 3], axis=-1)
    best: Floats = mounts[int(np.argmin(np.median(angles + shifts, axis=1)))]
    return best


class _Fit:
    """A fit of the mount and of the board's pose in camera a at each instant, to all corners of both frames."""

    def __init__(self, pairs: Sequence[BoardPair], board: Board, start: Floats) -> None:
        self._pairs, self._start = pairs, start
        self._counts = np.array([(len(pair.in_a.ids), len(pair.in_b.ids)) for pair in pairs])
        self._points = [(board.corners_m[p.in_a.ids], board.corners_m[p.in_b.ids]) for p in pairs]
        self._view_of = np.repeat(np.arange(len(pairs)), self._counts.sum(1))
        self._poses = np.concatenate([board_poses(pair.lens_a, [pair.in_a], board) for pair in pairs])

    def mounted(self, step: Floats) -> Floats:
        """Return the mount after a step (6,): rotation vector in camera b, metres."""
        mount = self._start.copy()
        mount[:3, :3] = Rotation.from_rotvec(step[:3]).as_matrix() @ mount[:3, :3]
        mount[:3, 3] += step[3:]
        return mount

    def run(self, lens_b: Lens) -> Adjusted:
        """Fit mount and poses for a lens of camera b."""

        def residuals(shared: Floats, poses: Floats) -> Floats:
            mount, parts = self.mounted(shared), []
            for pair, (for_a, for_b), pose in zip(self._pairs, self._points, poses, strict=True):
                parts.append(pair.in_a.pixels - pair.lens_a.project(for_a @ pose[:3, :3].T + pose[:3, 3]))
                both = mount @ pose
                parts.append(pair.in_b.pixels - lens_b.project(for_b @ both[:3, :3].T + both[:3, 3]))
            return np.concatenate(parts)

        scale = np.full(6, 1e-3)  # a milliradian or a millimetre moves pixels by about one
        return adjust(residuals, np.zeros(6), self._poses, self._view_of, scale)

    def _by_picture(self, residuals: Floats) -> Floats:
        """Return mean squared residuals (pairs, 2) of the frames of a and b."""
        squared = np.sum(residuals**2, axis=1)
        starts = np.concatenate(([0], np.cumsum(self._counts.ravel())[:-1]))
        return np.asarray((np.add.reduceat(squared, starts) / self._counts.ravel()).reshape(-1, 2))

    def by_pair(self, residuals: Floats) -> tuple[tuple[Floats, Floats], ...]:
        """Return the residuals of each pair in the frames of a and b."""
        parts = np.split(residuals, np.cumsum(self._counts.ravel())[:-1])
        return tuple(zip(parts[::2], parts[1::2], strict=True))

    def rms(self, residuals: Floats) -> tuple[float, float]:
        """Return the RMS in the frames of a and b, pixels."""
        a, b = np.sqrt(np.average(self._by_picture(residuals), axis=0, weights=self._counts))
        return float(a), float(b)

    def outliers(self, residuals: Floats) -> list[int]:
        """Return the indices of pairs that fit far worse than the others."""
        each = np.sqrt(self._by_picture(residuals)).max(1)
        limit = max(MAX_PAIR_RATIO * float(np.median(each)), 0.5)
        return [int(i) for i in np.flatnonzero(each > limit)]


def _covariance_from_lens(fitted: _Fit, at: Floats, b: Lens, covariance: Floats) -> Floats:
    """Propagate a covariance (p, p) of lens b to the mount, by refitting along its principal axes."""
    size, axes = np.linalg.eigh(covariance)
    added = np.zeros((6, 6))
    for variance, axis in zip(size, axes.T, strict=True):
        if variance > 0:
            moved = fitted.run(b.changed(b.parameters + np.sqrt(variance) * axis)).shared - at
            added += np.outer(moved, moved)
    return added


def _covariance_from_detector(pairs: Sequence[BoardPair], board: Board, mount: Floats, b: Lens) -> Floats:
    """Return the mount's covariance from a detector error common to all frames of camera a, by refitting with it."""
    stretched = [
        replace(pair, lens_a=pair.lens_a.changed(pair.lens_a.parameters + detector_error(pair.lens_a)))
        for pair in pairs
    ]
    plain, moved = (_Fit(views, board, mount).run(b).shared for views in (pairs, stretched))
    return np.outer(moved - plain, moved - plain)
