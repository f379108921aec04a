"""Front RGB camera: one encoded frame per packet, with its lens and exposure.

The pose of a packet is that of the camera in the world; camera frame +x right, +y up, -z forward. With row vectors
the projection is K = [[-fx,0,0,0],[0,fy,0,0],[cx,cy,1,0],[0,0,0,1]]; for OpenCV flip y and z.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens import wire
from kitchensync.sensors.hololens.encoding import (
    bits_per_second,
    check_unit,
    describe_video,
    key_frame_period,
)
from kitchensync.sensors.hololens.headset_stream import (
    FRAMES,
    RAW,
    RIG_TO_SENSOR,
    ConstantField,
    HeadsetStream,
    PictureUnit,
)
from kitchensync.sensors.hololens.profile import VIDEO_PROFILES, Profile
from kitchensync.sensors.stream import Format

NAME = "pv"

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
    "H.264 or H.265 access unit (Annex B), or raw NV12 with padded rows."
    metadata: np.void
    "A record of dtype `METADATA`."


def decode(payload: memoryview | bytes) -> PvPacket:
    """Split a payload into frame and metadata, without copying. Raises `BadPacket` if either is missing."""
    view = memoryview(payload)
    if len(view) <= METADATA.itemsize:
        raise BadPacket(NAME, f"{len(view)} bytes contain no frame")
    return PvPacket(view[: -METADATA.itemsize], np.frombuffer(view[-METADATA.itemsize :], METADATA)[0])


def encode(picture: bytes | memoryview, metadata: np.ndarray | np.void) -> bytes:
    """Encode frame and metadata, the inverse of `decode`."""
    return bytes(picture) + np.asarray(metadata, METADATA).tobytes()


def raw_picture(packet: PvPacket) -> np.ndarray:
    """View a raw frame as NV12, uint8 (height x 3/2, width): luma rows, then interleaved U V rows."""
    height, width = int(packet.metadata["height"]), int(packet.metadata["width"])
    picture_bytes, rows = len(packet.picture), height * 3 // 2
    if rows == 0 or picture_bytes % rows:
        raise BadPacket(NAME, f"{picture_bytes} bytes are not an NV12 frame of {height} rows")
    stride = picture_bytes // rows
    if width > stride:
        raise BadPacket(NAME, f"rows of {stride} bytes cannot hold {width} pixels")
    return np.frombuffer(packet.picture, np.uint8).reshape(-1, stride)[:, :width]


def check(payload: bytes, form: Format, name: str = NAME) -> None:
    """Check that a payload has a frame of this format, or no bytes of a frame. Raises BadPacket."""
    if len(payload) == METADATA.itemsize:
        return
    packet = decode(payload)
    if form.get("codec", RAW) == RAW:
        raw_picture(packet)
    else:
        check_unit(name, packet.picture)


def cut(payload: bytes) -> PictureUnit:
    """Return the undecoded frame and its metadata."""
    return PictureUnit(*decode(payload))


def raw_unit(unit: PictureUnit) -> np.ndarray:
    """View a raw frame as NV12. Raises `BadPacket` if it has another size."""
    return raw_picture(PvPacket(unit.image, unit.metadata))


def configuration(width: int, height: int, hz: int, video_profile: int) -> bytes:
    """Return the configuration: mode 1, format, divisor 1, default bit rate, one key frame per second."""
    rate = bits_per_second(width, height, hz, video_profile)
    return (
        bytes([c.Mode.CONTINUOUS_WITH_POSE])
        + wire.video_format(width, height, hz)
        + b"\x01"
        + wire.video_encoding(video_profile, c.LEVEL_DEFAULT, rate)
        + wire.encoder_options({c.EncoderOption.GOP_SIZE: key_frame_period(video_profile, hz)})
    )


def _settings(p: Profile) -> tuple[int, int, int, int]:
    return p.pv_width, p.pv_height, p.pv_hz, VIDEO_PROFILES[p.pv_codec]


def _details(p: Profile) -> Format:
    details = describe_video(p.pv_codec, p.pv_width, p.pv_height, p.pv_hz)
    return details | {"settings": p.camera_settings}


def _optics(metadata: Any) -> tuple[float, float, float, float]:
    fx, fy = (float(value) for value in metadata["focal_length"])
    cx, cy = (float(value) for value in metadata["principal_point"])
    return fx, fy, cx, cy


_FRAME = "camera, +x right, +y up, -z forward"
_FORMAT = "picture of this format"
_CONSTANTS = (
    ConstantField("focal_length", (2,), "pixel", _FORMAT, "fx, fy at the focus of the moment"),
    ConstantField("principal_point", (2,), "pixel", _FORMAT, "cx, cy"),
    ConstantField("radial_distortion", (3,), "1", _FORMAT, "k1, k2, k3"),
    ConstantField("tangential_distortion", (2,), "1", _FORMAT, "p1, p2"),
    ConstantField("projection", (4, 4), "pixel", _FRAME, "row-vector projection of camera points"),
    ConstantField("extrinsics", (4, 4), "m", RIG_TO_SENSOR, "rig node to camera"),
    ConstantField("intrinsics_mf", (4,), "pixel", _FORMAT, "fx, fy, cx, cy as the system says"),
    ConstantField(
        "extrinsics_mf", (7,), "m", _FRAME, "translation x y z, quaternion x y z w, as the system says"
    ),
)
STREAM = HeadsetStream(
    NAME,
    nominal_hz=30.0,
    max_payload_bytes=8 << 20,
    port=3810,
    module=__name__,
    kind=FRAMES,
    is_default=True,
    is_front_camera=True,
    in_pose_table=True,
    opens_a_device=True,
    configure=lambda p: configuration(*_settings(p)),
    details=_details,
    hz_by_profile=lambda p: float(p.pv_hz),
    bits_per_s=lambda p: float(bits_per_second(*_settings(p))),
    constants=_CONSTANTS,
    ask_constants=lambda p: bytes([c.Mode.CONSTANTS]) + wire.video_format(p.pv_width, p.pv_height, p.pv_hz),
    check=check,
    decode=decode,
    encode=encode,
    cut=cut,
    raw_picture=raw_unit,
    optics=_optics,
)
