"""Gyroscope against gyroscope: one pair of tracks to a clock map with its evidence and verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student_t

from sync.clock_map import ClockMap
from sync.coarse import Coarse, Window, coarse_search, search_rate
from sync.errors import TooShort
from sync.fine import Fine, fine_alignment
from sync.pairing import Pairing
from sync.resample import DECIMATED_HZ, GyroTrack, decimate
from sync.segments import find_jumps, in_pieces, is_suspicious, pieces_of, segments_of
from sync.stamps import TICKS_PER_S, StampRepair
from sync.verdict import THRESHOLDS, Evidence, Verdict, judge

Floats = npt.NDArray[np.floating]
Int64 = npt.NDArray[np.int64]

DEGREES_PER_RADIAN = 180.0 / np.pi
NEAR_SIGMAS = 2.0
WIDER_SHARE = 1.25  # a match outside the prior's window wins when it is this much likelier
WEAK_RHO = 0.6  # below this a wrong nominal rate may be why
RESCUE_GAIN = 1.3
GYROSCOPE, HEAD_POSE = "gyroscope", "head_pose"
HEAD_POSE_FACTOR = 4.0  # windows of 30 Hz poses scatter less than they err
STAT_FLOOR_S = 5e-6
TWO_SIDED_95 = 1.96
BEND_SHARE = 1.5  # a clock that wants one degree more wants some of the next too
STAMP_SHARE = 0.15  # twice what the 5th percentile of exponential delays is off, as a share of their spread
BLOCK_SAMPLES = 1 << 16


@dataclass(frozen=True, slots=True)
class HeadsetGyro:
    """Headset gyroscope on its repaired clock, seconds since `epoch_ticks`, thinned to about 400 Hz."""

    epoch_ticks: int
    track: GyroTrack
    repair: StampRepair
    source: str = GYROSCOPE


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


def headset_gyro(
    blocks: Iterator[tuple[Int64, npt.NDArray[np.floating]]], repair: StampRepair
) -> HeadsetGyro:
    """Stamp and thin the headset's gyroscope; `blocks` yields vinyl_ns (n,) and rates (n, 3) in order."""
    epoch: int | None = None
    done = 0

    def stamped() -> Iterator[tuple[Floats, npt.NDArray[np.floating]]]:
        nonlocal epoch, done
        for vinyl_ns, rates in blocks:
            ticks = repair.ticks(vinyl_ns, first_sample=done)
            done += len(vinyl_ns)
            epoch = int(ticks[0]) if epoch is None else epoch
            yield (ticks - epoch).astype(np.float64) / TICKS_PER_S, rates

    factor = max(1, round(repair.rate_hz / DECIMATED_HZ))
    track = decimate(stamped(), factor)
    assert epoch is not None
    return HeadsetGyro(epoch, track, repair)


def in_blocks(
    vinyl_ns: Int64, rates: npt.NDArray[np.floating]
) -> Iterator[tuple[Int64, npt.NDArray[np.floating]]]:
    """Cut whole arrays into blocks, so that nothing of full length is built."""
    for start in range(0, len(vinyl_ns), BLOCK_SAMPLES):
        piece = slice(start, start + BLOCK_SAMPLES)
        yield vinyl_ns[piece], rates[piece]


def align_pair(
    headset: HeadsetGyro, camera: GyroTrack, *, prior: Prior | None = None, unit: str = "auto"
) -> PairAlignment:
    """Align a camera (media s, rad/s) with a headset; `unit` is auto, deg_per_s or rad_per_s.

    Raises TooShort when either track holds under 3 s.
    """
    factor = _first_factor(headset.track, camera, unit)
    found = _align_once(headset, camera, prior, factor)
    scale = found.unit.scale
    other = DEGREES_PER_RADIAN if factor == 1.0 else 1.0
    if unit == "auto" and found.fine is not None and _nearer(scale, other, factor):
        found = _align_once(headset, camera, prior, other)
    return found if unit == "auto" else replace(found, unit=replace(found.unit, name=unit, source="setting"))


def _first_factor(headset: GyroTrack, camera: GyroTrack, unit: str) -> float:
    """Guess the unit from the sizes of both motions: it only has to be right to a factor of seven."""
    if unit != "auto":
        return DEGREES_PER_RADIAN if unit == "deg_per_s" else 1.0
    ratio = _liveliness(headset) / max(_liveliness(camera), 1e-12)
    return DEGREES_PER_RADIAN if _nearer(ratio, DEGREES_PER_RADIAN, 1.0) else 1.0


