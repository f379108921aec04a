"""Which streams a headset has, how big and how fast they are, and what to send to open one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sensors.errors import UnknownSensorStream, UnsupportedFormat
from sensors.hololens import constants as c
from sensors.hololens import wire


@dataclass(frozen=True)
class StreamSpec:
    """What is fixed about one stream."""

    name: str
    port: int
    pose_bytes: int
    "Bytes of pose after every payload: 64 or 0."
    nominal_hz: float
    "Packets a second (an IMU packet holds many samples)."
    max_payload_bytes: int
    "A header that promises more than this is garbage."
    sends_first: bool
    "True when data flow from accept on, without a configuration."
    module: str
    "Where its packets are decoded."


@dataclass(frozen=True)
class Profile:
    """What is asked of the headset: chosen by the link, changed by the operator."""

    link: str = "wifi"
    "wifi: AHAT depth packed into H.265; wired: AHAT raw."
    pv_width: int = 640
    pv_height: int = 360
    pv_hz: int = 30
    pv_codec: str = "h265"

    def __post_init__(self) -> None:
        if self.link not in ("wifi", "wired"):
            raise UnsupportedFormat(f"link profile {self.link!r}", "wifi, wired")
        if self.pv_codec not in _VIDEO_PROFILES:
            raise UnsupportedFormat(f"pv codec {self.pv_codec!r}", "h265, h264")
        if (self.pv_width, self.pv_height, self.pv_hz) not in c.PV_FORMATS:
            offered = " ".join(f"{w}x{h}@{hz}" for w, h, hz in sorted(c.PV_FORMATS))
            raise UnsupportedFormat(f"pv {self.pv_width}x{self.pv_height}@{self.pv_hz}", offered)


_VIDEO_PROFILES = {"h265": c.VideoProfile.H265_MAIN, "h264": c.VideoProfile.H264_MAIN}
_KIB, _MIB = 1024, 1024 * 1024


def _spec(
    name: str, port: int, pose: bool, hz: float, limit: int, module: str, sends_first: bool = False
) -> StreamSpec:
    pose_bytes = c.POSE_BYTES if pose else 0
    return StreamSpec(name, port, pose_bytes, hz, limit, sends_first, f"sensors.hololens.{module}")


STREAMS: dict[str, StreamSpec] = {
    spec.name: spec
    for spec in (
        _spec("pv", c.PV_PORT, True, 30.0, 8 * _MIB, "pv"),
        _spec("vlc_leftfront", 3800, True, 30.0, _MIB, "vlc"),
        _spec("vlc_leftleft", 3801, True, 30.0, _MIB, "vlc"),
        _spec("vlc_rightfront", 3802, True, 30.0, _MIB, "vlc"),
        _spec("vlc_rightright", 3803, True, 30.0, _MIB, "vlc"),
        _spec("depth_ahat", 3804, True, 45.0, 4 * _MIB, "depth_ahat"),
        _spec("gyroscope", 3807, True, 21.0, 128 * _KIB, "gyroscope"),
        _spec("accelerometer", 3806, True, 11.8, 64 * _KIB, "accelerometer"),
        _spec("magnetometer", 3808, True, 4.5, 64 * _KIB, "magnetometer"),
        _spec("spatial_input", 3812, False, 30.0, 4 * _KIB, "spatial_input", sends_first=True),
        _spec("microphone", 3811, False, 46.9, 256 * _KIB, "microphone"),
    )
}
DEFAULT_SET: tuple[str, ...] = (
    "pv",
    "depth_ahat",
    "gyroscope",
    "accelerometer",
    "magnetometer",
    "spatial_input",
    "microphone",
)


def stream_spec(name: str) -> StreamSpec:
    """Find a stream by its short name; raise `UnknownSensorStream` with the known ones."""
    try:
        return STREAMS[name]
    except KeyError:
        raise UnknownSensorStream(name, sorted(STREAMS)) from None


def bits_per_second(width: int, height: int, hz: int, video_profile: int, *, shared: bool = False) -> int:
    """Apply the client-default rule: pixels/s x 12 x k, k = 1/75 (H.264), 1/150 (H.265), 1 (raw).

    `shared` is AHAT depth that travels in the picture: 16 times that, after truncation to an integer.
    """
    divisor = {c.VideoProfile.RAW: 1, c.VideoProfile.H265_MAIN: 150}.get(c.VideoProfile(video_profile), 75)
    return width * height * hz * 12 // divisor * (16 if shared else 1)


def pv_configuration(width: int, height: int, hz: int, video_profile: int) -> bytes:
    """Mode 1, format, divisor 1, encoding with the default bit rate, one key frame a second."""
    gop = 1 if video_profile == c.VideoProfile.RAW else hz
    return (
        bytes([c.Mode.CONTINUOUS_WITH_POSE])
        + wire.video_format(width, height, hz)
        + b"\x01"
        + wire.video_encoding(
            video_profile, c.LEVEL_DEFAULT, bits_per_second(width, height, hz, video_profile)
        )
        + wire.encoder_options({c.EncoderOption.GOP_SIZE: gop})
    )


def depth_ahat_configuration(video_profile: int) -> bytes:
    """Mode 1, divisor 1, depth in the brightness picture, encoding, one key frame a second (1 for raw)."""
    rate = bits_per_second(c.AHAT_WIDTH, c.AHAT_HEIGHT, c.AHAT_HZ, video_profile, shared=True)
    gop = 1 if video_profile == c.VideoProfile.RAW else c.AHAT_HZ
    return (
        bytes([c.Mode.CONTINUOUS_WITH_POSE, 1, c.DepthProfile.SAME])
        + wire.video_encoding(video_profile, c.LEVEL_DEFAULT, rate)
        + wire.encoder_options({c.EncoderOption.GOP_SIZE: gop})
    )


def vlc_configuration(video_profile: int) -> bytes:
    """Mode 1, divisor 1, encoding, one key frame a second, and the stamp shift of -12.5 ms."""
    rate = bits_per_second(c.VLC_WIDTH, c.VLC_HEIGHT, c.VLC_HZ, video_profile)
    return (
        bytes([c.Mode.CONTINUOUS_WITH_POSE, 1])
        + wire.video_encoding(video_profile, c.LEVEL_DEFAULT, rate)
        + wire.encoder_options(
            {
                c.EncoderOption.GOP_SIZE: c.VLC_HZ,
                c.EncoderOption.VLC_TIMESTAMP_FACTOR: 0,
                c.EncoderOption.VLC_TIMESTAMP_CONSTANT: c.VLC_TIMESTAMP_SHIFT,
            }
        )
    )


def _ahat_video_profile(profile: Profile) -> c.VideoProfile:
    return c.VideoProfile.RAW if profile.link == "wired" else c.VideoProfile.H265_MAIN


def configuration(name: str, profile: Profile) -> bytes:
    """Give the bytes to send after connecting to stream `name`; empty where the headset speaks first."""
    spec = stream_spec(name)
    if name == "pv":
        video = _VIDEO_PROFILES[profile.pv_codec]
        return pv_configuration(profile.pv_width, profile.pv_height, profile.pv_hz, video)
    if name == "depth_ahat":
        return depth_ahat_configuration(_ahat_video_profile(profile))
    if name == "microphone":
        return wire.audio_encoding(c.AudioProfile.AAC_24000, c.AAC_LEVEL_L2)
    if spec.sends_first:
        return b""
    if name.startswith("vlc_"):
        return vlc_configuration(c.VideoProfile.H265_MAIN)
    return bytes([c.Mode.CONTINUOUS_WITH_POSE])


_AHAT_LOSSES = [
    "depth in 4 mm steps",
    "depth of 1024 mm and more wraps to 0 and up",
    "brightness at half the columns, 8-bit square root, lossy video compression",
]
_IMU_UNITS = {
    "gyroscope": "as sent: deg/s or rad/s, decided at alignment",
    "accelerometer": "m/s^2",
    "magnetometer": "as sent, thought to be microtesla",
}


def _describe_video(codec: str, width: int, height: int, hz: int) -> dict[str, Any]:
    loses = [] if codec == "raw" else ["lossy video compression"]
    return {"codec": codec, "width": width, "height": height, "hz": hz, "divisor": 1, "loses": loses}


def _describe_ahat(raw: bool) -> dict[str, Any]:
    packing = "two u16 pictures" if raw else "nv12: luma = depth / 4 mm, chroma = sqrt(brightness)"
    described = _describe_video("raw" if raw else "h265", c.AHAT_WIDTH, c.AHAT_HEIGHT, c.AHAT_HZ)
    losses = [] if raw else list(_AHAT_LOSSES)
    return described | {"packing": packing, "unit": "mm", "alias_mm": 1055, "loses": losses}


_MICROPHONE = {
    "codec": "aac",
    "packing": "adts",
    "rate_hz": 48_000,
    "channels": 2,
    "bytes_per_second": 24_000,
    "loses": ["lossy audio compression", "the direction that five microphones hear"],
}


def describe(name: str, profile: Profile) -> dict[str, Any]:
    """Say in JSON-able words what stream `name` will hold: codec, size, units, and what the profile loses."""
    spec = stream_spec(name)
    if name == "pv":
        details = _describe_video(profile.pv_codec, profile.pv_width, profile.pv_height, profile.pv_hz)
    elif name == "depth_ahat":
        details = _describe_ahat(raw=profile.link == "wired")
    elif name == "microphone":
        details = dict(_MICROPHONE)
    elif name.startswith("vlc_"):
        details = _describe_video("h265", c.VLC_WIDTH, c.VLC_HEIGHT, c.VLC_HZ)
        details["timestamp_shift_ticks"] = c.VLC_TIMESTAMP_SHIFT
    elif name in _IMU_UNITS:
        details = {"codec": "imu samples", "unit": _IMU_UNITS[name], "loses": []}
    else:
        details = {"codec": "struct", "unit": "m, world frame of the app start", "loses": []}
    return {
        "module": spec.module,
        "mode": int(spec.pose_bytes > 0),
        "configuration": configuration(name, profile).hex(),
    } | details
