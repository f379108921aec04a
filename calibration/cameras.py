"""How cameras see: pinhole with distortion, fisheye, and the headset's look-up tables.

Camera frame: x right, y down, z forward, metres. Pixel (0, 0) is the centre of the upper left pixel. `project` gives
NaN for points that the camera cannot see for reasons of optics (behind it, or beyond the angle where the lens model
folds back); whether a pixel lies in the picture is asked with `inside`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, Self

import cv2
import numpy as np
import numpy.typing as npt

from calibration.errors import BadModel

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_NEWTON_STEPS = 20


class Camera(Protocol):
    """What every camera can be asked."""

    @property
    def width(self) -> int:
        """Columns of its picture."""
        ...

    @property
    def height(self) -> int:
        """Rows of its picture."""
        ...

    def project(self, points: npt.ArrayLike) -> Floats:
        """Return pixels (n, 2) of points (n, 3) in the camera frame, metres; NaN where the optics see nothing."""
        ...

    def rays(self, pixels: npt.ArrayLike) -> Floats:
        """Return unit vectors (n, 3) in the camera frame along which pixels (n, 2) look; NaN where unknown."""
        ...


class Lens(Camera, Protocol):
    """A camera that a few parameters describe, so that they can be estimated."""

    kind: ClassVar[str]
    names: ClassVar[tuple[str, ...]]

    @property
    def parameters(self) -> Floats:
        """Its parameters (p,) in the order of `names`; focal lengths and centre in pixels."""
        ...

    def changed(self, parameters: npt.ArrayLike) -> Self:
        """Return the same camera with other parameters (p,)."""
        ...


def inside(camera: Camera, pixels: npt.ArrayLike) -> Mask:
    """Tell which pixels (..., 2) lie in the picture; NaN does not."""
    at = np.asarray(pixels, np.float64)
    low = np.all(at >= -0.5, axis=-1)
    return low & (at[..., 0] < camera.width - 0.5) & (at[..., 1] < camera.height - 0.5)


@dataclass(frozen=True)
class Pinhole:
    """A pinhole with Brown-Conrady distortion (Brown 1966; the five coefficients of OpenCV, in its order)."""

    kind: ClassVar[str] = "pinhole"
    names: ClassVar[tuple[str, ...]] = ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3")

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    k1: float = 0.0
    k2: float = 0.0
    p1: float = 0.0
    p2: float = 0.0
    k3: float = 0.0

    @property
    def parameters(self) -> Floats:
        """Return fx, fy, cx, cy (pixels) and k1, k2, p1, p2, k3."""
        return np.array([getattr(self, name) for name in self.names])

    def changed(self, parameters: npt.ArrayLike) -> Pinhole:
        """Return the same camera with other parameters (9,)."""
        return Pinhole(self.width, self.height, *_floats(parameters))

    @property
    def matrix(self) -> Floats:
        """Return the camera matrix (3, 3) as OpenCV wants it."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    def project(self, points: npt.ArrayLike) -> Floats:
        """Return pixels (n, 2) of points (n, 3); NaN behind the camera and where distortion folds back."""
        x, y, seen = _unit_plane(points)
        r2 = x * x + y * y
        seen &= r2 < self._fold_r2
        radial = 1 + r2 * (self.k1 + r2 * (self.k2 + r2 * self.k3))
        u = x * radial + 2 * self.p1 * x * y + self.p2 * (r2 + 2 * x * x)
        v = y * radial + self.p1 * (r2 + 2 * y * y) + 2 * self.p2 * x * y
        pixels = np.stack((self.fx * u + self.cx, self.fy * v + self.cy), axis=-1)
        return np.where(seen[:, None], pixels, np.nan)

    def rays(self, pixels: npt.ArrayLike) -> Floats:
        """Return unit rays (n, 3) of pixels (n, 2); NaN where no ray is imaged there."""
        at = np.asarray(pixels, np.float64).reshape(-1, 1, 2)
        distortion = np.array([self.k1, self.k2, self.p1, self.p2, self.k3])
        ends = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 100, 1e-12)
        plane = cv2.undistortPointsIter(at, self.matrix, distortion, np.eye(3), np.eye(3), ends).reshape(
            -1, 2
        )
        rays = _unit(np.column_stack((plane, np.ones(len(plane)))))
        off = np.linalg.norm(self.project(rays) - at[:, 0], axis=1)
        return np.where((off < 0.01)[:, None], rays, np.nan)

    @cached_property
    def _fold_r2(self) -> float:
        """The squared radius at which the radial polynomial stops to grow."""
        slope = np.roots([7 * self.k3, 5 * self.k2, 3 * self.k1, 1.0])
        real = slope[np.isreal(slope) & (slope.real > 0)].real
        return float(real.min()) if len(real) else np.inf


