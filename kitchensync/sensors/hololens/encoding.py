"""Shared parts of the video and sound streams: bit rates, codecs, and their description in the manifest."""

from __future__ import annotations

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens.headset_stream import RAW, RIG_TO_SENSOR, ConstantField
from kitchensync.sensors.stream import Format

AUDIO = {
    "aac": (c.AudioProfile.AAC_24000, c.AAC_LEVEL_L2),
    "pcm": (c.AudioProfile.RAW, c.AAC_LEVEL_L2),
    "array": (c.AudioProfile.RAW, c.ARRAY_LEVEL),
}
"""Setting -> encoder and level of a sound stream."""
ARRAY_CHANNELS = ("top_left", "top_centre", "top_right", "bottom_left", "bottom_right")
ZDEPTH_LOSSES = ["depth nearer than 201 mm", "depth in steps of 2 mm from 750 mm, 4 from 1500, 8 from 3000"]
PIXEL = "picture as sent, not turned, pixel (0, 0) at the first value"
_START_CODES = (b"\0\0\0\1", b"\0\0\1")


def bits_per_second(width: int, height: int, hz: int, video_profile: int, *, shared: bool = False) -> int:
    """Apply the client-default rule: pixels/s x 12 x k, k = 1/75 (H.264), 1/150 (H.265), 1 (raw).

    `shared` is for AHAT depth inside the brightness frames: 16 times that, after truncation to an integer.
    """
    divisor = {c.VideoProfile.RAW: 1, c.VideoProfile.H265_MAIN: 150}.get(c.VideoProfile(video_profile), 75)
    return width * height * hz * 12 // divisor * (16 if shared else 1)


def key_frame_period(video_profile: int, hz: int) -> int:
    """Return the key frame interval: one per second; every raw frame is one."""
    return 1 if video_profile == c.VideoProfile.RAW else hz


def opened(stream: bytes, mrc_video: bytes) -> bytes:
    """Extend a stream configuration so that the connection opens and closes the camera subsystem itself."""
    flags = c.Mode.START_CAMERA | c.Mode.STOP_CAMERA
    return bytes([stream[0] | flags]) + mrc_video + stream[1:]


def audio_hz(kind: str) -> float:
    """Return packets per second of a sound stream."""
    return 46.9 if kind == "aac" else 62.5


def check_unit(name: str, image: memoryview) -> None:
    """Check that an access unit begins here. Raises BadPacket."""
    if not bytes(image[:4]).startswith(_START_CODES):
        raise BadPacket(name, "no frame begins here")


def describe_video(codec: str, width: int, height: int, hz: int) -> Format:
    """Describe a stream of encoded or raw frames."""
    loses = [] if codec == RAW else ["lossy video compression"]
    return {"codec": codec, "width": width, "height": height, "hz": hz, "divisor": 1, "loses": loses}


def describe_audio(kind: str) -> Format:
    """Describe a stream of sound, one of `AUDIO`."""
    if kind == "aac":
        losses = ["lossy audio compression", "the direction that five microphones hear"]
        described = {"codec": "aac", "packing": "adts", "channels": 2, "bytes_per_second": 24_000}
    elif kind == "pcm":
        losses = ["the direction that five microphones hear"]
        described = {"codec": RAW, "packing": "s16 interleaved", "channels": 2}
    else:
        losses = []
        described = {"codec": RAW, "packing": "f32 interleaved", "channels": list(ARRAY_CHANNELS)}
    return described | {"rate_hz": 48_000, "loses": losses}


def camera_constants(height: int, width: int, *scales: ConstantField) -> tuple[ConstantField, ...]:
    """Return the constants of a Research Mode camera."""
    plane, sensor = (height, width), "sensor, +x right, +y down, +z forward"
    ray = "camera ray at z = 1 of an integer pixel; 0 where there is none"
    source = "source pixel of each pixel of the undistorted picture; -1 where there is none"
    return (
        ConstantField("uv2x", plane, "1", sensor, f"x of the {ray}"),
        ConstantField("uv2y", plane, "1", sensor, f"y of the {ray}"),
        ConstantField("extrinsics", (4, 4), "m", RIG_TO_SENSOR, "rig node to sensor"),
        *scales,
        ConstantField("mapx", plane, "pixel", PIXEL, f"x of the {source}"),
        ConstantField("mapy", plane, "pixel", PIXEL, f"y of the {source}"),
        ConstantField("k", (4,), "pixel", "undistorted picture", "fx, fy, cx, cy of the undistorted picture"),
    )


SCALE = ConstantField(
    "scale", (), "1/m", "depth", "depth units a metre; point = ray x depth / (scale x length of ray)"
)
