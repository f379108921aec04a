"""Settings of a headset: defaults by the link, changed by the operator, checked before a stream is opened."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, WithJsonSchema, model_validator

from kitchensync.sensors.errors import UnsupportedFormat
from kitchensync.sensors.hololens import constants as c

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
VideoCodec = Literal["h265", "h264", "raw"]


def _zero_or(least: int, most: int, value: int) -> int:
    if value and not least <= value <= most:
        raise ValueError(f"should be 0 (automatic) or {least} to {most}")
    return value


def _schema(least: int, most: int) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"const": 0}, {"type": "integer", "minimum": least, "maximum": most}]})


FocusMm = Annotated[int, AfterValidator(partial(_zero_or, 170, 10_000)), _schema(170, 10_000)]
ExposureUs = Annotated[int, AfterValidator(partial(_zero_or, 100, 66_000)), _schema(100, 66_000)]
WhiteBalanceK = Annotated[int, AfterValidator(partial(_zero_or, 2_300, 7_500)), _schema(2_300, 7_500)]


class HeadsetSettings(BaseModel):
    """Settings of one headset, or of all. Raises pydantic's ValidationError."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    link: Literal["wifi", "wired"] = "wifi"
    "wifi: AHAT depth packed into H.265; wired: AHAT raw."
    pv_width: int = 640
    pv_height: int = 360
    pv_hz: int = 30
    pv_codec: VideoCodec = "h265"
    pv_focus_mm: FocusMm = 0
    "Manual focus; 0 leaves the camera's own."
    pv_exposure_us: ExposureUs = 0
    "Manual exposure; 0 leaves the camera's own."
    pv_white_balance_k: WhiteBalanceK = 0
    "Colour temperature, kelvin in steps of 25; 0 leaves the camera's own."
    vlc_codec: VideoCodec = "h265"
    depth_ahat_codec: Literal["by link", "h265", "h264", "raw"] = "by link"
    depth_ahat_packing: Literal["same", "zdepth"] = "same"
    "same: depth in the brightness picture; zdepth: depth as a Zdepth blob beside it."
    microphone: Literal["aac", "pcm", "array"] = "aac"
    "aac, pcm (two channels), array (the five microphones)."
    eye_tracking_hz: Literal[30, 60, 90] = 30
    extended_audio: Literal["aac", "pcm"] = "aac"
    extended_audio_source: Literal["microphone", "application", "both"] = "both"
    extended_video_width: int = 640
    extended_video_height: int = 360
    extended_video_hz: int = 30
    extended_video_codec: VideoCodec = "h265"
    extended_video_source: int = 0
    "Index of the camera group in the headset's device list."
    extended_depth: Literal["zdepth", "raw"] = "zdepth"
    extended_depth_media: int = 0
    "Index of the depth format in the headset's device list."


class Profile(HeadsetSettings):
    """All settings of one headset. Raises `UnsupportedFormat` for a video format that PV does not offer."""

    @model_validator(mode="after")
    def _pv_offers_it(self) -> Self:
        if (self.pv_width, self.pv_height, self.pv_hz) not in c.PV_FORMATS:
            offered = " ".join(f"{w}x{h}@{hz}" for w, h, hz in sorted(c.PV_FORMATS))
            raise UnsupportedFormat(f"pv {self.pv_width}x{self.pv_height}@{self.pv_hz}", offered)
        return self

    @property
    def ahat_codec(self) -> str:
        """Codec of AHAT depth: the operator's choice, or by the link."""
        if self.depth_ahat_codec != "by link":
            return self.depth_ahat_codec
        return "raw" if self.link == "wired" else "h265"

    @property
    def camera_settings(self) -> dict[str, int]:
        """The front camera's manual settings."""
        names = ("pv_focus_mm", "pv_exposure_us", "pv_white_balance_k")
        return {name: getattr(self, name) for name in names if getattr(self, name)}
