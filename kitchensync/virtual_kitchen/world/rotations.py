"""Unit quaternions (w, x, y, z) in arrays of shape (n, 4), or one of shape (4,)."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def multiply(a: Floats, b: Floats) -> Floats:
    """Return the Hamilton product a*b, row by row: first rotate by b, then by a."""
    aw, ax, ay, az = a.T
    bw, bx, by, bz = b.T
    product = np.empty(np.broadcast_shapes(a.shape, b.shape))
    product[..., 0] = aw * bw - ax * bx - ay * by - az * bz
    product[..., 1] = aw * bx + ax * bw + ay * bz - az * by
    product[..., 2] = aw * by - ax * bz + ay * bw + az * bx
    product[..., 3] = aw * bz + ax * by - ay * bx + az * bw
    return product


def about_axis(axis: int, angle_rad: Floats) -> Floats:
    """Return the rotations by `angle_rad` (n,) about coordinate axis 0, 1 or 2."""
    turned = np.zeros((len(angle_rad), 4))
    turned[:, 0] = np.cos(angle_rad / 2)
    turned[:, 1 + axis] = np.sin(angle_rad / 2)
    return turned


def from_vectors(rotation_rad: Floats) -> Floats:
    """Return the rotations of rotation vectors (n, 3), the exponential map."""
    angle = np.linalg.norm(rotation_rad, axis=1, keepdims=True)
    half_sinc = 0.5 * np.sinc(angle / (2 * np.pi))
    return np.concatenate((np.cos(angle / 2), rotation_rad * half_sinc), axis=1)


def running_product(steps: Floats) -> Floats:
    """Return q_0, q_0*q_1, q_0*q_1*q_2, ... by doubling (a prefix scan), normalised."""
    total = steps.copy()
    reach = 1
    while reach < len(total):
        total[reach:] = multiply(total[:-reach].copy(), total[reach:])
        reach *= 2
    return total / np.linalg.norm(total, axis=1, keepdims=True)


def matrices(quaternions: Floats) -> Floats:
    """Return rotation matrices (n, 3, 3) for column vectors."""
    w, x, y, z = quaternions.T
    rotation = np.empty((*quaternions.shape[:-1], 3, 3))
    rotation[..., 0, 0] = 1 - 2 * (y * y + z * z)
    rotation[..., 0, 1] = 2 * (x * y - w * z)
    rotation[..., 0, 2] = 2 * (x * z + w * y)
    rotation[..., 1, 0] = 2 * (x * y + w * z)
    rotation[..., 1, 1] = 1 - 2 * (x * x + z * z)
    rotation[..., 1, 2] = 2 * (y * z - w * x)
    rotation[..., 2, 0] = 2 * (x * z - w * y)
    rotation[..., 2, 1] = 2 * (y * z + w * x)
    rotation[..., 2, 2] = 1 - 2 * (x * x + y * y)
    return rotation
