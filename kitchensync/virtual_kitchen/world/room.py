"""The shape of the room: the surface in a direction, and distances along rays as true depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

LEFT, RIGHT, FRONT, BACK = -2.2, 2.2, -1.1, 2.4  # walls, from the eye
COUNTER_EDGE_X, COUNTER_EDGE_Z = -1.35, -0.42  # cabinets stand along the front and the left wall
COUNTER, FLOOR, CEILING = -0.72, -1.62, 0.98  # from the eye, which `motion` places 1.62 m above the floor
PX_PER_M = 450


@dataclass(frozen=True, slots=True)
class PaintedSurface:
    """A flat painted surface: `u0`, `v0` are its left and top edge in its own two axes, metres."""

    picture: npt.NDArray[np.uint8]
    u0: float
    v0: float


def extents() -> dict[str, tuple[float, float, float, float]]:
    """Return u0, v0, width, height in metres of each surface; v runs down."""
    wide, deep, high = RIGHT - LEFT, BACK - FRONT, CEILING - COUNTER
    return {
        "front": (LEFT, -CEILING, wide, high),
        "back": (LEFT, -CEILING, wide, CEILING - FLOOR),
        "left": (FRONT, -CEILING, deep, high),
        "right": (FRONT, -CEILING, deep, CEILING - FLOOR),
        "counter": (LEFT, FRONT, wide, deep),
        "cabinets_front": (LEFT, -COUNTER, wide, COUNTER - FLOOR),
        "cabinets_left": (FRONT, -COUNTER, deep, COUNTER - FLOOR),
        "floor": (LEFT, FRONT, wide, deep),
        "ceiling": (LEFT, FRONT, wide, deep),
    }


def look_up_surfaces(surfaces: dict[str, PaintedSurface], width: int, height: int) -> npt.NDArray[np.uint8]:
    """Return the panorama (height, width, 3): column 0 is the back, the middle is the front (-z)."""
    longitude = ((np.arange(width) + 0.5) / width * 2 - 1).astype(np.float32) * np.float32(np.pi)
    latitude = (0.5 - (np.arange(height) + 0.5) / height).astype(np.float32) * np.float32(np.pi)
    panorama = np.zeros((height, width, 3), np.uint8)
    band = 128
    for top in range(0, height, band):
        lat = latitude[top : top + band, None]
        x, y, z = np.cos(lat) * np.sin(longitude), np.sin(lat), -np.cos(lat) * np.cos(longitude)
        _paint_band(panorama[top : top + band], surfaces, x, np.broadcast_to(y, x.shape), z)
    return panorama


def _paint_band(
    band: npt.NDArray[np.uint8], surfaces: dict[str, PaintedSurface], x: Floats, y: Floats, z: Floats
) -> None:
    for name, (where, u, v) in _meet(x, y, z).items():
        if not where.any():
            continue
        surface = surfaces[name]
        columns = ((u - surface.u0) * PX_PER_M - 0.5).astype(np.float32)
        rows = ((v - surface.v0) * PX_PER_M - 0.5).astype(np.float32)
        seen = cv2.remap(surface.picture, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        band[where] = seen[where]


def _reach(direction: Floats, low: float, high: float) -> Floats:
    """Return the distance along the direction to the exit of the slab between two walls."""
    with np.errstate(divide="ignore"):
        return np.where(direction > 0, high / direction, low / direction)


def _meet(x: Floats, y: Floats, z: Floats) -> dict[str, tuple[npt.NDArray[np.bool_], Floats, Floats]]:
    """Return for each surface the directions that meet it and the points (u, v) on it, metres."""
    to_x, to_z, to_y = _reach(x, LEFT, RIGHT), _reach(z, FRONT, BACK), _reach(y, COUNTER, CEILING)
    to_wall = np.minimum(to_x, to_z)
    high = to_wall < to_y  # the ray meets a wall above the counter
    below = ~high & (y < 0)
    px, pz = x * to_y, z * to_y
    open_floor = below & (px > COUNTER_EDGE_X) & (pz > COUNTER_EDGE_Z)
    low_x, low_z = _reach(x, COUNTER_EDGE_X, RIGHT), _reach(z, COUNTER_EDGE_Z, BACK)
    to_floor = _reach(y, FLOOR, CEILING)
    on_floor = open_floor & (to_floor < np.minimum(low_x, low_z))
    low_wall = open_floor & ~on_floor
    by_x, by_low_x = to_x < to_z, low_x < low_z
    wall_x = (high & by_x) | (low_wall & by_low_x & (x > 0))
    wall_z = (high & ~by_x) | (low_wall & ~by_low_x & (z > 0))
    return {
        "front": (wall_z & (z < 0), x * to_z, -y * to_z),
        "back": (wall_z & (z > 0), -x * to_z, -y * to_z),
        "left": (wall_x & (x < 0), -z * to_x, -y * to_x),
        "right": (wall_x & (x > 0), z * to_x, -y * to_x),
        "counter": (below & ~open_floor, px, pz),
        "cabinets_front": (low_wall & ~by_low_x & (z < 0), x * low_z, -y * low_z),
        "cabinets_left": (low_wall & by_low_x & (x < 0), -z * low_x, -y * low_x),
        "floor": (on_floor, x * to_floor, z * to_floor),
        "ceiling": (~high & (y > 0), px, pz),
    }


Floats64 = npt.NDArray[np.float64]

_ROOM = (np.array([LEFT, FLOOR, FRONT]), np.array([RIGHT, CEILING, BACK]))
_COUNTERS = (
    (np.array([LEFT, FLOOR, FRONT]), np.array([COUNTER_EDGE_X, COUNTER, BACK])),
    (np.array([LEFT, FLOOR, FRONT]), np.array([RIGHT, COUNTER, COUNTER_EDGE_Z])),
)


Box = tuple[Floats64, Floats64]
"""Two opposite corners (3,) of a box-shaped object, its sides parallel to the walls."""


def distance_m(origin: Floats64, directions: Floats64, things: Sequence[Box] = ()) -> Floats64:
    """Return distances (n,) from a point in the room (3,) along unit rays (n, 3), metres from the viewing point."""
    with np.errstate(divide="ignore", invalid="ignore"):
        _, leaves = _slabs(*_ROOM, origin, directions)
        nearest = leaves
        for low, high in (*_COUNTERS, *things):
            enters, out = _slabs(low, high, origin, directions)
            nearest = np.where((enters > 0) & (enters < out), np.minimum(nearest, enters), nearest)
    return nearest


def off_surface_m(points: Floats64, things: Sequence[Box] = ()) -> Floats64:
    """Return the distances of points (n, 3) to the nearest surface of the room."""
    inside = _signed(*_ROOM, points)
    off = np.abs(inside)
    for low, high in (*_COUNTERS, *things):
        off = np.minimum(off, np.abs(_signed(low, high, points)))
    return off


def _slabs(
    low: Floats64, high: Floats64, origin: Floats64, directions: Floats64
) -> tuple[Floats64, Floats64]:
    """Return the distances at which rays enter and leave a box (Kay and Kajiya 1986)."""
    first, second = (low - origin) / directions, (high - origin) / directions
    enters: Floats64 = np.nanmax(np.minimum(first, second), axis=1)
    leaves: Floats64 = np.nanmin(np.maximum(first, second), axis=1)
    return enters, leaves


def _signed(low: Floats64, high: Floats64, points: Floats64) -> Floats64:
    """Return the signed distance to a box: negative inside."""
    beyond = np.maximum(low - points, points - high)
    outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
    signed: Floats64 = outside + np.minimum(beyond.max(1), 0)
    return signed
