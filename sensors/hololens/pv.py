"""Front RGB camera, port 3810: one encoded picture a packet, with the lens and light it was taken with.

The pose of a packet is the camera in the world; camera frame +x right, +y up, -z forward. With row vectors
the projection is K = [[-fx,0,0,0],[0,fy,0,0],[cx,cy,1,0],[0,0,0,1]]; to OpenCV: flip y and z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sensors.errors import BadPacket

NAME = "pv"
PORT = 3810

METADATA = np.dtype(
    [
        ("focal_length", "<f4", (2,)),  # fx, fy, pixels; changes with focus
        ("principal_point", "<f4", (2,)),  # cx, cy, pixels
        ("exposure_time", "<u8"),  # 100 ns
        ("exposure_compensation", "<u8", (2,)),  # as the OS gives it: flags, i32 value in the low half
        ("lens_position", "<u4"),
        ("focus_state", "<u4"),  # 0 uninitialised, 1 lost, 2 searching, 3 focused, 4 failed
        ("iso_speed", "<u4"),
        ("white_balance", "<u4"),  # kelvin
        ("iso_gains", "<f4", (2,)),  # analog, digital
        ("white_balance_gains", "<f4", (3,)),  # R, G, B
        ("width", "<u2"),  # pixels actually delivered
        ("height", "<u2"),
    ]
)
"The last 80 bytes of every payload."


class PvPacket(NamedTuple):
    """One front-camera packet."""

    picture: memoryview
    "H.264 or H.265 access unit (Annex B), or raw NV12 with rows padded to `raw_stride`."
    metadata: np.void
    "A record of dtype `METADATA`."


def decode(payload: memoryview | bytes) -> PvPacket:
    """Cut a payload into picture and metadata, without copying; `BadPacket` when either is missing."""
    view = memoryview(payload)
    if len(view) <= METADATA.itemsize:
        raise BadPacket(NAME, f"{len(view)} bytes hold no picture")
    return PvPacket(view[: -METADATA.itemsize], np.frombuffer(view[-METADATA.itemsize :], METADATA)[0])


def encode(picture: bytes | memoryview, metadata: np.ndarray | np.void) -> bytes:
    """Put picture and metadata together: the inverse of `decode`."""
    return bytes(picture) + np.asarray(metadata, METADATA).tobytes()


def raw_stride(picture_bytes: int, height: int) -> int:
    """Bytes of one row of a raw NV12 picture: bytes / (height x 3/2)."""
    rows = height * 3 // 2
    if rows == 0 or picture_bytes % rows:
        raise BadPacket(NAME, f"{picture_bytes} bytes are no NV12 picture of {height} rows")
    return picture_bytes // rows


def raw_picture(packet: PvPacket) -> np.ndarray:
    """View a raw picture as NV12, uint8 (height x 3/2, width): luma rows, then interleaved U V rows."""
    height, width = int(packet.metadata["height"]), int(packet.metadata["width"])
    stride = raw_stride(len(packet.picture), height)
    if width > stride:
        raise BadPacket(NAME, f"rows of {stride} bytes cannot hold {width} pixels")
    return np.frombuffer(packet.picture, np.uint8).reshape(-1, stride)[:, :width]
