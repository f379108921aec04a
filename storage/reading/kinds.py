"""Which reader fits which stream: by the last part of its name, whoever the device is."""

from __future__ import annotations

from storage.errors import NotOfThisKind
from storage.names import CLOCK_STREAMS, LEDGER_STREAMS

GREY = ("vlc_leftfront", "vlc_leftleft", "vlc_rightfront", "vlc_rightright")
HEADSET = {
    "samples": ("gyroscope", "accelerometer", "magnetometer"),
    "frames": ("pv", *GREY, "extended_video"),
    "depth": ("depth_ahat", "depth_longthrow", "extended_depth"),
    "records": ("spatial_input", "eye_tracking"),
    "sound": ("microphone", "extended_audio"),
}
CAMERA = {"imu": ("gyroscope", "accelerometer"), "pictures": ("video",), "sound": ("audio",)}
WORDS = {
    "samples": "a motion sensor",
    "frames": "a camera",
    "depth": "depth",
    "records": "head, hands or eyes",
    "sound": "sound",
    "imu": "a motion sensor",
    "pictures": "a film",
}
"""What a stream is that a reader fits."""


def check_kind(name: str, reader: str, readers: dict[str, tuple[str, ...]] = HEADSET) -> None:
    """Raise NotOfThisKind, which says what the stream is and what reads it, where a reader does not fit."""
    device, _, short = name.rpartition("/")
    told = device in (CLOCK_STREAMS, LEDGER_STREAMS)
    if not told and short in readers[reader]:
        return
    fits = None if told else next((word for word, shorts in readers.items() if short in shorts), None)
    raise NotOfThisKind(name, WORDS[reader], WORDS[fits] if fits else None, f"{fits or 'payloads'}()")
