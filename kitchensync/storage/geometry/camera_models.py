"""Camera models: pinhole with distortion, and fisheye; the headset's look-up tables are in `look_up_table`.

Camera frame: x right, y down, z forward, metres. Pixel (0, 0) is the centre of the upper left pixel. `project`
returns NaN for points outside the field of the optics (behind the camera, or beyond the angle where the lens model
folds back); `inside` tests whether a pixel is in the picture. Points of single precision, as of a depth picture,
result in pixels of single precision, exact to a thousandth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol, Self

import cv2
import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Floats, Mask
from kitchensync.storage.geometry.errors import BadModel

Reals = npt.NDArray[np.floating]

_NEWTON_STEPS = 20


class Camera(Protocol):
    """Interface of every camera."""

    @property
    def width(self) -> int:
        """Columns of its picture."""
        ...

    @property
    def height(self) -> int:
        """Rows of its picture."""
        ...

    def project(self, points: npt.ArrayLike) -> Reals:
        """Return pixels (n, 2) of points (n, 3) in the camera frame, metres; NaN outside the field of the optics."""
        ...

    def rays(self, pixels: npt.ArrayLike) -> Floats:
        """Return unit rays (n, 3) in the camera frame of pixels (n, 2); NaN where unknown."""
        ...


def inside(camera: Camera, pixels: npt.ArrayLike) -> Mask:
    """Return which pixels (..., 2) are in the picture; NaN is not."""
    at = reals(pixels)
    u, v = at[..., 0], at[..., 1]
    return (u >= -0.5) & (v >= -0.5) & (u < camera.width - 0.5) & (v < camera.height - 0.5)


@dataclass(frozen=True)
class _Parametric:
    """Base of parametric lenses: sizes in pixels, then focal lengths and centre, then distortion."""

    kind: ClassVar[str]
    names: ClassVar[tuple[str, ...]]

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    @property
    def parameters(self) -> Floats:
        """The parameters (p,) in the order of `names`; focal lengths and centre in pixels."""
        return np.array([getattr(self, name) for name in self.names])

    def changed(self, parameters: npt.ArrayLike) -> Self:
        """Return the same camera with other parameters (p,)."""
        return type(self)(
            self.width, self.height, *[float(value) for value in np.asarray(parameters, np.float64)]
        )

    def scaled(self, width: int) -> Self:
        """Return the camera of the same picture scaled to another width; the height is scaled too and even.

        Distortion refers to angles and is not scaled. The centre moves by half a pixel, as (0, 0) is a pixel's
        centre.
        """
        height = max(2, 2 * round(self.height * width / self.width / 2))
        across, down = width / self.width, height / self.height
        at = ((self.cx + 0.5) * across - 0.5, (self.cy + 0.5) * down - 0.5)
        return replace(
            self, width=width, height=height, fx=self.fx * across, fy=self.fy * down, cx=at[0], cy=at[1]
        )

    @property
    def matrix(self) -> Floats:
        """Return the camera matrix (3, 3) of OpenCV."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])


@dataclass(frozen=True)
class Pinhole(_Parametric):
    """A pinhole with Brown-Conrady distortion (Brown 1966; the five coefficients of OpenCV, in its order)."""

    kind: ClassVar[str] = "pinhole"
    names: ClassVar[tuple[str, ...]] = ("fx", "fy", "cx", "cy", "k1", "k2", "p1", "p2", "k3")

    k1: float = 0.0
    k2: float = 0.0
    p1: float = 0.0
    p2: float = 0.0
    k3: float = 0.0

    def project(self, points: npt.ArrayLike) -> Reals:
        """Return pixels (n, 2) of points (n, 3); NaN behind the camera and where distortion folds back."""
        x, y, seen = unit_plane(points)
        r2 = x * x + y * y
        seen &= r2 < self._fold_r2
        u, v = x, y
        if any((self.k1, self.k2, self.p1, self.p2, self.k3)):
            radial = 1 + r2 * (self.k1 + r2 * (self.k2 + r2 * self.k3))
            u = x * radial + 2 * self.p1 * x * y + self.p2 * (r2 + 2 * x * x)
            v = y * radial + self.p1 * (r2 + 2 * y * y) + 2 * self.p2 * x * y
        return _pixels(self.fx * u + self.cx, self.fy * v + self.cy, seen)

    def rays(self, pixels: npt.ArrayLike) -> Floats:
        """Return unit rays (n, 3) of pixels (n, 2); NaN for pixels without a ray."""
        at = np.asarray(pixels, np.float64).reshape(-1, 1, 2)
        distortion = np.array([self.k1, self.k2, self.p1, self.p2, self.k3])
        ends = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 100, 1e-12)
        plane = cv2.undistortPointsIter(at, self.matrix, distortion, np.eye(3), np.eye(3), ends).reshape(
            -1, 2
        )
        rays = unit(np.column_stack((plane, np.ones(len(plane)))))
        off = np.linalg.norm(self.project(rays) - at[:, 0], axis=1)
        return np.where((off < 0.01)[:, None], rays, np.nan)

    @cached_property
    def _fold_r2(self) -> float:
        """The squared radius at which the radial polynomial stops growing."""
        return _least_positive_root([7 * self.k3, 5 * self.k2, 3 * self.k1, 1.0])


