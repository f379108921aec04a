"""What there is to see: a painted kitchen around one point, looked at in any direction.

Directions only: the eye stays at the room's viewing point, so that image rotation is exactly the gyro's.
"""

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from virtual_kitchen.world.motion import rotations
from virtual_kitchen.world.painting import paint_surfaces
from virtual_kitchen.world.room import look_up_surfaces

_WIDTH, _HEIGHT = 3072, 1536  # panorama: 8.5 pixels a degree
_GRID_PX = 8  # directions are exact on this grid and linear between: below 0.05 px off the poles

Image = npt.NDArray[np.uint8]
Maps = tuple[npt.NDArray[Any], npt.NDArray[Any]]  # float32


class Scene:
    """A seeded kitchen as an equirectangular picture: luma in full, chroma in half resolution."""

    def __init__(self, seed: int) -> None:
        picture = look_up_surfaces(paint_surfaces(seed), _WIDTH, _HEIGHT)
        planar = cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420)
        chroma = planar[_HEIGHT:].reshape(2, _HEIGHT // 2, _WIDTH // 2).transpose(1, 2, 0)
        self._luma = _wrapped(planar[:_HEIGHT])
        self._chroma = _wrapped(chroma)

    def render(
        self, orientation_wxyz: npt.NDArray[np.float64], width: int, height: int, focal_px: float
    ) -> Image:
        """Return the perspective view (height, width, 3) uint8 RGB of a camera (x right, y up, z back)."""
        planar = self.render_i420(orientation_wxyz, width, height, focal_px)
        return np.asarray(cv2.cvtColor(planar, cv2.COLOR_YUV2RGB_I420), np.uint8)

    def render_grey(
        self, orientation_wxyz: npt.NDArray[np.float64], width: int, height: int, focal_px: float
    ) -> Image:
        """Return the view without colour, (height, width) uint8."""
        rotation = rotations.matrices(np.asarray(orientation_wxyz, np.float64)[None])[0]
        maps = _panorama_maps(rotation, width, height, focal_px, 1)
        grey = cv2.remap(self._luma, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(grey, np.uint8)

    def render_i420(
        self, orientation_wxyz: npt.NDArray[np.float64], width: int, height: int, focal_px: float
    ) -> Image:
        """Return the view as planar 4:2:0, (height * 3 / 2, width) uint8; both sides even."""
        rotation = rotations.matrices(np.asarray(orientation_wxyz, np.float64)[None])[0]
        out = np.empty((height * 3 // 2, width), np.uint8)
        luma_maps = _panorama_maps(rotation, width, height, focal_px, 1)
        cv2.remap(self._luma, *luma_maps, cv2.INTER_LINEAR, dst=out[:height], borderMode=cv2.BORDER_REPLICATE)
        maps = _panorama_maps(rotation, width // 2, height // 2, focal_px / 2, 2)
        chroma = cv2.remap(self._chroma, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        quarter = width * height // 4
        flat = out[height:].reshape(-1)
        flat[:quarter] = chroma[:, :, 0].reshape(-1)
        flat[quarter:] = chroma[:, :, 1].reshape(-1)
        return out


def _wrapped(picture: npt.NDArray[Any]) -> Image:
    """Return the panorama with half a turn more at either side, so that no view meets its seam."""
    half = picture.shape[1] // 2
    return np.ascontiguousarray(np.concatenate((picture[:, half:], picture, picture[:, :half]), axis=1))


@lru_cache(maxsize=8)
def _camera_rays(width: int, height: int, focal_px: float) -> npt.NDArray[np.float64]:
    """Return directions (3, rows, columns) of every grid pixel in the camera frame."""
    u = np.arange(0, width + _GRID_PX, _GRID_PX) - (width - 1) / 2
    v = np.arange(0, height + _GRID_PX, _GRID_PX) - (height - 1) / 2
    x, y = np.meshgrid(u / focal_px, -v / focal_px)
    return np.stack((x, y, -np.ones_like(x)))


def _panorama_maps(
    rotation: npt.NDArray[np.float64], width: int, height: int, focal_px: float, shrink: int
) -> Maps:
    """Return where each pixel looks in the panorama shrunk by `shrink`: columns and rows, float32."""
    forward = -rotation[:, 2]
    centre = np.arctan2(forward[0], -forward[2])
    turn = np.array([[np.cos(centre), 0, np.sin(centre)], [0, 1, 0], [-np.sin(centre), 0, np.cos(centre)]])
    x, y, z = np.tensordot(turn @ rotation, _camera_rays(width, height, focal_px), axes=1)
    longitude = np.arctan2(x, -z) + centre
    latitude = np.arctan2(y, np.hypot(x, z))
    columns = (longitude / (2 * np.pi) + 1.0) * (_WIDTH / shrink) - 0.5
    rows = (0.5 - latitude / np.pi) * (_HEIGHT / shrink) - 0.5
    finer = np.array([[1 / _GRID_PX, 0, 0], [0, 1 / _GRID_PX, 0]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    full = [
        cv2.warpAffine(m.astype(np.float32), finer, (width, height), flags=flags) for m in (columns, rows)
    ]
    return full[0], full[1]
