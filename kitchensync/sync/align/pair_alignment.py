"""What is known of one pair after its gyroscopes were compared, and what was known before. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kitchensync.shell.array_types import Floats
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.sync.align.coarse import Coarse
from kitchensync.sync.align.fine import Fine
from kitchensync.sync.align.prior import Prior
from kitchensync.sync.align.sound import Heard
from kitchensync.sync.align.verdict import THRESHOLDS, Verdict


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
        """Return whether both sides moved enough to be told apart: then a refusal stands."""
        return self.fine is not None and self.fine.lags.kept.sum() >= THRESHOLDS["windows_least"]

    @property
    def bound95_ms(self) -> tuple[float, float, float]:
        """Bound of the error at start, middle and end: two statistical sigmas and the model part."""
        first, middle, last = (2.0 * s + m for s, m in zip(self.stat_ms, self.model_ms, strict=True))
        return first, middle, last


RESTARTED = (
    "the headset was started anew during the recording: only what lies between two of its starts is compared,"
    " the rest has no certified place"
)
"""No line holds both before and after the headset's ticks began anew."""


def doubted(found: PairAlignment, *reasons: str) -> PairAlignment:
    """Return the gyroscopes' answer as `check` for these reasons, of which some may be empty; a refusal stands."""
    given = tuple(filter(None, reasons))
    if found.clock_map is None or not given:
        return found
    verdict = Verdict("check", (*found.verdict.reasons, *given), found.verdict.warnings)
    return replace(found, verdict=verdict)


def doubt_by_sound(found: PairAlignment, heard: Heard | None) -> str:
    """Return the doubt where a usable sound differs from the motion by more than 3 combined sigma, else nothing."""
    if found.clock_map is None or heard is None or not heard.is_usable or heard.line is None:
        return ""
    middle = float(np.mean(heard.span_s))
    away_ms = abs(float(heard.line.at(middle)) - float(found.clock_map.tau_s(middle))) * 1e3
    stat_ms = float(heard.sigma_s(np.array([middle]))[0]) * 1e3
    most_ms = THRESHOLDS["sound_sigmas"] * float(
        np.hypot(THRESHOLDS["sound_systematic_ms"], np.hypot(stat_ms, max(found.stat_ms)))
    )
    if away_ms <= most_ms:
        return ""
    return f"the sound says {away_ms:.0f} ms other than the motion, which is more than both can be wrong"


def by_sound(heard: Heard, epoch_ticks: int) -> tuple[Verdict, ClockMap | None]:
    """An alignment by sound alone: `check` at best, for its latencies are not known."""
    if not heard.is_usable or heard.line is None:
        reason = (
            f"the sounds do not agree either (z {heard.z:.1f}, {heard.windows_ok} of {heard.windows} windows)"
        )
        return Verdict("not_aligned", (reason,)), None
    line = heard.line
    reason = "aligned by sound alone: the microphones' latencies are not known, up to tens of milliseconds"
    return Verdict("check", (reason,)), ClockMap(epoch_ticks, line.t_mid_s, line.coef, heard.span_s)


def by_clocks(prior: Prior, epoch_ticks: int, seconds: float) -> tuple[Verdict, ClockMap]:
    """Time stamps alone: `check` at best, and as good as the clocks were set."""
    reason = f"aligned by the clocks alone ({prior.source}), good to {prior.sigma_s:.2f} s: nothing else to compare"
    return Verdict("check", (reason,)), ClockMap(epoch_ticks, 0.0, (prior.tau0_s, 0.0), (0.0, seconds))
