"""Camera models with known parameters, as ground truth for calibrations.

Camera frame: x right, y down, z forward. Pixel (0, 0) is the centre of the upper left pixel. Formulas of Brown
(1966) and of Kannala and Brandt (2006), implemented again here so that the truth shares no code with the calibration.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_MOST_ROUNDS = 60
_STEADY = 1e-12
_WIDEST_RAD = np.radians(85)


@dataclass(frozen=True)
class Optics:
    """A lens: `kind` "pinhole" (k = k1 k2 p1 p2 k3) or "fisheye" (k = k1 k2 k3 k4)."""

    kind: str
    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    k: tuple[float, ...]

    def pixels(self, points: Floats) -> Floats:
        """Return pixels (n, 2) of points (n, 3) in front of the camera."""
        u, v = self._bend(points[:, 0], points[:, 1], points[:, 2])
        return np.column_stack((u * self.fx + self.cx, v * self.fy + self.cy))

    def _bend(self, x: Floats, y: Floats, z: Floats) -> tuple[Floats, Floats]:
        if self.kind == "fisheye":
            k1, k2, k3, k4 = self.k
            r = np.sqrt(x * x + y * y)
            t = np.arctan2(r, z)
            d = t + k1 * t**3 + k2 * t**5 + k3 * t**7 + k4 * t**9
            f = np.where(r > 1e-12, d / np.maximum(r, 1e-12), 1 / z)
            return x * f, y * f
        k1, k2, p1, p2, k3 = self.k
        x, y = x / z, y / z
        q = x * x + y * y
        f = 1 + k1 * q + k2 * q**2 + k3 * q**3
        return x * f + 2 * p1 * x * y + p2 * (q + 2 * x * x), y * f + p1 * (q + 2 * y * y) + 2 * p2 * x * y

    def rays(self, pixels: Floats) -> Floats:
        """Return rays (n, 3) with z = 1 of image points (n, 2)."""
        return self._unbend((pixels[:, 0] - self.cx) / self.fx, (pixels[:, 1] - self.cy) / self.fy)

    def ray_table(self, finer: int = 1) -> Floats:
        """Return rays (height * finer, width * finer, 3) with z = 1 of every pixel or part of a pixel."""
        u = (np.arange(self.width * finer) + 0.5) / finer - 0.5
        v = (np.arange(self.height * finer) + 0.5) / finer - 0.5
        x, y = np.meshgrid((u - self.cx) / self.fx, (v - self.cy) / self.fy)
        return self._unbend(x, y)

    def ray(self, u: float, v: float) -> Floats:
        """Return the ray (3,) with z = 1 of one image point."""
        x, y = np.array([(u - self.cx) / self.fx]), np.array([(v - self.cy) / self.fy])
        ray: Floats = self._unbend(x, y)[0]
        return ray

    def _unbend(self, x: Floats, y: Floats) -> Floats:
        """Invert `_bend` by fixed-point iteration until it converges."""
        if self.kind == "fisheye":
            d = np.sqrt(x * x + y * y)
            t = self._angles(d)
            f = np.where(d > 1e-12, np.tan(t) / np.maximum(d, 1e-12), 1.0)
            beyond = t > _WIDEST_RAD
            return np.where(beyond[..., None], np.nan, np.stack((x * f, y * f, np.ones_like(x)), axis=-1))
        a, b = x.copy(), y.copy()
        k1, k2, p1, p2, k3 = self.k
        for _ in range(_MOST_ROUNDS):
            q = a * a + b * b
            f = 1 + q * (k1 + q * (k2 + q * k3))
            a, b, before = (
                (x - 2 * p1 * a * b - p2 * (q + 2 * a * a)) / f,
                (y - p1 * (q + 2 * b * b) - 2 * p2 * a * b) / f,
                a,
            )
            if np.abs(a - before).max() < _STEADY:
                break
        return np.stack((a, b, np.ones_like(a)), axis=-1)

    def _angles(self, d: Floats) -> Floats:
        """Return the angle off the axis (rad) of each distance from the centre, arrays of any shape.

        Interpolated in a table with steps of 2^-15 rad; the interpolation error is below 1e-9.
        """
        k1, k2, k3, k4 = self.k
        line = np.linspace(0.0, float(d.max()), max(2, int(float(d.max()) * 2**15)))
        t = line.copy()
        for _ in range(_MOST_ROUNDS):
            q = t * t
            t = line / (1 + q * (k1 + q * (k2 + q * (k3 + q * k4))))
        angles: Floats = np.interp(d, line, t)
        return angles
