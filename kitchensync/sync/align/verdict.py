"""From evidence to a verdict: `aligned`, `check` or `not_aligned`, with reasons in plain language.

The thresholds are stored in every result and changed only with the trial bench.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kitchensync.storage.timeline.bridge import Bridge

Status = Literal["aligned", "check", "not_aligned"]

SERVES_MS = 500.0  # maximum error of a usable bridge between two headsets

THRESHOLDS: dict[str, float] = {
    "rho_least": 0.25,
    "rho2_share_most": 0.8,
    "rival_share_most": 0.5,
    "z_least": 6.0,
    "correlation_least": 0.5,
    "windows_least": 4,
    "windows_share_least": 0.15,
    "stat_sigmas": 3.0,
    "stat_most_ms": 16.7,
    "chi_most": 6.0,
    "step_z_most": 7.0,
    "step_most_ms": 3.0,
    "mount_most_deg": 6.0,
    "mount_sigmas": 3.0,
    "drift_most_ppm": 150.0,
    "rescue_drift_most_ppm": 15_500.0,
    "rescue_rho_least": 0.5,
    "rescue_correlation_least": 0.7,
    "scale_least": 0.7,
    "scale_most": 1.4,
    "prior_sigmas": 4.0,
    "period_share_most": 0.25,
    "lobe_sigmas": 2.0,
    "stamp_bend_most_ms": 1.0,
    "sound_z_least": 10.0,
    "sound_peak_least": 9.0,
    "sound_inliers_least": 0.6,
    "sound_drift_most_ppm": 200.0,
    "sound_sigmas": 3.0,
    "sound_systematic_ms": 15.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence for a verdict; the fine part has its defaults if no window could be used."""

    rho: float
    rho2: float
    rival: float
    z: float
    edge: bool
    tau0_s: float
    lobe_distance_s: float
    prior_s: float | None = None
    prior_sigma_s: float | None = None
    windows: int = 0
    windows_ok: int = 0
    correlation: float = 0.0
    stat_ms: float = float("inf")
    chi: float = 0.0
    step_ms: float = 0.0
    step_z: float = 0.0
    step_t_s: float = 0.0
    jumps: tuple[tuple[float, float], ...] = ()
    mount_deg: float = 0.0
    mount_sigma_deg: float = 0.0
    drift_ppm: float = 0.0
    scale: float = 1.0
    nominal_rate: bool = False
    head_pose: bool = False
    stamp_bend_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Status with its reasons (empty when aligned) and warnings (which do not change the status)."""

    status: Status
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def judge(evidence: Evidence, thresholds: dict[str, float] = THRESHOLDS) -> Verdict:
    """Return `not_aligned` in doubt, `check` if usable but unusual, else `aligned`."""
    e, t, warnings = evidence, thresholds, []
    if has_rival(e, t) and lobe_is_chosen_by_clocks(e, t):
        warnings.append(
            f"periodic motion: the clocks chose between shifts {abs(e.lobe_distance_s):.1f} s apart"
        )
    if e.stamp_bend_ms > t["stamp_bend_most_ms"]:
        warnings.append(
            f"the headset's gyroscope clock bends by {e.stamp_bend_ms:.1f} ms against its own line"
        )
    refusals = [*_search_refusals(evidence, thresholds), *_fit_refusals(evidence, thresholds)]
    if refusals:
        return Verdict("not_aligned", tuple(refusals), tuple(warnings))
    doubts = _doubts(evidence, thresholds)
    return Verdict("check" if doubts else "aligned", tuple(doubts), tuple(warnings))


def has_rival(e: Evidence, t: dict[str, float]) -> bool:
    """Return whether another lag scores nearly as high, with enough overlap."""
    return e.rho2 > t["rho2_share_most"] * e.rho and e.rival > t["rival_share_most"]


def has_turned(deg: float, sigma_deg: float, t: dict[str, float] = THRESHOLDS) -> bool:
    """Return whether the camera certainly turned on the head; with little motion the rotation is uncertain."""
    return deg > max(t["mount_most_deg"], t["mount_sigmas"] * sigma_deg)


def lobe_is_chosen_by_clocks(e: Evidence, t: dict[str, float]) -> bool:
    """Return whether the clocks exclude the next best lag: sigma below a quarter of the distance."""
    if e.prior_s is None or e.prior_sigma_s is None:
        return False
    near = abs(e.tau0_s - e.prior_s) <= t["lobe_sigmas"] * e.prior_sigma_s
    return near and e.prior_sigma_s < t["period_share_most"] * abs(e.lobe_distance_s)


def _search_refusals(e: Evidence, t: dict[str, float]) -> list[str]:
    reasons = []
    if e.rho < t["rho_least"]:
        reasons.append(
            f"the two devices do not show the same motion (agreement {e.rho:.2f}, needed {t['rho_least']:g}):"
            " other recording, no overlap, or hardly any motion"
        )
    if e.edge:
        reasons.append("the best match lies at the edge of the search: the true one may lie outside")
    if has_rival(e, t) and not lobe_is_chosen_by_clocks(e, t):
        reasons.append(
            f"another time shift, {abs(e.lobe_distance_s):.1f} s away, fits almost as well"
            f" ({e.rho2 / max(e.rho, 1e-9):.2f} of the best): periodic or too little motion"
        )
    elif e.z < t["z_least"] and not lobe_is_chosen_by_clocks(e, t):
        reasons.append(
            f"the best match does not stand out (z {e.z:.1f}, at least {t['z_least']:g} is needed)"
        )
    return reasons


def _fit_refusals(e: Evidence, t: dict[str, float]) -> list[str]:
    needed = max(t["windows_least"], t["windows_share_least"] * e.windows)
    if e.windows_ok < needed:
        return [f"only {e.windows_ok} of {e.windows} stretches hold enough common motion for a precise lag"]
    reasons = []
    correlation_least = t["rescue_correlation_least"] if e.nominal_rate else t["correlation_least"]
    if e.correlation < correlation_least:
        reasons.append(f"after alignment the rotation rates agree only {e.correlation:.2f}")
    if t["stat_sigmas"] * e.stat_ms > t["stat_most_ms"]:
        reasons.append(
            f"the shift is known only to {t['stat_sigmas'] * e.stat_ms:.1f} ms: more than half a video frame"
        )
    if abs(e.drift_ppm) > t["drift_most_ppm"] and not e.nominal_rate:
        reasons.append(f"the clocks seem to differ by {e.drift_ppm:.0f} ppm: no two crystals do")
    if abs(e.drift_ppm) > t["rescue_drift_most_ppm"]:
        reasons.append(
            f"the clocks seem to differ by {e.drift_ppm:.0f} ppm: more than nominal stamps explain"
        )
    if e.nominal_rate and e.rho < t["rescue_rho_least"]:
        reasons.append(f"even with the best rate the devices agree only {e.rho:.2f}")
    return reasons


def _doubts(e: Evidence, t: dict[str, float]) -> list[str]:
    reasons = []
    if e.head_pose:
        reasons.append(
            "aligned by the head pose, since the gyroscope is missing: the headset may smooth or predict it"
        )
    if e.step_z > t["step_z_most"] and abs(e.step_ms) > t["step_most_ms"]:
        reasons.append(f"a clock seems to jump by {e.step_ms:.1f} ms near {e.step_t_s:.1f} s of the video")
    if e.jumps:
        reasons.append(
            f"a clock jumps {len(e.jumps)} times: " * (len(e.jumps) > 1)
            + "; ".join(f"a clock jumps by {size:.1f} ms at {at:.1f} s of the video" for at, size in e.jumps)
            + f": fitted in {len(e.jumps) + 1} pieces"
        )
    if e.chi > t["chi_most"]:
        reasons.append(
            f"the lags scatter {e.chi:.1f} times more than their error bars: a clock is not a straight line"
        )
    if has_turned(e.mount_deg, e.mount_sigma_deg, t):
        reasons.append(f"the camera turned by {e.mount_deg:.0f} degrees on the head during the recording")
    if e.nominal_rate:
        reasons.append(
            f"gyroscope stamps run {e.drift_ppm:.0f} ppm off: they are nominal, the rate was fitted"
        )
    if not t["scale_least"] <= e.scale <= t["scale_most"]:
        reasons.append(
            f"the rotation rates differ by a factor of {e.scale:.3g}: unit or calibration is wrong"
        )
    if e.prior_s is not None and e.prior_sigma_s is not None:
        away = abs(e.tau0_s - e.prior_s)
        if away > t["prior_sigmas"] * e.prior_sigma_s:
            reasons.append(
                f"the motion says {away:.2f} s other than the clocks (good to {e.prior_sigma_s:.2f} s)"
            )
    return reasons


def judge_bridge(bridge: Bridge | None, name: str, strays_ms: float) -> Verdict:
    """Return the verdict on the bridge of two headsets."""
    if bridge is None:
        return Verdict("not_aligned", (f"{name} or the main headset exchanged no clock with the recorder",))
    if bridge.bound_ms > SERVES_MS:
        why = f"its clock is known only to {bridge.bound_ms / 1e3:.1f} s: there are no clock exchanges"
        return Verdict("not_aligned", (why,))
    doubts = []
    if bridge.bound_ms > THRESHOLDS["stat_most_ms"]:
        doubts.append(f"its clock is known to {bridge.bound_ms:.0f} ms only: the network was slow")
    if len(bridge.source.lines) + len(bridge.target.lines) > 2:
        doubts.append(
            f"a headset was restarted or its clock stepped: the index follows each stretch, the map is a line that"
            f" strays from it by up to {strays_ms:.1f} ms"
        )
    return Verdict("check" if doubts else "aligned", tuple(doubts))
