"""The fixed rotation between both devices, by itself and together with the shift. All pure."""

from __future__ import annotations

import numpy as np

from sensors.array_types import Floats
from sync.fit.line import Line
from sync.fit.pairing import FINE_HZ, SMOOTH_HZ, Mask, Pairing
from sync.fit.windows import LARGEST_STEP_S

SOFT_RAD_PER_S = np.deg2rad(40.0)
SETTLE_STEPS = 10


def soft_weights(rates: Floats) -> Floats:
    """Weights `1/sqrt(1 + |w|^2/(40 deg/s)^2)` (n,): in violent turns mounts give way."""
    return 1.0 / np.sqrt(1.0 + (rates**2).sum(axis=1) / SOFT_RAD_PER_S**2)


def fit_rotation(pairing: Pairing, line: Line, good: Mask) -> Floats:
    """Rotation R, `w_H ~ R w_G` (Kabsch): `M = sum q w_H w_G^T = U S V^T`, `R = U diag(1, 1, det) V^T`."""
    t_s = pairing.camera.t_s[good]
    w_g = pairing.camera.values[good]
    w_h = pairing.spline(t_s + line.at(t_s))
    w_h, w_g = w_h - np.median(w_h, axis=0), w_g - np.median(w_g, axis=0)
    u, _, vt = np.linalg.svd((w_h * soft_weights(w_g)[:, None]).T @ w_g)
    return u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))]) @ vt


def settle(pairing: Pairing, line: Line, good: Mask) -> tuple[Line, Floats]:
    """Move the whole line and turn the rotation together until both rest.

    In periodic motion a small shift looks much like a small turn: fitted in turns, they creep towards the truth.
    """
    for _ in range(SETTLE_STEPS):
        rotation = fit_rotation(pairing, line, good)
        normal, gradient = shift_and_turn(pairing, line, rotation, good)
        change = -float((np.linalg.pinv(normal) @ gradient)[0])
        line = line.moved(float(np.clip(change, -LARGEST_STEP_S, LARGEST_STEP_S)))
        if abs(change) < 1e-7:
            break
    return line, fit_rotation(pairing, line, good)


def shift_and_turn(pairing: Pairing, line: Line, rotation: Floats, good: Mask) -> tuple[Floats, Floats]:
    """Normal matrix (4, 4) and gradient (4,) of `r = S_H(t + tau) - R w_G - mean` in tau and three small turns."""
    t_s = pairing.camera.t_s[good]
    w_g = pairing.camera.values[good] @ rotation.T
    w_h, slope = pairing.spline(t_s + line.at(t_s)), pairing.spline(t_s + line.at(t_s), 1)
    w_h, w_g, slope = (x - x.mean(axis=0) for x in (w_h, w_g, slope))
    columns = [slope, *(-np.cross(axis, w_g) for axis in np.eye(3))]
    jacobian = np.stack([column.ravel() for column in columns], axis=1)
    soft = np.repeat(soft_weights(w_g), 3)[:, None]
    return jacobian.T @ (soft * jacobian), (soft * jacobian).T @ (w_h - w_g).ravel()


def turn_of_halves_deg(pairing: Pairing, line: Line, good: Mask) -> tuple[float, float]:
    """How much the rotations of the first and of the second half differ, and how well that is known (sigma)."""
    halves = [np.zeros_like(good), np.zeros_like(good)]
    for half, part in zip(halves, np.array_split(np.flatnonzero(good), 2), strict=True):
        half[part] = True
    rotations = [fit_rotation(pairing, line, half) for half in halves]
    variance = sum(
        _turn_variance(pairing, line, turn, half) for turn, half in zip(rotations, halves, strict=True)
    )
    return _angle_deg(*rotations), float(np.rad2deg(np.sqrt(variance)))


def _turn_variance(pairing: Pairing, line: Line, rotation: Floats, good: Mask) -> float:
    """Variance (rad^2) of a fitted rotation; the low pass leaves two cells in five to count."""
    normal, _ = shift_and_turn(pairing, line, rotation, good)
    t_s = pairing.camera.t_s[good]
    rest = pairing.spline(t_s + line.at(t_s)) - pairing.camera.values[good] @ rotation.T
    noise = float(np.mean((rest - rest.mean(axis=0)) ** 2)) * FINE_HZ / (2.0 * SMOOTH_HZ)
    return noise * float(np.trace(np.linalg.pinv(normal, hermitian=True)[1:, 1:]))


def _angle_deg(a: Floats, b: Floats) -> float:
    return float(np.rad2deg(np.arccos(np.clip((np.trace(a.T @ b) - 1.0) / 2.0, -1.0, 1.0))))
