"""The bytes that open each stream: what a client sends right after it connected."""

from __future__ import annotations

import struct

from sensors.hololens import constants as c
from sensors.hololens import wire
from sensors.hololens.profile import MIXER_MODES, VIDEO_PROFILES, Profile

_AUDIO = {
    "aac": (c.AudioProfile.AAC_24000, c.AAC_LEVEL_L2),
    "pcm": (c.AudioProfile.RAW, c.AAC_LEVEL_L2),
    "array": (c.AudioProfile.RAW, c.ARRAY_LEVEL),
}
_DEPTH = {"same": c.DepthProfile.SAME, "zdepth": c.DepthProfile.ZDEPTH}


def bits_per_second(width: int, height: int, hz: int, video_profile: int, *, shared: bool = False) -> int:
    """Apply the client-default rule: pixels/s x 12 x k, k = 1/75 (H.264), 1/150 (H.265), 1 (raw).

    `shared` is AHAT depth that travels in the picture: 16 times that, after truncation to an integer.
    """
    divisor = {c.VideoProfile.RAW: 1, c.VideoProfile.H265_MAIN: 150}.get(c.VideoProfile(video_profile), 75)
    return width * height * hz * 12 // divisor * (16 if shared else 1)


def _gop(video_profile: int, hz: int) -> int:
    """One key frame a second; every raw picture is one."""
    return 1 if video_profile == c.VideoProfile.RAW else hz


def pv_configuration(width: int, height: int, hz: int, video_profile: int) -> bytes:
    """Mode 1, format, divisor 1, encoding with the default bit rate, one key frame a second."""
    rate = bits_per_second(width, height, hz, video_profile)
    return (
        bytes([c.Mode.CONTINUOUS_WITH_POSE])
        + wire.video_format(width, height, hz)
        + b"\x01"
        + wire.video_encoding(video_profile, c.LEVEL_DEFAULT, rate)
        + wire.encoder_options({c.EncoderOption.GOP_SIZE: _gop(video_profile, hz)})
    )


def depth_ahat_configuration(video_profile: int, depth_profile: int = c.DepthProfile.SAME) -> bytes:
    """Mode 1, divisor 1, depth packing, encoding, one key frame a second (1 for raw)."""
    shared = depth_profile == c.DepthProfile.SAME
    rate = bits_per_second(c.AHAT_WIDTH, c.AHAT_HEIGHT, c.AHAT_HZ, video_profile, shared=shared)
    return (
        bytes([c.Mode.CONTINUOUS_WITH_POSE, 1, depth_profile])
        + wire.video_encoding(video_profile, c.LEVEL_DEFAULT, rate)
        + wire.encoder_options({c.EncoderOption.GOP_SIZE: _gop(video_profile, c.AHAT_HZ)})
    )


def depth_longthrow_configuration(png_filter: int = c.PNG_FILTER_PAETH) -> bytes:
    """Mode 1, divisor 1, PNG filter (it changes only the size)."""
    return struct.pack("<BBI", c.Mode.CONTINUOUS_WITH_POSE, 1, png_filter)


def vlc_configuration(video_profile: int) -> bytes:
    """Mode 1, divisor 1, encoding, one key frame a second, and the stamp shift of -12.5 ms."""
    rate = bits_per_second(c.VLC_WIDTH, c.VLC_HEIGHT, c.VLC_HZ, video_profile)
    return (
        bytes([c.Mode.CONTINUOUS_WITH_POSE, 1])
        + wire.video_encoding(video_profile, c.LEVEL_DEFAULT, rate)
        + wire.encoder_options(
            {
                c.EncoderOption.GOP_SIZE: _gop(video_profile, c.VLC_HZ),
                c.EncoderOption.VLC_TIMESTAMP_FACTOR: 0,
                c.EncoderOption.VLC_TIMESTAMP_CONSTANT: c.VLC_TIMESTAMP_SHIFT,
            }
        )
    )


def extended_audio_configuration(mixer_mode: int, audio_profile: int, level: int) -> bytes:
    """MRC_AUDIO with both gains 1, then the audio encoding."""
    return struct.pack("<Iff", mixer_mode, 1.0, 1.0) + wire.audio_encoding(audio_profile, level)


def extended_depth_configuration(depth_profile: int, media_index: int) -> bytes:
    """Mode 1, divisor 1, depth packing, media format index, stride mask."""
    return bytes([c.Mode.CONTINUOUS_WITH_POSE, 1, depth_profile]) + wire.encoder_options(
        {
            c.EncoderOption.MEDIA_INDEX: media_index,
            c.EncoderOption.STRIDE_MASK: c.STRIDE_MASK_DEFAULT,
        }
    )


def opened(stream: bytes, mrc_video: bytes) -> bytes:
    """Make a stream configuration open its subsystem before and close it after, in one connection."""
    flags = c.Mode.START_CAMERA | c.Mode.STOP_CAMERA
    return bytes([stream[0] | flags]) + mrc_video + stream[1:]


def configuration(name: str, profile: Profile) -> bytes:
    """Give the bytes to send after connecting to stream `name`; empty where the headset speaks first."""
    if name == "spatial_input":
        return b""
    if name.startswith("vlc_"):
        return vlc_configuration(VIDEO_PROFILES[profile.vlc_codec])
    make = _MAKERS.get(name)
    return make(profile) if make else bytes([c.Mode.CONTINUOUS_WITH_POSE])


def _pv(p: Profile) -> bytes:
    return pv_configuration(p.pv_width, p.pv_height, p.pv_hz, VIDEO_PROFILES[p.pv_codec])


def _extended_video(p: Profile) -> bytes:
    size = (p.extended_video_width, p.extended_video_height, p.extended_video_hz)
    stream = pv_configuration(*size, VIDEO_PROFILES[p.extended_video_codec])
    return opened(stream, wire.mrc_video(global_opacity=float(p.extended_video_source)))


def _extended_depth(p: Profile) -> bytes:
    depth = c.DepthProfile.ZDEPTH if p.extended_depth == "zdepth" else c.DepthProfile.SAME
    return opened(extended_depth_configuration(depth, p.extended_depth_media), wire.mrc_video())


_MAKERS = {
    "pv": _pv,
    "depth_ahat": lambda p: depth_ahat_configuration(
        VIDEO_PROFILES[p.ahat_codec], _DEPTH[p.depth_ahat_packing]
    ),
    "depth_longthrow": lambda _: depth_longthrow_configuration(),
    "microphone": lambda p: wire.audio_encoding(*_AUDIO[p.microphone]),
    "eye_tracking": lambda p: bytes([p.eye_tracking_hz]),
    "extended_audio": lambda p: extended_audio_configuration(
        MIXER_MODES[p.extended_audio_source], *_AUDIO[p.extended_audio]
    ),
    "extended_video": _extended_video,
    "extended_depth": _extended_depth,
}
