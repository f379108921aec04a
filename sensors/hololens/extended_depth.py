"""Extended depth, port 3821: any other depth camera, as a Zdepth blob or raw 16-bit picture.

The unit is the camera's own. The pose is the rig node. Width is rounded up by the stride mask.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from sensors.errors import BadPacket

NAME = "extended_depth"
PORT = 3821
SIZE = struct.Struct("<HH")
"width, height: the last four bytes of a payload."


class ExtendedDepthPacket(NamedTuple):
    """One depth packet."""

    image: memoryview
    "Zdepth blob or raw u16 picture."
    width: int
    height: int


def decode(payload: memoryview | bytes) -> ExtendedDepthPacket:
    """Cut a payload into picture and size, without copying; `BadPacket` when there is no picture."""
    view = memoryview(payload)
    if len(view) <= SIZE.size:
        raise BadPacket(NAME, f"{len(view)} bytes hold no picture")
    width, height = SIZE.unpack_from(view, len(view) - SIZE.size)
    return ExtendedDepthPacket(view[: -SIZE.size], width, height)


def encode(image: bytes | memoryview, width: int, height: int) -> bytes:
    """Put picture and size together: the inverse of `decode`."""
    return bytes(image) + SIZE.pack(width, height)


def raw_depth(packet: ExtendedDepthPacket) -> np.ndarray:
    """View a raw picture as (height, width) uint16 in the camera's unit."""
    if packet.width == 0 or len(packet.image) != 2 * packet.width * packet.height:
        raise BadPacket(NAME, f"{len(packet.image)} bytes for {packet.width}x{packet.height} pixels")
    return np.frombuffer(packet.image, "<u2").reshape(packet.height, packet.width)
