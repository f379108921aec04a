"""Near depth (AHAT) without pixels beyond its range, which appear near because the measured phase wraps.

Brightness distinguishes them. The brightness of a surface falls with the square of its distance, so `depth^2 *
brightness` is its reflectance; if it were one range farther, it would reflect `((depth + range) / depth)^2` times as
much, 4 times at the end of the range and 20 times at 0.3 m. The reflectance of objects differs by as much, so a
single pixel is not enough. Whole surfaces are classified: a surface is near if parts of it, were they far, would be
twice as bright as bright surfaces of the picture. All others are removed, including black objects at arm's length.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from kitchensync.shell.array_types import Mask, UInt16

AHAT_ALIAS_MM = 1055
"Larger depths start again at 0."
NEAREST_MM = 120
"Smaller depths have wrapped, as hands are not that near."
STEP_MM, STEP_TIMES = 40, 2.0
"Step of depth, or factor of reflectance, from pixel to pixel at the edge of a surface."
TOO_BRIGHT, PART = 2.0, 0.1
"A surface is near if this part of it would, if far, be brighter than bright surfaces by this factor."
LEAST_PX = 50
"Minimum size of a surface."


@dataclass(frozen=True)
class Unwrapped:
    """AHAT depth without pixels that may have wrapped."""

    depth_mm: UInt16
    "As sent; 0 where it may have wrapped."
    wrapped: Mask
    "(h, w) pixels that are, or may be, beyond the range of the sensor."
    bright: float
    "The 90th percentile of reflectances, mm^2 times brightness, of this picture or of an earlier one."


def without_wrapped(
    depth_mm: UInt16, brightness: UInt16, alias_mm: float = AHAT_ALIAS_MM, bright: float = 0.0
) -> Unwrapped:
    """Set AHAT pixels (h, w) to 0 unless they are certainly near.

    `bright` is that of the result of earlier pictures: it depends on the lamp and the room, and cannot be measured
    in a picture with far surfaces only.
    """
    valid, depth = depth_mm > 0, depth_mm.astype(np.float32)
    if not valid.any():
        return Unwrapped(depth_mm, np.zeros_like(valid), bright)
    reflectance = depth * depth * brightness
    if_far = (depth + np.float32(alias_mm)) ** 2 * brightness
    bright = max(bright, float(np.percentile(reflectance[valid][::16], 90)))
    smooth = (depth_mm > 0).astype(np.uint8)
    shade = np.log(np.maximum(reflectance, 1))
    for values, step in ((depth_mm.astype(np.float32), STEP_MM), (shade, np.log(STEP_TIMES))):
        calm = cv2.medianBlur(values, 3)
        smooth[:, :-1][np.abs(np.diff(calm, axis=1)) > step] = 0
        smooth[:-1][np.abs(np.diff(calm, axis=0)) > step] = 0
    count, surface = cv2.connectedComponents(smooth, connectivity=4)
    size = np.bincount(surface.ravel(), minlength=count)
    proof = np.bincount(surface.ravel(), (if_far > TOO_BRIGHT * bright).ravel(), count)
    is_near = (proof > PART * size) & (size >= LEAST_PX)
    is_near[0] = False  # edges are not part of a surface
    near = is_near[surface]
    beside = cv2.dilate(near.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    near |= (surface == 0) & beside & (if_far > bright)
    wrapped = valid & ~(near & (depth_mm >= NEAREST_MM))
    return Unwrapped(np.where(wrapped, 0, depth_mm).astype(np.uint16), wrapped, bright)