@dataclass(frozen=True)
class Fisheye:
    """A fisheye after Kannala and Brandt 2006, odd powers of the angle to the ninth (OpenCV's `fisheye`)."""

    kind: ClassVar[str] = "fisheye"
    names: ClassVar[tuple[str, ...]] = ("fx", "fy", "cx", "cy", "k1", "k2", "k3", "k4")

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    k1: float = 0.0
    k2: float = 0.0
    k3: float = 0.0
    k4: float = 0.0

    @property
    def parameters(self) -> Floats:
        """Return fx, fy, cx, cy (pixels) and k1 to k4."""
        return np.array([getattr(self, name) for name in self.names])

    def changed(self, parameters: npt.ArrayLike) -> Fisheye:
        """Return the same camera with other parameters (8,)."""
        return Fisheye(self.width, self.height, *_floats(parameters))

    def project(self, points: npt.ArrayLike) -> Floats:
        """Return pixels (n, 2) of points (n, 3); NaN beyond the angle where the model folds back."""
        at = np.asarray(points, np.float64)
        aside = np.hypot(at[:, 0], at[:, 1])
        theta = np.arctan2(aside, at[:, 2])
        seen = (theta < self._fold_rad) & np.any(at != 0, axis=1)
        scale = np.divide(self._bent(theta), aside, out=np.ones_like(aside), where=aside > 0)
        x, y = at[:, 0] * scale, at[:, 1] * scale
        pixels = np.stack((self.fx * x + self.cx, self.fy * y + self.cy), axis=-1)
        return np.where(seen[:, None], pixels, np.nan)

    def rays(self, pixels: npt.ArrayLike) -> Floats:
        """Return unit rays (n, 3) of pixels (n, 2), by Newton on the angle; NaN beyond the fold."""
        at = np.asarray(pixels, np.float64)
        x, y = (at[:, 0] - self.cx) / self.fx, (at[:, 1] - self.cy) / self.fy
        bent = np.hypot(x, y)
        theta = np.minimum(bent, self._fold_rad)
        for _ in range(_NEWTON_STEPS):
            theta = np.clip(theta - (self._bent(theta) - bent) / self._slope(theta), 0.0, self._fold_rad)
        found = np.abs(self._bent(theta) - bent) < 1e-9
        scale = np.divide(np.sin(theta), bent, out=np.ones_like(bent), where=bent > 0)
        rays = np.stack((x * scale, y * scale, np.cos(theta)), axis=-1)
        return np.where(found[:, None], rays, np.nan)

    def _bent(self, theta: Floats) -> Floats:
        t2 = theta * theta
        return theta * (1 + t2 * (self.k1 + t2 * (self.k2 + t2 * (self.k3 + t2 * self.k4))))

    def _slope(self, theta: Floats) -> Floats:
        t2 = theta * theta
        slope = 1 + t2 * (3 * self.k1 + t2 * (5 * self.k2 + t2 * (7 * self.k3 + t2 * 9 * self.k4)))
        return np.where(np.abs(slope) < 1e-9, 1e-9, slope)

    @cached_property
    def _fold_rad(self) -> float:
        """The angle at which the picture's radius stops to grow; half a turn when it never does."""
        slope = np.roots([9 * self.k4, 7 * self.k3, 5 * self.k2, 3 * self.k1, 1.0])
        real = slope[np.isreal(slope) & (slope.real > 0)].real
        return min(float(np.sqrt(real.min())) if len(real) else np.pi, np.pi)


