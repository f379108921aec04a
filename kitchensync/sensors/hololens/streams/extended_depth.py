"""Extended depth: any other depth camera, as a Zdepth blob or a raw 16-bit frame.

The unit is that of the camera. The pose is that of the rig node. Width is rounded up by the stride mask.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens import wire, zdepth
from kitchensync.sensors.hololens.encoding import ZDEPTH_LOSSES, opened
from kitchensync.sensors.hololens.headset_stream import DEPTH, RAW, HeadsetStream, PictureUnit
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.stream import Format

NAME = "extended_depth"
SIZE = struct.Struct("<HH")
"width, height: the last four bytes of a payload."


class ExtendedDepthPacket(NamedTuple):
    """One depth packet."""

    image: memoryview
    "Zdepth blob or raw u16 frame."
    width: int
    height: int


def decode(payload: memoryview | bytes) -> ExtendedDepthPacket:
    """Split a payload into frame and size, without copying. Raises `BadPacket` without a frame."""
    view = memoryview(payload)
    if len(view) <= SIZE.size:
        raise BadPacket(NAME, f"{len(view)} bytes contain no frame")
    width, height = SIZE.unpack_from(view, len(view) - SIZE.size)
    return ExtendedDepthPacket(view[: -SIZE.size], width, height)


def encode(image: bytes | memoryview, width: int, height: int) -> bytes:
    """Encode frame and size, the inverse of `decode`."""
    return bytes(image) + SIZE.pack(width, height)


def raw_depth(packet: ExtendedDepthPacket) -> np.ndarray:
    """View a raw frame as (height, width) uint16 in the camera's unit."""
    if packet.width == 0 or len(packet.image) != 2 * packet.width * packet.height:
        raise BadPacket(NAME, f"{len(packet.image)} bytes for {packet.width}x{packet.height} pixels")
    return np.frombuffer(packet.image, "<u2").reshape(packet.height, packet.width)


def configuration(depth_profile: int, media_index: int) -> bytes:
    """Mode 1, divisor 1, depth packing, media format index, stride mask."""
    return bytes([c.Mode.CONTINUOUS_WITH_POSE, 1, depth_profile]) + wire.encoder_options(
        {
            c.EncoderOption.MEDIA_INDEX: media_index,
            c.EncoderOption.STRIDE_MASK: c.STRIDE_MASK_DEFAULT,
        }
    )


def _configure(p: Profile) -> bytes:
    depth = c.DepthProfile.ZDEPTH if p.extended_depth == "zdepth" else c.DepthProfile.SAME
    return opened(configuration(depth, p.extended_depth_media), wire.mrc_video())


def _details(p: Profile) -> Format:
    losses = list(ZDEPTH_LOSSES) if p.extended_depth == "zdepth" else []
    return {"codec": p.extended_depth, "unit": "as the camera's", "loses": losses}


def _check(payload: bytes, form: Format) -> None:
    packet = decode(payload)
    if form.get("codec", RAW) == RAW:
        raw_depth(packet)
    else:
        zdepth.header(packet.image)


def _cut(payload: bytes) -> PictureUnit:
    packet = decode(payload)
    return PictureUnit(packet.image, (packet.width, packet.height))


def _depth(unit: PictureUnit, picture: Any, form: Format) -> tuple[np.ndarray, None]:
    if form.get("codec") == RAW:
        return raw_depth(ExtendedDepthPacket(unit.image, *unit.metadata)), None
    return zdepth.depth(unit.image), None


STREAM = HeadsetStream(
    NAME,
    nominal_hz=30.0,
    max_payload_bytes=4 << 20,
    adaptive=True,
    port=3821,
    module=__name__,
    kind=DEPTH,
    opens_a_device=True,
    configure=_configure,
    details=_details,
    bits_per_s=lambda p: 8e6,
    check=_check,
    decode=decode,
    encode=encode,
    cut=_cut,
    depth=_depth,
    farthest_mm=4000.0,
)
