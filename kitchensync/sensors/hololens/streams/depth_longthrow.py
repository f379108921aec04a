"""Far depth (Long Throw): 320x288 depth and active brightness (AB), 1 to 5 Hz, as PNG.

Depth is radial, in millimetres, 0 = invalid. The pose of a packet is that of the rig node.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens.constants import LONGTHROW_HEIGHT, LONGTHROW_WIDTH
from kitchensync.sensors.hololens.encoding import SCALE, camera_constants
from kitchensync.sensors.hololens.headset_stream import DEPTH, HeadsetStream, PictureUnit
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.stream import Format

NAME = "depth_longthrow"
SENSOR_TICKS = struct.Struct("<Q")
_PNG = b"\x89PNG\r\n\x1a\n"
_CHUNK_FRAME_BYTES = 12  # length, name and checksum of a chunk
_HEADER_CHUNK = b"IHDR" + struct.pack(">IIBB", LONGTHROW_WIDTH, LONGTHROW_HEIGHT, 8, 6)  # 8 bits, RGBA


class LongThrowPacket(NamedTuple):
    """One depth packet."""

    png: memoryview
    sensor_ticks: int
    "62.976 MHz clocks."


def decode(payload: memoryview | bytes) -> LongThrowPacket:
    """Split a payload into PNG and timestamp, without copying. Raises `BadPacket` without a PNG."""
    view = memoryview(payload)
    if len(view) < len(_PNG) + SENSOR_TICKS.size or view[: len(_PNG)] != _PNG:
        raise BadPacket(NAME, f"{len(view)} bytes contain no PNG")
    (ticks,) = SENSOR_TICKS.unpack_from(view, len(view) - SENSOR_TICKS.size)
    return LongThrowPacket(view[: -SENSOR_TICKS.size], ticks)


def encode(png: bytes | memoryview, sensor_ticks: int) -> bytes:
    """Encode PNG and timestamp, the inverse of `decode`."""
    return bytes(png) + SENSOR_TICKS.pack(sensor_ticks)


def images(png: bytes | memoryview) -> tuple[np.ndarray, np.ndarray]:
    """Decode a PNG into depth mm and AB, both uint16 (288, 320). Raises `BadPacket`.

    The 320x288 BGRA bytes are the depth rows, then the AB rows, two in each row of the image. OpenCV returns BGRA in
    that order.
    """
    import cv2

    _check_chunks(memoryview(png))
    try:
        bgra = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise BadPacket(NAME, f"the PNG cannot be decoded ({error.code})") from error
    if bgra is None or bgra.shape != (LONGTHROW_HEIGHT, LONGTHROW_WIDTH, 4) or bgra.dtype != np.uint8:
        raise BadPacket(NAME, "the PNG cannot be decoded to 320x288 pixels of 8-bit RGBA")
    both = np.ascontiguousarray(bgra).view("<u2").reshape(2, LONGTHROW_HEIGHT, LONGTHROW_WIDTH)
    return both[0], both[1]


def _check_chunks(png: memoryview) -> None:
    """Check size and chunks of a PNG, for which the decoder could otherwise allocate gigabytes. Raises BadPacket."""
    if bytes(png[12 : 12 + len(_HEADER_CHUNK)]) != _HEADER_CHUNK:
        raise BadPacket(NAME, "the PNG is not one of 320x288 pixels of 8-bit RGBA")
    at = len(_PNG)
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        at += _CHUNK_FRAME_BYTES + size
    if at != len(png):
        raise BadPacket(NAME, "the PNG's chunks do not fit in it")


def pack(depth_mm: np.ndarray, ab: np.ndarray) -> bytes:
    """Encode depth and AB, (288, 320) uint16, as the headset's PNG, the inverse of `images`."""
    import cv2

    both = np.stack([depth_mm, ab]).astype("<u2")
    bgra = both.view(np.uint8).reshape(LONGTHROW_HEIGHT, LONGTHROW_WIDTH, 4)
    return bytes(cv2.imencode(".png", bgra)[1])


def configuration(png_filter: int = c.PNG_FILTER_PAETH) -> bytes:
    """Return the configuration: mode 1, divisor 1, PNG filter (which changes only the size)."""
    return struct.pack("<BBI", c.Mode.CONTINUOUS_WITH_POSE, 1, png_filter)


def _check(payload: bytes, form: Format) -> None:
    decode(payload)


def _cut(payload: bytes) -> PictureUnit:
    packet = decode(payload)
    return PictureUnit(packet.png, None, packet.sensor_ticks)


def _depth(unit: PictureUnit, picture: Any, form: Format) -> tuple[np.ndarray, np.ndarray]:
    return images(unit.image)


def _details(p: Profile) -> Format:
    return {
        "codec": "png",
        "width": LONGTHROW_WIDTH,
        "height": LONGTHROW_HEIGHT,
        "packing": "bgra pixels hold pairs of u16: depth, then brightness",
        "unit": "mm",
        "loses": [],
    }


STREAM = HeadsetStream(
    NAME,
    nominal_hz=5.0,
    max_payload_bytes=1 << 20,
    adaptive=True,
    port=3805,
    module=__name__,
    kind=DEPTH,
    excludes=("depth_ahat",),
    unsteady_with=("pv",),
    opens_a_device=True,
    in_pose_table=True,
    configure=lambda p: configuration(),
    details=_details,
    bits_per_s=lambda p: 7e6,
    constants=camera_constants(LONGTHROW_HEIGHT, LONGTHROW_WIDTH, SCALE),
    check=_check,
    decode=decode,
    encode=encode,
    cut=_cut,
    depth=_depth,
    farthest_mm=4000.0,
)
