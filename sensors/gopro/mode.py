"""How a camera was set when it filmed, and the names under which results for that setting are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CameraMode:
    """Size of the pictures (px), their rate (Hz), the lens as the camera's header says it, and stabilisation."""

    width: int
    height: int
    rate_hz: float
    lens: str | None
    is_stabilised: bool

    @classmethod
    def of(cls, header: Mapping[str, str], *, width: int, height: int, rate_hz: float) -> CameraMode:
        """Read lens (`VFOV`) and stabilisation (`EISE`: anything but N is on) from the camera's own header."""
        steady = not header.get("EISE", "N").startswith("N")
        return cls(width, height, rate_hz, header.get("VFOV") or None, steady)

    @property
    def lens_name(self) -> str:
        """What the lens depends on, as a part of a file name: stabilisation crops and warps, the rate does not."""
        return f"{self.width}x{self.height}-{self.lens or '?'}" + "-stabilized" * self.is_stabilised

    @property
    def latency_name(self) -> str:
        """What the picture latency depends on: the rate too."""
        parts = [f"{self.width}x{self.height}", f"{self.rate_hz:.2f}", self.lens or ""]
        return " ".join(filter(None, [*parts, "stabilised" if self.is_stabilised else ""]))
