"""How far the room's walls and counters are along rays, from anywhere in it: the truth of depth cameras."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from virtual_kitchen.world.room import (
    BACK,
    CEILING,
    COUNTER,
    COUNTER_EDGE_X,
    COUNTER_EDGE_Z,
    FLOOR,
    FRONT,
    LEFT,
    RIGHT,
)

Floats = npt.NDArray[np.float64]

_ROOM = (np.array([LEFT, FLOOR, FRONT]), np.array([RIGHT, CEILING, BACK]))
_COUNTERS = (
    (np.array([LEFT, FLOOR, FRONT]), np.array([COUNTER_EDGE_X, COUNTER, BACK])),
    (np.array([LEFT, FLOOR, FRONT]), np.array([RIGHT, COUNTER, COUNTER_EDGE_Z])),
)


Box = tuple[Floats, Floats]
"""Two opposite corners (3,) of something that stands about, its sides along the walls."""


def distance_m(origin: Floats, directions: Floats, things: Sequence[Box] = ()) -> Floats:
    """Return distances (n,) from a point in the room (3,) along unit rays (n, 3), metres from the viewing point."""
    with np.errstate(divide="ignore", invalid="ignore"):
        _, leaves = _slabs(*_ROOM, origin, directions)
        nearest = leaves
        for low, high in (*_COUNTERS, *things):
            enters, out = _slabs(low, high, origin, directions)
            nearest = np.where((enters > 0) & (enters < out), np.minimum(nearest, enters), nearest)
    return nearest


def off_surface_m(points: Floats, things: Sequence[Box] = ()) -> Floats:
    """Return how far points (n, 3) are from the nearest surface of the room."""
    inside = _signed(*_ROOM, points)
    off = np.abs(inside)
    for low, high in (*_COUNTERS, *things):
        off = np.minimum(off, np.abs(_signed(low, high, points)))
    return off


def _slabs(low: Floats, high: Floats, origin: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """Return where rays enter and leave a box (Kay and Kajiya 1986)."""
    one, other = (low - origin) / directions, (high - origin) / directions
    enters: Floats = np.nanmax(np.minimum(one, other), axis=1)
    leaves: Floats = np.nanmin(np.maximum(one, other), axis=1)
    return enters, leaves


def _signed(low: Floats, high: Floats, points: Floats) -> Floats:
    """Return the signed distance to a box: negative inside."""
    beyond = np.maximum(low - points, points - high)
    outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
    signed: Floats = outside + np.minimum(beyond.max(1), 0)
    return signed
