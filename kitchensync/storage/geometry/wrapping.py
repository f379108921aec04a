"""Near depth (AHAT) without what lies beyond its range and comes out near: it measures phase, which wraps.

Brightness tells them apart. That of a surface falls with the square of its distance, so `depth^2 * brightness` is its
reflectance; one range farther than its depth says it would have to reflect `((depth + range) / depth)^2` times as
much, 4 times at the end of the range and 20 times at 0.3 m. A single pixel says little, since things differ in
reflectance by as much. So a whole surface is judged: it is near when parts of it, were they far, would be twice as
bright as what is bright in the picture. All else is left out, black things at arm's length among it.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from kitchensync.shell.array_types import Mask, UInt16

AHAT_ALIAS_MM = 1055
"Depth beyond this starts again at 0."
NEAREST_MM = 120
"What says that it is nearer has wrapped: no hand is there."
STEP_MM, STEP_TIMES = 40, 2.0
"A surface ends where depth steps by this much from pixel to pixel, or reflectance by this factor."
TOO_BRIGHT, PART = 2.0, 0.1
"A surface is near when this part of it would, if it were far, be so many times brighter than what is bright."
LEAST_PX = 50
"Smaller pieces tell nothing."


@dataclass(frozen=True)
class Unwrapped:
    """AHAT depth with the doubt about its wrapping."""

    depth_mm: UInt16
    "As sent; 0 where it cannot be trusted."
    wrapped: Mask
    "(h, w) pixels that are farther than the sensor can count, or may be."
    bright: float
    "The 90th percentile of reflectances, mm^2 times brightness, of this picture or of an earlier one."


def without_wrapped(
    depth_mm: UInt16, brightness: UInt16, alias_mm: float = AHAT_ALIAS_MM, bright: float = 0.0
) -> Unwrapped:
    """Blank out AHAT pixels (h, w) that wrapped, or that nothing shows to be near.

    `bright` is the answer's of earlier pictures: what is bright is a matter of the lamp and the room, and a picture
    in which everything is far does not tell it.
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
    is_near[0] = False  # edges, which belong to no surface
    near = is_near[surface]
    beside = cv2.dilate(near.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    near |= (surface == 0) & beside & (if_far > bright)
    wrapped = valid & ~(near & (depth_mm >= NEAREST_MM))
    return Unwrapped(np.where(wrapped, 0, depth_mm).astype(np.uint16), wrapped, bright)
