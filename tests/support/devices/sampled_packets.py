"""Payloads of every stream kind, of the right form and small, and how a reader reads them."""

from __future__ import annotations

import contextlib
import random

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens import video, zdepth
from kitchensync.sensors.hololens.streams import (
    accelerometer,
    depth_ahat,
    depth_longthrow,
    extended_depth,
    eye_tracking,
    gyroscope,
    magnetometer,
    microphone,
    pv,
    spatial_input,
    vlc,
)

PNG = depth_longthrow.pack(np.zeros((288, 320), np.uint16), np.zeros((288, 320), np.uint16))


def sample(name: str, rng: random.Random) -> bytes:
    """A payload of the right form and small size."""
    if name in ("pv", "extended_video"):
        return b"\0\0\0\1\x67" + rng.randbytes(400) + bytes(80)
    if name.startswith("vlc_"):
        return b"\0\0\0\1\x40\1" + rng.randbytes(400) + bytes(24)
    if name == "depth_ahat":
        return depth_ahat.encode(rng.randbytes(500), 7, zdepth.HEADER.pack(0xCA, 1, 0, 8, 8, *[0] * 8))
    if name == "depth_longthrow":
        return depth_longthrow.encode(PNG, 7)
    if name in ("gyroscope", "accelerometer", "magnetometer"):
        return rng.randbytes(32 * 11)
    if name in ("microphone", "extended_audio"):
        return microphone.encode(rng.randbytes(300))
    if name == "extended_depth":
        return extended_depth.encode(rng.randbytes(512), 16, 16)
    return bytes({"spatial_input": 1936, "eye_tracking": 92}[name])


def read_all_of(name: str, payload: memoryview) -> None:
    """Decode as far as a reader ever does."""
    if name in ("pv", "extended_video"):
        pv.decode(payload)
        video.is_key_frame("h264", pv.decode(payload).picture)
        with contextlib.suppress(SensorError):
            pv.raw_picture(pv.decode(payload))
    elif name.startswith("vlc_"):
        video.is_key_frame("h265", vlc.decode(payload).picture)
    elif name == "depth_ahat":
        packet = depth_ahat.decode(payload)
        zdepth.header(packet.zdepth)
        with contextlib.suppress(SensorError):
            depth_ahat.raw_images(packet.image)
    elif name == "depth_longthrow":
        depth_longthrow.images(depth_longthrow.decode(payload).png)
    elif name == "extended_depth":
        extended_depth.raw_depth(extended_depth.decode(payload))
    else:
        {
            "gyroscope": gyroscope.STREAM.decode,
            "accelerometer": accelerometer.STREAM.decode,
            "magnetometer": magnetometer.STREAM.decode,
            "microphone": microphone.decode,
            "extended_audio": microphone.decode_pcm,
            "spatial_input": spatial_input.decode,
            "eye_tracking": eye_tracking.decode,
        }[name](payload)
