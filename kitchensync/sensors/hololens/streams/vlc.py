"""The four grey cameras: 640x480, 30 Hz, one encoded frame per packet.

The sensors are mounted rotated: to see frames upright, turn left-front and right-right by 90 degrees clockwise,
left-left and right-front counter-clockwise. The calibration is that of frames as sent. The pose of a packet is that
of the rig node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens import wire
from kitchensync.sensors.hololens.encoding import (
    bits_per_second,
    camera_constants,
    check_unit,
    describe_video,
    key_frame_period,
)
from kitchensync.sensors.hololens.headset_stream import FRAMES, RAW, HeadsetStream, PictureUnit
from kitchensync.sensors.hololens.profile import VIDEO_PROFILES
from kitchensync.sensors.stream import Format

METADATA = np.dtype(
    [
        (
            "sensor_ticks",
            "<u8",
        ),  # ns of the sensor's clock: more exact than the timestamp for pairing the four
        ("exposure_ns", "<u8"),
        ("gain", "<u4"),  # sensor units
        ("reserved", "<u4"),
    ]
)
"The last 24 bytes of every payload."


class VlcPacket(NamedTuple):
    """One grey-camera packet."""

    picture: memoryview
    "Access unit with the image as luma (chroma 128), or 640x480 raw bytes."
    metadata: np.void


def decode(payload: memoryview | bytes) -> VlcPacket:
    """Split a payload into frame and metadata, without copying. Raises `BadPacket` if either is missing."""
    view = memoryview(payload)
    if len(view) <= METADATA.itemsize:
        raise BadPacket("vlc", f"{len(view)} bytes contain no frame")
    return VlcPacket(view[: -METADATA.itemsize], np.frombuffer(view[-METADATA.itemsize :], METADATA)[0])


def encode(picture: bytes | memoryview, metadata: np.ndarray | np.void) -> bytes:
    """Encode frame and metadata, the inverse of `decode`."""
    return bytes(picture) + np.asarray(metadata, METADATA).tobytes()


def configuration(video_profile: int) -> bytes:
    """Return the configuration: mode 1, divisor 1, encoding, one key frame per second, timestamp shift -12.5 ms."""
    rate = bits_per_second(c.VLC_WIDTH, c.VLC_HEIGHT, c.VLC_HZ, video_profile)
    return (
        bytes([c.Mode.CONTINUOUS_WITH_POSE, 1])
        + wire.video_encoding(video_profile, c.LEVEL_DEFAULT, rate)
        + wire.encoder_options(
            {
                c.EncoderOption.GOP_SIZE: key_frame_period(video_profile, c.VLC_HZ),
                c.EncoderOption.VLC_TIMESTAMP_FACTOR: 0,
                c.EncoderOption.VLC_TIMESTAMP_CONSTANT: c.VLC_TIMESTAMP_SHIFT,
            }
        )
    )


def raw_grey(unit: PictureUnit) -> np.ndarray:
    """View a raw frame as (480, 640) uint8. Raises `BadPacket` if it has another size."""
    pixels = c.VLC_WIDTH * c.VLC_HEIGHT
    if len(unit.image) != pixels:
        raise BadPacket("vlc", f"{len(unit.image)} bytes instead of {pixels}")
    return np.frombuffer(unit.image, np.uint8).reshape(c.VLC_HEIGHT, c.VLC_WIDTH)


def cut(payload: bytes) -> PictureUnit:
    """Return the undecoded frame and its metadata."""
    return PictureUnit(*decode(payload))


def _check(name: str, payload: bytes, form: Format) -> None:
    if len(payload) == METADATA.itemsize:
        return
    unit, pixels = cut(payload), c.VLC_WIDTH * c.VLC_HEIGHT
    if form.get("codec", RAW) != RAW:
        check_unit(name, unit.image)
    elif len(unit.image) != pixels:
        raise BadPacket(name, f"{len(unit.image)} bytes instead of {pixels}")


def _camera(name: str, port: int, *, in_pose_table: bool = False) -> HeadsetStream:
    size = c.VLC_WIDTH, c.VLC_HEIGHT
    return HeadsetStream(
        name,
        nominal_hz=30.0,
        max_payload_bytes=1 << 20,
        port=port,
        module=__name__,
        kind=FRAMES,
        is_grey_camera=True,
        in_pose_table=in_pose_table,
        configure=lambda p: configuration(VIDEO_PROFILES[p.vlc_codec]),
        details=lambda p: (
            describe_video(p.vlc_codec, *size, c.VLC_HZ) | {"timestamp_shift_ticks": c.VLC_TIMESTAMP_SHIFT}
        ),
        bits_per_s=lambda p: float(bits_per_second(*size, c.VLC_HZ, VIDEO_PROFILES[p.vlc_codec])),
        constants=camera_constants(c.VLC_HEIGHT, c.VLC_WIDTH),
        check=lambda payload, form: _check(name, payload, form),
        decode=decode,
        encode=encode,
        cut=cut,
        raw_picture=raw_grey,
    )


STREAMS = (
    _camera("vlc_leftfront", 3800, in_pose_table=True),
    _camera("vlc_leftleft", 3801),
    _camera("vlc_rightfront", 3802),
    _camera("vlc_rightright", 3803),
)
