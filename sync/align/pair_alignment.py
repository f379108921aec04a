"""What is known of one pair after its gyroscopes were compared, and what was known before. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sensors.array_types import Floats
from storage.timeline.clock_map import ClockMap
from sync.align.coarse import Coarse
from sync.align.fine import Fine
from sync.align.verdict import THRESHOLDS, Verdict


@dataclass(frozen=True, slots=True)
class Prior:
    """Clocks say: media time 0 is tick `epoch_ticks + 1e7 tau0_s`, searched within the half width."""

    tau0_s: float
    sigma_s: float
    half_width_s: float
    source: str


@dataclass(frozen=True, slots=True)
class Overlay:
    """Ten seconds of both rotation rates after alignment: media s, and rad/s (n, 3) in the headset's axes."""

    t_s: Floats
    headset: Floats
    camera: Floats


@dataclass(frozen=True, slots=True)
class Unit:
    """What the wire values are in: scale against the camera's rad/s, and the decision."""

    name: str  # deg_per_s | rad_per_s | undecided
    scale: float
    source: str


@dataclass(frozen=True, slots=True)
class PairAlignment:
    """Everything known about one pair; `clock_map` is None when not aligned."""

    verdict: Verdict
    clock_map: ClockMap | None
    coarse: Coarse
    fine: Fine | None
    unit: Unit
    prior: Prior | None
    nominal_rate: bool
    stat_ms: tuple[float, float, float]
    model_ms: tuple[float, float, float]
    overlay: Overlay | None
    head_pose: bool = False

    @property
    def saw_motion(self) -> bool:
        """Tell whether both sides moved enough to be told apart: then a refusal stands."""
        return self.fine is not None and self.fine.lags.kept.sum() >= THRESHOLDS["windows_least"]

    @property
    def bound95_ms(self) -> tuple[float, float, float]:
        """Bound of the error at start, middle and end: two statistical sigmas and the model part."""
        first, middle, last = (2.0 * s + m for s, m in zip(self.stat_ms, self.model_ms, strict=True))
        return first, middle, last