@dataclass(frozen=True)
class Fisheye(_Parametric):
    """A fisheye after Kannala and Brandt 2006, odd powers of the angle to the ninth (OpenCV's `fisheye`)."""

    kind: ClassVar[str] = "fisheye"
    names: ClassVar[tuple[str, ...]] = ("fx", "fy", "cx", "cy", "k1", "k2", "k3", "k4")

    k1: float = 0.0
    k2: float = 0.0
    k3: float = 0.0
    k4: float = 0.0

    def project(self, points: npt.ArrayLike) -> Reals:
        """Return pixels (n, 2) of points (n, 3); NaN beyond the angle where the model folds back."""
        at = reals(points)
        aside = np.hypot(at[:, 0], at[:, 1])
        theta = np.arctan2(aside, at[:, 2])
        seen = (theta < self._fold_rad) & np.any(at != 0, axis=1)
        scale = np.divide(self._bent(theta), aside, out=np.ones_like(aside), where=aside > 0)
        x, y = at[:, 0] * scale, at[:, 1] * scale
        return _pixels(self.fx * x + self.cx, self.fy * y + self.cy, seen)

    def rays(self, pixels: npt.ArrayLike) -> Floats:
        """Return unit rays (n, 3) of pixels (n, 2), by Newton on the angle; NaN beyond the fold."""
        at = np.asarray(pixels, np.float64)
        x, y = (at[:, 0] - self.cx) / self.fx, (at[:, 1] - self.cy) / self.fy
        bent = np.hypot(x, y)
        theta = np.minimum(bent, self._fold_rad)
        for _ in range(_NEWTON_STEPS):
            t2 = theta * theta
            slope = 1 + t2 * (3 * self.k1 + t2 * (5 * self.k2 + t2 * (7 * self.k3 + t2 * 9 * self.k4)))
            theta = np.clip(
                theta - (self._bent(theta) - bent) / np.where(np.abs(slope) < 1e-9, 1e-9, slope),
                0.0,
                self._fold_rad,
            )
        found = np.abs(self._bent(theta) - bent) < 1e-9
        scale = np.divide(np.sin(theta), bent, out=np.ones_like(bent), where=bent > 0)
        rays = np.stack((x * scale, y * scale, np.cos(theta)), axis=-1)
        return np.where(found[:, None], rays, np.nan)

    def _bent(self, theta: Reals) -> Reals:
        t2 = theta * theta
        return theta * (1 + t2 * (self.k1 + t2 * (self.k2 + t2 * (self.k3 + t2 * self.k4))))

    @cached_property
    def _fold_rad(self) -> float:
        """The angle at which the picture's radius stops growing; pi if it never does."""
        squared = _least_positive_root([9 * self.k4, 7 * self.k3, 5 * self.k2, 3 * self.k1, 1.0])
        return float(min(np.sqrt(squared), np.pi))


Lens = Pinhole | Fisheye
"""A camera model with parameters that can be estimated."""


def lens_of(kind: str, width: int, height: int, parameters: dict[str, float]) -> Lens:
    """Create a camera from the values of a result file. Raises BadModel for an unknown kind or parameter."""
    models = {model.kind: model for model in (Pinhole, Fisheye)}
    if kind not in models:
        raise BadModel(f"camera model {kind!r} is not one of {', '.join(models)}")
    model = models[kind]
    if set(parameters) != set(model.names):
        raise BadModel(
            f"a {kind} camera has the parameters {', '.join(model.names)}, not {sorted(parameters)}"
        )
    return model(width, height, **{name: float(value) for name, value in parameters.items()})


def _least_positive_root(polynomial: list[float]) -> float:
    """Return the smallest positive root of a polynomial (highest power first), else infinity."""
    roots = np.roots(polynomial)
    real = roots[np.isreal(roots) & (roots.real > 0)].real
    return float(real.min()) if len(real) else np.inf


def _pixels(columns: Reals, rows: Reals, seen: Mask) -> Reals:
    """Return pixels (n, 2), NaN where not seen."""
    # Stacking and masking take most of the time.
    pixels = np.empty((len(columns), 2), columns.dtype)
    pixels[:, 0], pixels[:, 1] = columns, rows
    if not seen.all():
        pixels[~seen] = np.nan
    return pixels


def unit_plane(points: npt.ArrayLike) -> tuple[Reals, Reals, Mask]:
    """Return x / z, y / z (n,) of points (n, 3), and which are in front of the camera."""
    at = reals(points)
    seen = at[:, 2] > 0
    depth = at[:, 2] if seen.all() else np.where(seen, at[:, 2], at.dtype.type(1))
    return at[:, 0] / depth, at[:, 1] / depth, seen


def reals(values: npt.ArrayLike) -> Reals:
    """Return numbers of single precision, as of depth pictures, unchanged, others as doubles."""
    array = np.asarray(values)
    return array if array.dtype == np.float32 else np.asarray(array, np.float64)


def unit(vectors: Floats) -> Floats:
    """Return vectors (n, 3) at length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
