"""What is measured: rigs, speeds, and the budgets that each is held to."""

from __future__ import annotations

from dataclasses import dataclass, field

VLC = ("vlc_leftfront", "vlc_leftleft", "vlc_rightfront", "vlc_rightright")
SMALL = ("gyroscope", "accelerometer", "magnetometer", "spatial_input")
OTHERS = (*SMALL, "microphone", "eye_tracking")
RIG = ("pv", *VLC, "depth_ahat", *OTHERS)
FULL_HD = {"pv_width": 1920, "pv_height": 1080}

MOST_QUEUE_MB = 256
MOST_BEHIND_MS = 250
MOST_DRAIN_S = 2.0


@dataclass(frozen=True)
class Case:
    """One way to load the path. `speed` 0 is unthrottled; `seconds` are seconds of the schedule."""

    name: str
    streams: tuple[str, ...]
    seconds: float
    speed: float = 0.0
    link: str = "wifi"
    linger_ms: int | None = None
    profile: dict[str, object] = field(default_factory=dict)
    most_ms_per_rig_s: float | None = None
    most_ms_per_mb: float | None = None
    "Of raw depth, its compression included."
    least_packets_per_s: float | None = None
    must_be_lossless: bool = False


COMPRESSION_MS_PER_MB = 1.5


def cases() -> list[Case]:
    """Return every case with its budgets."""
    fast, slow = 6 + COMPRESSION_MS_PER_MB, 8 + COMPRESSION_MS_PER_MB
    wired = {"link": "wired", "profile": FULL_HD}
    hd = {"profile": FULL_HD}
    return [
        Case("small packets, unpaced", SMALL, 1800, least_packets_per_s=20_000),
        Case("encoded video, unpaced", ("pv", *VLC), 120, **hd),
        Case("raw depth, unpaced", ("depth_ahat",), 20, link="wired", most_ms_per_mb=fast),
        Case("encoded rig, unpaced", RIG, 120, most_ms_per_rig_s=45, **hd),
        Case("encoded rig, unpaced, one by one", RIG, 120, linger_ms=0, most_ms_per_rig_s=95, **hd),
        Case("encoded rig at 8x", RIG, 96, speed=8, most_ms_per_rig_s=95, must_be_lossless=True, **hd),
        Case("encoded rig at 16x", RIG, 160, speed=16, most_ms_per_rig_s=95, must_be_lossless=True, **hd),
        Case("encoded rig at 1x", RIG, 20, speed=1, most_ms_per_rig_s=130, must_be_lossless=True, **hd),
        Case(
            "raw grey camera at 1x", VLC[:1], 20, speed=1, must_be_lossless=True, profile={"vlc_codec": "raw"}
        ),
        Case("raw-depth rig, unpaced", RIG, 20, most_ms_per_mb=fast, **wired),
        Case("raw-depth rig at 4x", RIG, 40, speed=4, most_ms_per_mb=fast, must_be_lossless=True, **wired),
        Case("raw-depth rig at 1x", RIG, 20, speed=1, most_ms_per_mb=slow, must_be_lossless=True, **wired),
    ]
