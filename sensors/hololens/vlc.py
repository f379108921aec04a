"""The four grey cameras, ports 3800-3803: 640x480, 30 a second, one encoded picture a packet.

The sensors are mounted turned: turn left-front and right-right by 90 degrees clockwise, left-left and
right-front counter-clockwise, to see them upright. Calibration holds for the picture as sent.
The pose of a packet is the rig node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sensors.errors import BadPacket

NAMES = ("vlc_leftfront", "vlc_leftleft", "vlc_rightfront", "vlc_rightright")
PORTS = (3800, 3801, 3802, 3803)

METADATA = np.dtype(
    [
        ("sensor_ticks", "<u8"),  # ns of the sensor's clock: the better key to pair the four
        ("exposure_ns", "<u8"),
        ("gain", "<u4"),  # sensor units
        ("reserved", "<u4"),
    ]
)
"The last 24 bytes of every payload."


class VlcPacket(NamedTuple):
    """One grey-camera packet."""

    picture: memoryview
    "Access unit whose luma is the picture (chroma 128), or 640x480 raw bytes."
    metadata: np.void


def decode(payload: memoryview | bytes) -> VlcPacket:
    """Cut a payload into picture and metadata, without copying; `BadPacket` when either is missing."""
    view = memoryview(payload)
    if len(view) <= METADATA.itemsize:
        raise BadPacket("vlc", f"{len(view)} bytes hold no picture")
    return VlcPacket(view[: -METADATA.itemsize], np.frombuffer(view[-METADATA.itemsize :], METADATA)[0])


def encode(picture: bytes | memoryview, metadata: np.ndarray | np.void) -> bytes:
    """Put picture and metadata together: the inverse of `decode`."""
    return bytes(picture) + np.asarray(metadata, METADATA).tobytes()
