"""Extended video: any other camera of the headset, with packets like those of the front camera.

Only width and height of the metadata are filled. The pose is that of the rig node. A raw frame is in the device's own
pixel format (NV12, YUY2, IYUV or YV12).
"""

from __future__ import annotations

from kitchensync.sensors.hololens import wire
from kitchensync.sensors.hololens.encoding import bits_per_second, describe_video, opened
from kitchensync.sensors.hololens.headset_stream import FRAMES, HeadsetStream
from kitchensync.sensors.hololens.profile import VIDEO_PROFILES, Profile
from kitchensync.sensors.hololens.streams.pv import (
    METADATA,
    PvPacket,
    check,
    configuration,
    cut,
    decode,
    encode,
    raw_unit,
)
from kitchensync.sensors.stream import Format

__all__ = ["LIST_DEVICES", "METADATA", "NAME", "STREAM", "PvPacket", "decode", "encode"]

NAME = "extended_video"
LIST_DEVICES = b"\x02"
"Sent after connecting: the headset answers with its cameras (u32 bytes, UTF-16LE JSON) and closes."


def _settings(p: Profile) -> tuple[int, int, int, int]:
    size = (p.extended_video_width, p.extended_video_height, p.extended_video_hz)
    return *size, VIDEO_PROFILES[p.extended_video_codec]


def _configure(p: Profile) -> bytes:
    video = wire.mrc_video(global_opacity=float(p.extended_video_source))
    return opened(configuration(*_settings(p)), video)


def _details(p: Profile) -> Format:
    size = (p.extended_video_width, p.extended_video_height, p.extended_video_hz)
    return describe_video(p.extended_video_codec, *size) | {"source": p.extended_video_source}


STREAM = HeadsetStream(
    NAME,
    nominal_hz=30.0,
    max_payload_bytes=16 << 20,
    adaptive=True,
    port=3819,
    module=__name__,
    kind=FRAMES,
    opens_a_device=True,
    configure=_configure,
    details=_details,
    hz_by_profile=lambda p: float(p.extended_video_hz),
    bits_per_s=lambda p: float(bits_per_second(*_settings(p))),
    device_list=LIST_DEVICES,
    check=lambda payload, form: check(payload, form, NAME),
    decode=decode,
    encode=encode,
    cut=cut,
    raw_picture=raw_unit,
)