def _liveliness(track: GyroTrack) -> float:
    centred = track.rad_per_s - np.median(track.rad_per_s, axis=0)
    return float(np.sqrt(np.mean(centred**2)))


def _nearer(scale: float, one: float, other: float) -> bool:
    return abs(np.log(max(scale, 1e-12) / one)) < abs(np.log(max(scale, 1e-12) / other))


def _align_once(headset: HeadsetGyro, camera: GyroTrack, prior: Prior | None, factor: float) -> PairAlignment:
    track = headset.track.scaled(1.0 / factor) if factor != 1.0 else headset.track
    coarse = _search(track, camera, prior)
    pairing = Pairing.of(track, camera)
    fine, nominal = _fit(pairing, coarse)
    if is_suspicious(coarse, fine):
        coarse, fine, nominal = _fit_pieces(track, camera, pairing, (coarse, fine, nominal))
    if coarse.rho < WEAK_RHO:
        coarse, fine, nominal = _rescue(track, camera, prior, pairing, (coarse, fine, nominal))
    overlay = _overlay(pairing, fine) if fine is not None else None
    return _conclude(headset, coarse, fine, prior, nominal, factor, overlay)


Found = tuple[Coarse, Fine | None, bool]


def _fit(pairing: Pairing, coarse: Coarse) -> tuple[Fine | None, bool]:
    """Fine alignment from a coarse lag; a drift that no crystal has means nominal stamps, and a second look."""
    if not np.isfinite(coarse.tau_s):
        return None, False
    nominal = coarse.rate != 1.0
    fine = fine_alignment(pairing, tau_s=coarse.tau_s, rate=coarse.rate, t_ref_s=0.0)
    drift_most = THRESHOLDS["drift_most_ppm"] * 1e-6
    if fine is not None and not nominal and abs(fine.line.drift) > drift_most:
        nominal = True
        again = fine_alignment(
            pairing, tau_s=fine.line.tau_s, rate=1.0 + fine.line.drift, t_ref_s=fine.line.t_mid_s
        )
        fine = again or fine
    return fine, nominal


def _fit_pieces(track: GyroTrack, camera: GyroTrack, pairing: Pairing, found: Found) -> Found:
    """Look for large jumps segment by segment; keep what was found when that tells no better story."""
    segments = segments_of(track, camera)
    pieces = pieces_of(segments)
    jumps = find_jumps(segments, pieces, pairing)
    if jumps is None:
        return found
    tau_s, t_ref_s, sizes = jumps
    fine = fine_alignment(pairing, tau_s=tau_s, rate=1.0, t_ref_s=t_ref_s, jumps=sizes)
    before = found[1].lags.kept.sum() if found[1] is not None else 0
    if fine is None or fine.lags.kept.sum() <= before:
        return found
    return in_pieces(found[0], pieces), fine, False


def _rescue(
    track: GyroTrack, camera: GyroTrack, prior: Prior | None, pairing: Pairing, found: Found
) -> Found:
    """Nominal stamps may run a percent off: search the rate too."""
    coarse = found[0]
    rate = search_rate(track, camera)
    if abs(rate - 1.0) * 1e6 <= THRESHOLDS["drift_most_ppm"]:
        return found
    window = Window(prior.tau0_s, prior.half_width_s) if prior is not None else None
    rescued = coarse_search(track, camera, window, rate=rate)
    if rescued.rho <= RESCUE_GAIN * coarse.rho:
        return found
    return rescued, *_fit(pairing, rescued)


def _search(track: GyroTrack, camera: GyroTrack, prior: Prior | None) -> Coarse:
    """Search near the prior, then everywhere when that is better."""
    windows: list[Window | None] = [None]
    if prior is not None:
        near_s = min(NEAR_SIGMAS * prior.sigma_s, prior.half_width_s)
        windows = [Window(prior.tau0_s, near_s), Window(prior.tau0_s, prior.half_width_s), None]
    for window in windows:
        coarse = coarse_search(track, camera, window)
        if not coarse.edge and coarse.rival <= WIDER_SHARE:
            break
    return coarse


