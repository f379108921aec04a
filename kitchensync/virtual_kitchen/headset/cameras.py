"""The Research Mode cameras: where they sit, their optics, and the constants that mode 2 downloads.

All are pinholes without distortion, since that is how the world is rendered for them. Camera frame: x right, y down,
z forward in the image as sent; the grey cameras are mounted with a quarter turn.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.world.rotations import Floats

_CLOCKWISE = np.array(
    [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
)  # from upright to an image that needs this turn
_UPRIGHT = np.eye(3)
_CAMERA_FROM_HEAD = np.diag([1.0, -1.0, -1.0])


@dataclass(frozen=True)
class RigCamera:
    """One camera; `place_m` is its place in the rig, whose axes are x right, y up, z back."""

    name: str
    port: int
    width: int
    height: int
    focal_px: float
    yaw_deg: float  # to the left
    pitch_deg: float  # up
    turn: int  # turn that makes its image upright: 1 clockwise, -1 counter-clockwise, 0 none
    place_m: tuple[float, float, float]
    extra: tuple[float, ...] = ()  # scale, alias

    @property
    def centre_px(self) -> tuple[float, float]:
        """Return the principal point."""
        return (self.width - 1) / 2, (self.height - 1) / 2

    @property
    def from_rig(self) -> Floats:
        """Return rig to camera for column vectors, (3, 3)."""
        yaw, pitch = np.radians(self.yaw_deg), np.radians(self.pitch_deg)
        about_y = np.array([[np.cos(yaw), 0, np.sin(yaw)], [0, 1, 0], [-np.sin(yaw), 0, np.cos(yaw)]])
        about_x = np.array([[1, 0, 0], [0, np.cos(pitch), -np.sin(pitch)], [0, np.sin(pitch), np.cos(pitch)]])
        turn = {1: _CLOCKWISE, 0: _UPRIGHT, -1: _CLOCKWISE.T}[self.turn]
        matrix: Floats = turn @ _CAMERA_FROM_HEAD @ (about_y @ about_x).T
        return matrix

    def extrinsics(self) -> Floats:
        """Return rig to camera as a 4x4 matrix for row vectors."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.from_rig.T
        matrix[3, :3] = -(self.from_rig @ np.array(self.place_m))
        return matrix

    def to_unit_plane(self, points: Floats) -> Floats:
        """Map pixels (n, 2) to rays at z = 1; those outside the image give 0, 0."""
        rays = (points - self.centre_px) / self.focal_px
        return np.where(self._inside(points), rays, 0.0)

    def to_pixels(self, rays: Floats) -> Floats:
        """Map rays at z = 1, (n, 2), to pixels; those outside the image give -1, -1."""
        points = rays * self.focal_px + self.centre_px
        return np.where(self._inside(points), points, -1.0)

    def _inside(self, points: Floats) -> npt.NDArray[np.bool_]:
        """Return which pixels are in the image, (n, 1)."""
        limits = np.array([self.width, self.height]) - 0.5
        inside: npt.NDArray[np.bool_] = np.all((points >= -0.5) & (points <= limits), axis=1, keepdims=True)
        return inside

    def orientation(self) -> Floats:
        """Return the quaternion (1, 4) from the renderer's camera (x right, y up, z back) to the rig."""
        return _quaternion(self.from_rig.T @ _CAMERA_FROM_HEAD)


def _quaternion(m: Floats) -> Floats:
    """Return the unit quaternion (1, 4) of a rotation matrix: the eigenvector of Bar-Itzhack's symmetric form."""
    k = np.array(
        [
            [m[0, 0] - m[1, 1] - m[2, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[2, 1] - m[1, 2]],
            [m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], m[1, 2] + m[2, 1], m[0, 2] - m[2, 0]],
            [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
        ]
    )
    x, y, z, w = np.linalg.eigh(k)[1][:, -1]
    return np.array([[w, x, y, z]])


VLC = (
    RigCamera("vlc_leftfront", 3800, 640, 480, 366.0, 9.0, -2.0, 1, (-0.052, 0.010, -0.065)),
    RigCamera("vlc_leftleft", 3801, 640, 480, 367.5, 58.0, -12.0, -1, (-0.078, 0.004, -0.030)),
    RigCamera("vlc_rightfront", 3802, 640, 480, 365.2, -9.0, -2.0, -1, (0.052, 0.010, -0.065)),
    RigCamera("vlc_rightright", 3803, 640, 480, 366.9, -58.0, -12.0, 1, (0.078, 0.004, -0.030)),
)
AHAT = RigCamera("depth_ahat", 3804, 512, 512, 190.0, 0.0, -25.0, 0, (0.0, 0.015, -0.070), (1000.0, 1055.0))
LONGTHROW = RigCamera(
    "depth_longthrow", 3805, 320, 288, 200.0, 0.0, -25.0, 0, (0.0, 0.015, -0.070), (1000.0,)
)
BY_PORT = {camera.port: camera for camera in (*VLC, AHAT, LONGTHROW)}


@lru_cache(maxsize=6)
def constants(camera: RigCamera) -> bytes:
    """Return the answer to mode 2: uv2x, uv2y, extrinsics, scale and alias if any, mapx, mapy, k; all float32."""
    u, v = np.meshgrid(np.arange(camera.width), np.arange(camera.height))
    cx, cy = camera.centre_px
    parts = (
        (u - cx) / camera.focal_px, (v - cy) / camera.focal_px, camera.extrinsics(), np.array(camera.extra),
        u, v, np.array([camera.focal_px, camera.focal_px, cx, cy]),
    )  # fmt: skip
    return b"".join(part.astype("<f4").tobytes() for part in parts)
