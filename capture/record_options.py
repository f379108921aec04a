"""Options of `record`: what the operator asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kitchensync.capture.plan import LINGER_MS, HeadsetPlan, SensorPlan


@dataclass(frozen=True)
class RecordingRequest:
    """One recording as it was asked for."""

    recording: str
    data: Path
    headsets: list[HeadsetPlan]
    cameras: dict[str, str]
    sensors: list[SensorPlan] = field(default_factory=list, kw_only=True)
    camera_settings: dict[str, Any] = field(default_factory=dict, kw_only=True)
    seconds: float | None = None
    start_timeout_s: float = 30.0
    accept_version: str | None = None
    redis_url: str | None = None
    retake_of: str | None = None
    consent: str = "none"
    participant: str = ""
    place: str = ""
    chunk_s: float = 10.0
    stores: list[Path] = field(default_factory=list)
    """Folders of network stores that get a proved copy while recording."""
    gyroscope_unit: str = "auto"
    """`auto` lets the alignment find it; `deg_per_s` or `rad_per_s` state it."""
    linger_ms: int = LINGER_MS
    override: str = ""
    """Why it may begin though something that is expected is missing; "" where it may not."""
