"""The alignment of one pair by gyroscopes, sound or clocks. Pure functions."""

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
    """Unit of the headset's values: scale to the camera's rad/s, and the decision."""

    name: str  # deg_per_s | rad_per_s | undecided
    scale: float
    source: str


@dataclass(frozen=True, slots=True)
class PairAlignment:
    """The alignment of one pair with its evidence; `clock_map` is None if not aligned."""

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
        """Return whether there was enough motion, so that a refusal is final."""
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
"""A single line is not valid before and after a restart of the headset's ticks."""


def doubted(pair: PairAlignment, *reasons: str) -> PairAlignment:
    """Return an alignment as `check` for the non-empty ones of these reasons; a refusal is unchanged."""
    given_reasons = tuple(filter(None, reasons))
    if pair.clock_map is None or not given_reasons:
        return pair
    verdict = Verdict("check", (*pair.verdict.reasons, *given_reasons), pair.verdict.warnings)
    return replace(pair, verdict=verdict)


def doubt_by_sound(pair: PairAlignment, heard: Heard | None) -> str:
    """Return a reason if a usable sound differs from the motion by more than 3 combined sigma, else ""."""
    if pair.clock_map is None or heard is None or not heard.is_usable or heard.line is None:
        return ""
    middle = float(np.mean(heard.span_s))
    away_ms = abs(float(heard.line.at(middle)) - float(pair.clock_map.tau_s(middle))) * 1e3
    stat_ms = float(heard.sigma_s(np.array([middle]))[0]) * 1e3
    most_ms = THRESHOLDS["sound_sigmas"] * float(
        np.hypot(THRESHOLDS["sound_systematic_ms"], np.hypot(stat_ms, max(pair.stat_ms)))
    )
    if away_ms <= most_ms:
        return ""
    return f"the sound says {away_ms:.0f} ms other than the motion, which is more than both can be wrong"


def by_sound(heard: Heard, epoch_ticks: int) -> tuple[Verdict, ClockMap | None]:
    """Return an alignment by sound alone: at most `check`, as the latencies of microphones are unknown."""
    if not heard.is_usable or heard.line is None:
        reason = (
            f"the sounds do not agree either (z {heard.z:.1f}, {heard.windows_ok} of {heard.windows} windows)"
        )
        return Verdict("not_aligned", (reason,)), None
    line = heard.line
    reason = "aligned by sound alone: the microphones' latencies are not known, up to tens of milliseconds"
    return Verdict("check", (reason,)), ClockMap(epoch_ticks, line.t_mid_s, line.coef, heard.span_s)


def by_clocks(prior: Prior, epoch_ticks: int, seconds: float) -> tuple[Verdict, ClockMap]:
    """Return an alignment by time stamps alone: at most `check`, as precise as the clocks were set."""
    reason = f"aligned by the clocks alone ({prior.source}), good to {prior.sigma_s:.2f} s: nothing else to compare"
    return Verdict("check", (reason,)), ClockMap(epoch_ticks, 0.0, (prior.tau0_s, 0.0), (0.0, seconds))
