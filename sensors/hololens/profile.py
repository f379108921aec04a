"""What is asked of a headset: chosen by the link, changed by the operator, checked before anything is opened."""

from __future__ import annotations

from dataclasses import dataclass

from sensors.errors import UnsupportedFormat
from sensors.hololens import constants as c

VIDEO_PROFILES = {
    "h265": c.VideoProfile.H265_MAIN,
    "h264": c.VideoProfile.H264_MAIN,
    "raw": c.VideoProfile.RAW,
}
MIXER_MODES = {
    "microphone": c.MixerMode.MICROPHONE,
    "application": c.MixerMode.APPLICATION,
    "both": c.MixerMode.BOTH,
}
_VIDEO = tuple(VIDEO_PROFILES)
_CHOICES: dict[str, tuple[object, ...]] = {
    "link": ("wifi", "wired"),
    "pv_codec": _VIDEO,
    "vlc_codec": _VIDEO,
    "depth_ahat_codec": ("by link", *_VIDEO),
    "depth_ahat_packing": ("same", "zdepth"),
    "microphone": ("aac", "pcm", "array"),
    "eye_tracking_hz": c.EYE_TRACKING_HZ,
    "extended_audio": ("aac", "pcm"),
    "extended_audio_source": tuple(MIXER_MODES),
    "extended_video_codec": _VIDEO,
    "extended_depth": ("zdepth", "raw"),
}
_RANGES = {
    "pv_focus_mm": (170, 10_000),
    "pv_exposure_us": (100, 66_000),
    "pv_white_balance_k": (2_300, 7_500),
}


@dataclass(frozen=True)
class Profile:
    """One headset's settings. Raises `UnsupportedFormat` for what it does not offer."""

    link: str = "wifi"
    "wifi: AHAT depth packed into H.265; wired: AHAT raw."
    pv_width: int = 640
    pv_height: int = 360
    pv_hz: int = 30
    pv_codec: str = "h265"
    pv_focus_mm: int = 0
    "Manual focus; 0 leaves the camera's own."
    pv_exposure_us: int = 0
    "Manual exposure; 0 leaves the camera's own."
    pv_white_balance_k: int = 0
    "Colour temperature, kelvin in steps of 25; 0 leaves the camera's own."
    vlc_codec: str = "h265"
    depth_ahat_codec: str = "by link"
    depth_ahat_packing: str = "same"
    "same: depth in the brightness picture; zdepth: depth as a Zdepth blob beside it."
    microphone: str = "aac"
    "aac, pcm (two channels), array (the five microphones)."
    eye_tracking_hz: int = 30
    extended_audio: str = "aac"
    extended_audio_source: str = "both"
    extended_video_width: int = 640
    extended_video_height: int = 360
    extended_video_hz: int = 30
    extended_video_codec: str = "h265"
    extended_video_source: int = 0
    "Index of the camera group in the headset's device list."
    extended_depth: str = "zdepth"
    extended_depth_media: int = 0
    "Index of the depth format in the headset's device list."

    def __post_init__(self) -> None:
        for name, offered in _CHOICES.items():
            if getattr(self, name) not in offered:
                raise UnsupportedFormat(
                    f"{name} {getattr(self, name)!r}", ", ".join(str(one) for one in offered)
                )
        if (self.pv_width, self.pv_height, self.pv_hz) not in c.PV_FORMATS:
            offered_formats = " ".join(f"{w}x{h}@{hz}" for w, h, hz in sorted(c.PV_FORMATS))
            raise UnsupportedFormat(f"pv {self.pv_width}x{self.pv_height}@{self.pv_hz}", offered_formats)
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not isinstance(value, int) or (value and not least <= value <= most):
                raise UnsupportedFormat(f"{name} {value!r}", f"0 (automatic) or {least} to {most}")

    @property
    def ahat_codec(self) -> str:
        """Codec of AHAT depth: the operator's choice, else by the link."""
        if self.depth_ahat_codec != "by link":
            return self.depth_ahat_codec
        return "raw" if self.link == "wired" else "h265"

    @property
    def camera_settings(self) -> dict[str, int]:
        """The front camera's manual settings, those that were asked for."""
        names = ("pv_focus_mm", "pv_exposure_us", "pv_white_balance_k")
        return {name: getattr(self, name) for name in names if getattr(self, name)}