def _conclude(
    headset: HeadsetGyro,
    coarse: Coarse,
    fine: Fine | None,
    prior: Prior | None,
    nominal: bool,
    factor: float,
    overlay: Overlay | None,
) -> PairAlignment:
    nowhere = (float("nan"),) * 3
    stat, model = nowhere, nowhere
    evidence = Evidence(
        rho=coarse.rho,
        rho2=coarse.rho2,
        rival=coarse.rival,
        z=coarse.z,
        edge=coarse.edge,
        tau0_s=coarse.tau_s,
        lobe_distance_s=coarse.second_tau_s - coarse.tau_s,
        head_pose=headset.source == HEAD_POSE,
        prior_s=prior.tau0_s if prior else None,
        prior_sigma_s=prior.sigma_s if prior else None,
    )
    if fine is not None:
        stat, model = errors_ms(fine, headset)
        evidence = replace(
            evidence,
            tau0_s=float(fine.line.at(0.0)),
            windows=len(fine.lags.kept),
            windows_ok=int(fine.lags.kept.sum()),
            correlation=fine.correlation,
            stat_ms=max(stat),
            chi=fine.line.chi,
            step_ms=fine.step.size_s * 1e3,
            step_z=fine.step.z,
            step_t_s=fine.step.t_s,
            jumps=tuple((at, size * 1e3) for at, size in fine.line.jumps),
            mount_deg=fine.rotation_halves_deg,
            drift_ppm=fine.line.drift * 1e6,
            scale=fine.scale,
            nominal_rate=nominal,
            stamp_bend_ms=headset.repair.bend_ms,
        )
    verdict = judge(evidence)
    usable = fine is not None and verdict.status != "not_aligned"
    clock_map = _map_of(headset.epoch_ticks, fine) if fine is not None and usable else None
    unit = _unit_of(fine, factor) if usable else Unit("undecided", _raw_scale(fine, factor), "measured")
    by_pose = headset.source == HEAD_POSE
    return PairAlignment(
        verdict, clock_map, coarse, fine, unit, prior, nominal, stat, model, overlay, by_pose
    )


def _map_of(epoch_ticks: int, fine: Fine) -> ClockMap:
    line = fine.line
    return ClockMap(epoch_ticks, line.t_mid_s, line.coef, fine.overlap_s, line.jumps)


def _raw_scale(fine: Fine | None, factor: float) -> float:
    return fine.scale * factor if fine is not None else float("nan")


def _unit_of(fine: Fine | None, factor: float) -> Unit:
    name = "rad_per_s" if factor == 1.0 else "deg_per_s"
    return Unit(name, _raw_scale(fine, factor), "measured")


def errors_ms(
    fine: Fine, headset: HeadsetGyro
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Statistical sigma and model part at start, middle and end of the overlap; in pieces, the worst of each third.

    The headset's stamps rest on the lower envelope of late ones: how low that lies is known to a part of the jitter.
    """
    first, last = fine.overlap_s
    breaks = np.array(fine.line.shape.breaks_s)
    inside = np.concatenate([breaks, np.nextafter(breaks, np.inf)])
    where = np.concatenate([np.array([first, 0.5 * (first + last), last]), inside])
    freedom = max(int(fine.lags.kept.sum()) / 2.0 - 1.0, 2.0)  # windows overlap by half
    few = float(student_t.ppf(0.975, freedom)) / TWO_SIDED_95
    sigma = np.hypot(few * fine.coupling * fine.line.sigma_s(where), STAT_FLOOR_S) * 1e3
    third = np.clip(((where - first) / max(last - first, 1e-9) * 3.0).astype(int), 0, 2)
    stat = [float(sigma[third == k].max()) for k in range(3)]
    stamps = STAMP_SHARE * headset.repair.jitter_ms
    if headset.source == HEAD_POSE:
        sigma *= HEAD_POSE_FACTOR
    model = [BEND_SHARE * float(b) * 1e3 + stamps for b in fine.bend_s]
    return (stat[0], stat[1], stat[2]), (model[0], model[1], model[2])


def _overlay(pairing: Pairing, fine: Fine, seconds: float = 10.0) -> Overlay:
    """The liveliest ten seconds, both in the headset's axes."""
    t_s = pairing.camera.t_s
    good = pairing.overlap(fine.line.at(t_s))
    power = np.where(good, (pairing.camera.values**2).sum(axis=1), 0.0)
    length = min(int(seconds * pairing.camera.hz), len(power))
    start = int(np.argmax(np.convolve(power, np.ones(length), mode="valid")))
    rows = start + np.flatnonzero(good[start : start + length])
    headset = pairing.spline(t_s[rows] + fine.line.at(t_s[rows]))
    return Overlay(t_s[rows], headset, pairing.camera.values[rows] @ fine.rotation.T)


__all__ = ["HeadsetGyro", "PairAlignment", "Prior", "TooShort", "align_pair", "headset_gyro", "in_blocks"]
