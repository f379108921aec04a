"""Tell from its form alone whether a packet can be decoded: cheap enough for every packet of every recording.

What passes may still hold a picture that no decoder takes; what does not pass holds none for certain. Packets without
a single byte of picture pass: the headset sends such now and then, and readers skip them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from sensors.errors import BadPacket
from sensors.hololens import (
    constants,
    depth_ahat,
    depth_longthrow,
    extended_depth,
    eye_tracking,
    imu,
    microphone,
    pv,
    spatial_input,
    vlc,
    zdepth,
)

Look = Callable[[bytes], None]
"""Takes a payload. Raises SensorError where it cannot be decoded."""

_RAW = "raw"
_START_CODES = (b"\0\0\0\1", b"\0\0\1")
_RECORDS = {"spatial_input": spatial_input, "eye_tracking": eye_tracking}
_INERTIAL = ("gyroscope", "accelerometer", "magnetometer")


def look_of(name: str, format_: dict[str, Any]) -> Look | None:
    """Return the look at payloads of stream `name`, None where every payload is good.

    `format_` is the stream's description by `catalogue.describe`.
    """
    codec = str(format_.get("codec", _RAW))
    if name in _INERTIAL:
        return lambda payload: _inertial(name, payload)
    if name in _RECORDS:
        return lambda payload: _record(name, _RECORDS[name], payload)
    if name in ("microphone", "extended_audio"):
        return lambda payload: _sound(name, codec, int(format_.get("channels", 2)), payload)
    if name in ("pv", "extended_video"):
        return lambda payload: _coloured(name, codec, payload)
    if name.startswith("vlc_"):
        return lambda payload: _grey(name, codec, payload)
    depths = {"depth_ahat": _ahat, "depth_longthrow": _longthrow, "extended_depth": _extended_depth}
    look = depths.get(name)
    return None if look is None else lambda payload: look(codec, payload)


def _inertial(name: str, payload: bytes) -> None:
    samples = imu.decode_samples(name, payload)
    if not np.isfinite(samples["xyz"]).all():
        raise BadPacket(name, "samples that are no numbers")


def _record(name: str, module: ModuleType, payload: bytes) -> None:
    if len(payload) != module.DTYPE.itemsize:
        raise BadPacket(name, f"{len(payload)} bytes instead of {module.DTYPE.itemsize}")


def _sound(name: str, codec: str, channels: int, payload: bytes) -> None:
    if codec == "aac":
        microphone.decode(payload)
    elif channels == 2:
        microphone.decode_pcm(payload)
    else:
        microphone.decode_array(payload)


def _unit(name: str, image: memoryview) -> None:
    if not bytes(image[:4]).startswith(_START_CODES):
        raise BadPacket(name, "no picture begins here")


def _coloured(name: str, codec: str, payload: bytes) -> None:
    if len(payload) == pv.METADATA.itemsize:
        return
    packet = pv.decode(payload)
    if codec == _RAW:
        pv.raw_picture(packet)
    else:
        _unit(name, packet.picture)


def _grey(name: str, codec: str, payload: bytes) -> None:
    if len(payload) == vlc.METADATA.itemsize:
        return
    packet = vlc.decode(payload)
    pixels = constants.VLC_WIDTH * constants.VLC_HEIGHT
    if codec != _RAW:
        _unit(name, packet.picture)
    elif len(packet.picture) != pixels:
        raise BadPacket(name, f"{len(packet.picture)} bytes instead of {pixels}")


def _ahat(codec: str, payload: bytes) -> None:
    packet = depth_ahat.decode(payload)
    if packet.size_z:
        zdepth.header(packet.zdepth)
    if packet.size_ab == 0:
        return
    if codec != _RAW:
        _unit(depth_ahat.NAME, packet.image)
    elif not packet.size_z:
        depth_ahat.raw_images(packet.image)


def _longthrow(_: str, payload: bytes) -> None:
    depth_longthrow.decode(payload)


def _extended_depth(codec: str, payload: bytes) -> None:
    packet = extended_depth.decode(payload)
    if codec == _RAW:
        extended_depth.raw_depth(packet)
    else:
        zdepth.header(packet.image)
