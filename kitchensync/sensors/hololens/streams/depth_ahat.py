"""Near depth (AHAT): 512x512 depth and active brightness (AB), up to 45 Hz.

Depth is radial, in millimetres, 0 = invalid, and wraps at 1055 mm (phase ambiguity). Packed in a video frame it has
steps of 4 mm and wraps at 1024 mm; AB has half the columns and is the square of 8 bits. The pose of a packet is that
of the rig node. The device lowers its rate to 15 or 5 Hz when it sees no hands.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens import wire, zdepth
from kitchensync.sensors.hololens.constants import AHAT_HEIGHT, AHAT_HZ, AHAT_WIDTH
from kitchensync.sensors.hololens.encoding import (
    SCALE,
    ZDEPTH_LOSSES,
    bits_per_second,
    camera_constants,
    check_unit,
    describe_video,
    key_frame_period,
)
from kitchensync.sensors.hololens.headset_stream import DEPTH, RAW, ConstantField, HeadsetStream, PictureUnit
from kitchensync.sensors.hololens.profile import VIDEO_PROFILES, Profile
from kitchensync.sensors.stream import Format

NAME = "depth_ahat"
SIZES = struct.Struct("<II")
"size_z (Zdepth blob), size_ab (second part)."
SENSOR_TICKS = struct.Struct("<Q")

PIXELS = AHAT_HEIGHT * AHAT_WIDTH
DEPTH_STEP_MM = 4  # the headset shifts millimetres right by two bits to fit in a byte


class AhatPacket(NamedTuple):
    """One depth packet."""

    size_z: int
    size_ab: int
    zdepth: memoryview
    "Zdepth blob, empty unless configured."
    image: memoryview
    "One access unit of a 512x512 NV12 frame, or raw bytes: depth u16 then AB u16. Empty: skip the packet."
    sensor_ticks: int
    "62.976 MHz clocks."


def decode(payload: memoryview | bytes) -> AhatPacket:
    """Split a payload into its parts, without copying. Raises `BadPacket` if the sizes do not fit."""
    view = memoryview(payload)
    least = SIZES.size + SENSOR_TICKS.size
    if len(view) < least:
        raise BadPacket(NAME, f"{len(view)} bytes, at least {least} are needed")
    size_z, size_ab = SIZES.unpack_from(view)
    if least + size_z + size_ab != len(view):
        raise BadPacket(NAME, f"parts of {size_z} and {size_ab} bytes in a payload of {len(view)}")
    middle = SIZES.size + size_z
    (ticks,) = SENSOR_TICKS.unpack_from(view, len(view) - SENSOR_TICKS.size)
    return AhatPacket(size_z, size_ab, view[SIZES.size : middle], view[middle : middle + size_ab], ticks)


def encode(image: bytes | memoryview, sensor_ticks: int, blob: bytes | memoryview = b"") -> bytes:
    """Encode frame, timestamp and Zdepth blob, the inverse of `decode`."""
    sizes = SIZES.pack(len(blob), len(image))
    return sizes + bytes(blob) + bytes(image) + SENSOR_TICKS.pack(sensor_ticks)


def raw_images(image: memoryview | bytes) -> tuple[np.ndarray, np.ndarray]:
    """View a raw image as depth (512, 512) uint16 mm and AB (512, 512) uint16."""
    if len(image) != 4 * PIXELS:
        raise BadPacket(NAME, f"raw image of {len(image)} bytes instead of {4 * PIXELS}")
    both = np.frombuffer(image, "<u2").reshape(2, AHAT_HEIGHT, AHAT_WIDTH)
    return both[0], both[1]


def unpack_nv12(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unpack a decoded NV12 frame, uint8 (768, 512), into depth mm and AB, both uint16 (512, 512).

    depth = luma x 4. The chroma bytes in sequence are sqrt(AB) of the even columns, row by row; each is used for two
    columns.
    """
    if picture.shape != (AHAT_HEIGHT * 3 // 2, AHAT_WIDTH):
        raise BadPacket(NAME, f"NV12 frame of shape {picture.shape}")
    depth = picture[:AHAT_HEIGHT].astype(np.uint16) * DEPTH_STEP_MM
    root = picture[AHAT_HEIGHT:].reshape(AHAT_HEIGHT, AHAT_WIDTH // 2).astype(np.uint16)
    return depth, np.repeat(root * root, 2, axis=1)


def unpack_planes(luma: np.ndarray, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unpack planar 4:2:0, uint8 (512, 512) and twice (256, 256), like `unpack_nv12`."""
    chroma = np.stack([u, v], axis=-1).reshape(AHAT_HEIGHT // 2, AHAT_WIDTH)
    return unpack_nv12(np.concatenate([luma, chroma]))


def unpack_frame(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """Unpack a frame decoded by PyAV (`av.VideoFrame`) into depth mm and AB, both uint16 (512, 512)."""
    if (frame.width, frame.height) != (AHAT_WIDTH, AHAT_HEIGHT):
        raise BadPacket(NAME, f"the decoded frame is {frame.width}x{frame.height}")
    if frame.format.name not in ("yuv420p", "yuvj420p", "nv12"):
        raise BadPacket(NAME, f"the decoded frame is {frame.format.name}")
    planes = frame.to_ndarray()
    if frame.format.name == "nv12":
        return unpack_nv12(planes)
    u, v = planes[AHAT_HEIGHT:].reshape(2, AHAT_HEIGHT // 2, AHAT_WIDTH // 2)
    return unpack_planes(planes[:AHAT_HEIGHT], u, v)


def configuration(video_profile: int, depth_profile: int = c.DepthProfile.SAME) -> bytes:
    """Return the configuration: mode 1, divisor 1, depth packing, encoding, one key frame per second (1 for raw)."""
    shared = depth_profile == c.DepthProfile.SAME
    rate = bits_per_second(AHAT_WIDTH, AHAT_HEIGHT, AHAT_HZ, video_profile, shared=shared)
    return (
        bytes([c.Mode.CONTINUOUS_WITH_POSE, 1, depth_profile])
        + wire.video_encoding(video_profile, c.LEVEL_DEFAULT, rate)
        + wire.encoder_options({c.EncoderOption.GOP_SIZE: key_frame_period(video_profile, AHAT_HZ)})
    )


def _check(payload: bytes, form: Format) -> None:
    packet = decode(payload)
    if packet.size_z:
        zdepth.header(packet.zdepth)
    if packet.size_ab == 0:
        return
    if form.get("codec", RAW) != RAW:
        check_unit(NAME, packet.image)
    elif not packet.size_z:
        raw_images(packet.image)


def _cut(payload: bytes) -> PictureUnit:
    packet = decode(payload)
    blob = packet.zdepth if packet.size_z else None
    return PictureUnit(packet.image, None, packet.sensor_ticks, blob)


def _depth(unit: PictureUnit, picture: Any, form: Format) -> tuple[np.ndarray, np.ndarray]:
    if unit.zdepth is None:
        return raw_images(unit.image) if picture is None else unpack_frame(picture)
    depth = zdepth.depth(unit.zdepth)
    if picture is None:
        return depth, np.frombuffer(unit.image, "<u2").reshape(depth.shape)
    plane = picture.planes[0]
    luma = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
    return depth, luma.astype(np.uint16) ** 2


_LOSSES = [
    "depth in 4 mm steps",
    "depth of 1024 mm and more wraps to 0 and up",
    "brightness at half the columns, 8-bit square root, lossy video compression",
]


def _details(p: Profile) -> Format:
    is_raw = p.ahat_codec == RAW
    if p.depth_ahat_packing == "zdepth":
        packing = "zdepth blob, then " + ("u16 brightness" if is_raw else "luma = sqrt(brightness)")
        losses = ZDEPTH_LOSSES + ([] if is_raw else ["lossy 8-bit brightness"])
    elif is_raw:
        packing, losses = "two u16 pictures", []
    else:
        packing, losses = "nv12: luma = depth / 4 mm, chroma = sqrt(brightness)", list(_LOSSES)
    described = describe_video(p.ahat_codec, AHAT_WIDTH, AHAT_HEIGHT, AHAT_HZ)
    return described | {"packing": packing, "unit": "mm", "alias_mm": 1055, "loses": losses}


def _rate(p: Profile) -> float:
    if p.ahat_codec == RAW:
        return 377.5e6
    profile, shared = VIDEO_PROFILES[p.ahat_codec], p.depth_ahat_packing == "same"
    return float(bits_per_second(AHAT_WIDTH, AHAT_HEIGHT, AHAT_HZ, profile, shared=shared))


_PACKINGS = {"same": c.DepthProfile.SAME, "zdepth": c.DepthProfile.ZDEPTH}
_ALIAS = ConstantField("alias", (), "depth unit", "depth", "distance after which depth begins again at 0")
STREAM = HeadsetStream(
    NAME,
    nominal_hz=45.0,
    max_payload_bytes=4 << 20,
    adaptive=True,
    port=3804,
    module=__name__,
    kind=DEPTH,
    is_default=True,
    in_pose_table=True,
    wraps=True,
    configure=lambda p: configuration(VIDEO_PROFILES[p.ahat_codec], _PACKINGS[p.depth_ahat_packing]),
    details=_details,
    bits_per_s=_rate,
    constants=camera_constants(AHAT_HEIGHT, AHAT_WIDTH, SCALE, _ALIAS),
    check=_check,
    decode=decode,
    encode=encode,
    cut=_cut,
    depth=_depth,
    farthest_mm=1000.0,
    # Over a wired link depth in mm and brightness come uncompressed, as the only frames.
    picture_parts=(
        np.dtype([("size_z", "<u4"), ("size_ab", "<u4")]),
        np.dtype(("<u2", (2, AHAT_HEIGHT, AHAT_WIDTH))),
        np.dtype([("sensor_ticks", "<u8")]),
    ),
)
