"""Which streams a headset has, how big and how fast they are, and what the manifest says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sensors.errors import UnknownSensorStream
from sensors.hololens import configurations
from sensors.hololens import constants as c
from sensors.hololens.configurations import (
    bits_per_second,
    depth_ahat_configuration,
    pv_configuration,
    vlc_configuration,
)
from sensors.hololens.profile import Profile


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
    adaptive: bool = False
    "True when the device lowers its own rate, which is no loss."


_KIB, _MIB = 1024, 1024 * 1024


def _spec(
    name: str, port: int, pose: bool, hz: float, limit: int, module: str = "", *, adaptive: bool = False
) -> StreamSpec:
    pose_bytes = c.POSE_BYTES if pose else 0
    first = name == "spatial_input"
    return StreamSpec(
        name, port, pose_bytes, hz, limit, first, f"sensors.hololens.{module or name}", adaptive
    )


STREAMS: dict[str, StreamSpec] = {
    spec.name: spec
    for spec in (
        _spec("pv", c.PV_PORT, True, 30.0, 8 * _MIB),
        _spec("vlc_leftfront", 3800, True, 30.0, _MIB, "vlc"),
        _spec("vlc_leftleft", 3801, True, 30.0, _MIB, "vlc"),
        _spec("vlc_rightfront", 3802, True, 30.0, _MIB, "vlc"),
        _spec("vlc_rightright", 3803, True, 30.0, _MIB, "vlc"),
        _spec("depth_ahat", 3804, True, 45.0, 4 * _MIB, adaptive=True),
        _spec("depth_longthrow", 3805, True, 5.0, _MIB, adaptive=True),
        _spec("gyroscope", 3807, True, 21.0, 128 * _KIB),
        _spec("accelerometer", 3806, True, 11.8, 64 * _KIB),
        _spec("magnetometer", 3808, True, 4.5, 64 * _KIB),
        _spec("spatial_input", 3812, False, 30.0, 4 * _KIB),
        _spec("microphone", 3811, False, 46.9, 256 * _KIB),
        _spec("eye_tracking", 3817, True, 30.0, 4 * _KIB),
        _spec("extended_audio", 3818, False, 46.9, 256 * _KIB),
        _spec("extended_video", 3819, True, 30.0, 16 * _MIB, adaptive=True),
        _spec("extended_depth", 3821, True, 30.0, 4 * _MIB, adaptive=True),
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


def configuration(name: str, profile: Profile) -> bytes:
    """Give the bytes to send after connecting; raise `UnknownSensorStream` for no stream of ours."""
    return configurations.configuration(stream_spec(name).name, profile)


def nominal_hz(name: str, profile: Profile) -> float:
    """Packets a second that stream `name` is to send with these settings."""
    by_setting = {
        "pv": float(profile.pv_hz),
        "eye_tracking": float(profile.eye_tracking_hz),
        "extended_video": float(profile.extended_video_hz),
        "microphone": 46.9 if profile.microphone == "aac" else 62.5,
        "extended_audio": 46.9 if profile.extended_audio == "aac" else 62.5,
    }
    return by_setting.get(name, stream_spec(name).nominal_hz)


def forbidden_together(names: list[str]) -> tuple[str, str] | None:
    """Return two of these streams that a headset cannot send at once, or None."""
    return next((pair for pair in c.FORBIDDEN_TOGETHER if set(pair) <= set(names)), None)


_AHAT_LOSSES = [
    "depth in 4 mm steps",
    "depth of 1024 mm and more wraps to 0 and up",
    "brightness at half the columns, 8-bit square root, lossy video compression",
]
_ZDEPTH_LOSSES = ["depth nearer than 201 mm", "depth in steps of 2 mm from 750 mm, 4 from 1500, 8 from 3000"]
_IMU_UNITS = {
    "gyroscope": "as sent: deg/s or rad/s, decided at alignment",
    "accelerometer": "m/s^2",
    "magnetometer": "as sent, thought to be microtesla",
}
_ARRAY_CHANNELS = ["top_left", "top_centre", "top_right", "bottom_left", "bottom_right"]


def _describe_video(codec: str, width: int, height: int, hz: int) -> dict[str, Any]:
    loses = [] if codec == "raw" else ["lossy video compression"]
    return {"codec": codec, "width": width, "height": height, "hz": hz, "divisor": 1, "loses": loses}


def _describe_ahat(profile: Profile) -> dict[str, Any]:
    codec, zdepth = profile.ahat_codec, profile.depth_ahat_packing == "zdepth"
    described = _describe_video(codec, c.AHAT_WIDTH, c.AHAT_HEIGHT, c.AHAT_HZ)
    if zdepth:
        packing = "zdepth blob, then " + ("u16 brightness" if codec == "raw" else "luma = sqrt(brightness)")
        losses = _ZDEPTH_LOSSES + ([] if codec == "raw" else ["lossy 8-bit brightness"])
    elif codec == "raw":
        packing, losses = "two u16 pictures", []
    else:
        packing, losses = "nv12: luma = depth / 4 mm, chroma = sqrt(brightness)", list(_AHAT_LOSSES)
    return described | {"packing": packing, "unit": "mm", "alias_mm": 1055, "loses": losses}


def _describe_longthrow() -> dict[str, Any]:
    return {
        "codec": "png",
        "width": c.LONGTHROW_WIDTH,
        "height": c.LONGTHROW_HEIGHT,
        "packing": "bgra pixels hold pairs of u16: depth, then brightness",
        "unit": "mm",
        "loses": [],
    }


def _describe_audio(kind: str) -> dict[str, Any]:
    if kind == "aac":
        losses = ["lossy audio compression", "the direction that five microphones hear"]
        described = {"codec": "aac", "packing": "adts", "channels": 2, "bytes_per_second": 24_000}
    elif kind == "pcm":
        losses = ["the direction that five microphones hear"]
        described = {"codec": "raw", "packing": "s16 interleaved", "channels": 2}
    else:
        losses = []
        described = {"codec": "raw", "packing": "f32 interleaved", "channels": _ARRAY_CHANNELS}
    return described | {"rate_hz": 48_000, "loses": losses}


def _describe_extended(name: str, profile: Profile) -> dict[str, Any]:
    if name == "extended_audio":
        return _describe_audio(profile.extended_audio) | {"source": profile.extended_audio_source}
    if name == "extended_video":
        size = (profile.extended_video_width, profile.extended_video_height, profile.extended_video_hz)
        return _describe_video(profile.extended_video_codec, *size) | {
            "source": profile.extended_video_source
        }
    losses = list(_ZDEPTH_LOSSES) if profile.extended_depth == "zdepth" else []
    return {"codec": profile.extended_depth, "unit": "as the camera's", "loses": losses}


def _details(name: str, profile: Profile) -> dict[str, Any]:
    if name == "pv":
        details = _describe_video(profile.pv_codec, profile.pv_width, profile.pv_height, profile.pv_hz)
        return details | {"settings": profile.camera_settings}
    if name == "depth_ahat":
        return _describe_ahat(profile)
    if name == "depth_longthrow":
        return _describe_longthrow()
    if name == "microphone":
        return _describe_audio(profile.microphone)
    if name.startswith("vlc_"):
        details = _describe_video(profile.vlc_codec, c.VLC_WIDTH, c.VLC_HEIGHT, c.VLC_HZ)
        return details | {"timestamp_shift_ticks": c.VLC_TIMESTAMP_SHIFT}
    if name in _IMU_UNITS:
        return {"codec": "imu samples", "unit": _IMU_UNITS[name], "loses": []}
    if name.startswith("extended_"):
        return _describe_extended(name, profile)
    frame = "node of the eye tracker" if name == "eye_tracking" else "world frame of the app start"
    return {"codec": "struct", "unit": f"m, {frame}", "loses": []}


def describe(name: str, profile: Profile) -> dict[str, Any]:
    """Say in JSON-able words what stream `name` will hold: codec, size, units, and what the profile loses."""
    spec = stream_spec(name)
    return {
        "module": spec.module,
        "mode": int(spec.pose_bytes > 0),
        "configuration": configuration(name, profile).hex(),
    } | _details(name, profile)


__all__ = [
    "DEFAULT_SET",
    "STREAMS",
    "Profile",
    "StreamSpec",
    "bits_per_second",
    "configuration",
    "depth_ahat_configuration",
    "describe",
    "forbidden_together",
    "nominal_hz",
    "pv_configuration",
    "stream_spec",
    "vlc_configuration",
]