@dataclass(frozen=True, eq=False)
class LookUpTable:
    """A Research Mode camera: the ray of every pixel, and the map back, as downloaded from the headset.

    `plane` (height, width, 2) float32 is the ray at z = 1 of each integer pixel, both 0 where there is none; `source`
    (h, w, 2) float32 is the pixel that each pixel of an undistorted picture comes from, -1 where none, and `pinhole`
    are fx, fy, cx, cy of that picture.
    """

    plane: npt.NDArray[np.float32]
    source: npt.NDArray[np.float32]
    pinhole: tuple[float, float, float, float]

    @property
    def width(self) -> int:
        """Columns of the picture as sent (unrotated)."""
        return int(self.plane.shape[1])

    @property
    def height(self) -> int:
        """Rows of the picture as sent (unrotated)."""
        return int(self.plane.shape[0])

    def project(self, points: npt.ArrayLike) -> Floats:
        """Return pixels (n, 2) of points (n, 3); NaN where the undistorted picture does not reach."""
        x, y, seen = _unit_plane(points)
        fx, fy, cx, cy = self.pinhole
        return _interpolated(self.source, fx * x + cx, fy * y + cy, seen, self._has_source)

    def rays(self, pixels: npt.ArrayLike) -> Floats:
        """Return unit rays (n, 3) of pixels (n, 2); NaN where the table has none."""
        at = np.asarray(pixels, np.float64)
        known = np.ones(len(at), np.bool_)
        plane = _interpolated(self.plane, at[:, 0], at[:, 1], known, self.mappable)
        return _unit(np.column_stack((plane, np.ones(len(plane)))))

    @cached_property
    def mappable(self) -> Mask:
        """Which pixels (height, width) have a ray: 0, 0 means none, but for a pixel on the optical axis itself."""
        known = np.any(self.plane != 0, axis=-1)
        for row, column in np.argwhere(~known[1:-1, 1:-1]) + 1:
            around = self.plane[[row - 1, row + 1, row, row], [column, column, column - 1, column + 1]]
            lengths = np.linalg.norm(around, axis=1)
            if lengths.min() > 0 and np.linalg.norm(around.sum(0)) < lengths.min():
                known[row, column] = True
        return known

    @cached_property
    def _has_source(self) -> Mask:
        return np.all(self.source >= 0, axis=-1)


def _interpolated(
    table: npt.NDArray[np.float32], columns: Floats, rows: Floats, wanted: Mask, known: Mask
) -> Floats:
    """Look a table (h, w, 2) up between its cells; NaN where one of the four neighbours is unknown."""
    height, width = known.shape
    ok = wanted & (columns >= 0) & (rows >= 0) & (columns <= width - 1) & (rows <= height - 1)
    columns, rows = np.where(ok, columns, 0.0), np.where(ok, rows, 0.0)
    left, top = np.minimum(columns.astype(int), width - 2), np.minimum(rows.astype(int), height - 2)
    right_part, low_part = (columns - left)[:, None], (rows - top)[:, None]
    for dy in (0, 1):
        for dx in (0, 1):
            ok &= known[top + dy, left + dx]
    upper = table[top, left] * (1 - right_part) + table[top, left + 1] * right_part
    lower = table[top + 1, left] * (1 - right_part) + table[top + 1, left + 1] * right_part
    return np.where(ok[:, None], upper * (1 - low_part) + lower * low_part, np.nan)


def lens_of(kind: str, width: int, height: int, parameters: dict[str, float]) -> Pinhole | Fisheye:
    """Build a camera from the words of a result file. Raises BadModel for an unknown kind or parameter."""
    models = {model.kind: model for model in (Pinhole, Fisheye)}
    if kind not in models:
        raise BadModel(f"camera model {kind!r} is not one of {', '.join(models)}")
    model = models[kind]
    if set(parameters) != set(model.names):
        raise BadModel(
            f"a {kind} camera has the parameters {', '.join(model.names)}, not {sorted(parameters)}"
        )
    return model(width, height, **{name: float(value) for name, value in parameters.items()})


def _floats(parameters: npt.ArrayLike) -> list[float]:
    return [float(value) for value in np.asarray(parameters, np.float64)]


def _unit_plane(points: npt.ArrayLike) -> tuple[Floats, Floats, Mask]:
    at = np.asarray(points, np.float64)
    seen = at[:, 2] > 0
    depth = np.where(seen, at[:, 2], 1.0)
    return at[:, 0] / depth, at[:, 1] / depth, seen


def _unit(vectors: Floats) -> Floats:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
