"""Align a camera with a headset by their gyroscopes: clock map, evidence and verdict. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from kitchensync.storage.timeline.clock_map import ClockMap, sampled_until
from kitchensync.sync.align.coarse import (
    RATE_HZ,
    Coarse,
    Prepared,
    Window,
    coarse_search,
    read_peaks,
    scores_of,
    search_rate,
)
from kitchensync.sync.align.error_parts import ErrorParts, error_parts
from kitchensync.sync.align.fine import Fine, Jumps, fine_alignment
from kitchensync.sync.align.headset_gyro import HEAD_POSE, HeadsetGyro
from kitchensync.sync.align.pair_alignment import Overlay, PairAlignment, Unit
from kitchensync.sync.align.prior import Prior
from kitchensync.sync.align.verdict import THRESHOLDS, Evidence, judge
from kitchensync.sync.fit.line import Line
from kitchensync.sync.fit.pairing import Pairing
from kitchensync.sync.fit.resample import GyroTrack
from kitchensync.sync.fit.windows import fit_rotation, place_jump

SEGMENTS_IN_TRACK, SHORTEST_S, LONGEST_S = 8.0, 12.0, 60.0
SURE_RHO = 0.5
JUMP_S = 0.040  # one cell at RATE_HZ; smaller jumps are found by the test of window lags
LEAST_IN_PIECE = 2
LEAST_SURE = 0.5
LOST_RUN = 3  # windows overlap by half, so a single bad moment fails two


@dataclass(frozen=True, slots=True)
class Segment:
    """One stretch of the camera's track with its own lag."""

    first_s: float
    last_s: float
    coarse: Coarse

    @property
    def is_sure(self) -> bool:
        """Return whether this lag is reliable."""
        coarse = self.coarse
        is_distinct = coarse.rival <= THRESHOLDS["rival_share_most"] and coarse.z >= THRESHOLDS["z_least"]
        return coarse.rho >= SURE_RHO and is_distinct and not coarse.edge


def is_suspicious(coarse: Coarse, fine: Fine | None) -> bool:
    """Return whether a part may have another lag: several consecutive windows fail, or the match is weak."""
    if fine is None or coarse.rho < SURE_RHO or coarse.rival > THRESHOLDS["rival_share_most"]:
        return True
    lost = np.concatenate([[False], ~fine.lags.kept, [False]])
    edges = np.flatnonzero(np.diff(lost.astype(int)))
    return bool(len(edges) and (edges[1::2] - edges[::2]).max() >= LOST_RUN)


def segments_of(headset: GyroTrack, camera: GyroTrack) -> list[Segment]:
    """Return the lags of half-overlapping segments of clip(T/8, 12, 60) s, searched in the whole headset track."""
    whole_h, whole_g = Prepared.of(headset, camera, RATE_HZ)
    seconds = len(whole_g.grid.good) / RATE_HZ
    width = round(float(np.clip(seconds / SEGMENTS_IN_TRACK, SHORTEST_S, LONGEST_S)) * RATE_HZ)
    segments = []
    for start in range(0, len(whole_g.grid.good) - width + 1, max(width // 2, 1)):
        part = whole_g.part(start, start + width)
        if not part.grid.good.any():
            continue
        coarse = read_peaks(*scores_of(whole_h, part), None, 1.0)
        t_s = part.grid.t_s
        segments.append(Segment(float(t_s[0]), float(t_s[-1]), coarse))
    return segments


def pieces_of(segments: list[Segment]) -> list[list[Segment]]:
    """Return runs of reliable segments with equal lags; single segments are dropped, equal neighbours joined."""
    runs: list[list[Segment]] = []
    for segment in segments:
        if not segment.is_sure:
            continue
        if runs and abs(segment.coarse.tau_s - runs[-1][-1].coarse.tau_s) < JUMP_S:
            runs[-1].append(segment)
        else:
            runs.append([segment])
    joined: list[list[Segment]] = []
    for run in (run for run in runs if len(run) >= LEAST_IN_PIECE):
        if joined and abs(run[0].coarse.tau_s - joined[-1][-1].coarse.tau_s) < JUMP_S:
            joined[-1] += run
        else:
            joined.append(run)
    return joined


def find_jumps(
    segments: list[Segment], pieces: list[list[Segment]], pairing: Pairing
) -> tuple[float, float, Jumps] | None:
    """Return first lag, its media time, and the jumps between the pieces; None if jumps do not explain the lags."""
    used = sum(map(len, pieces))
    if len(pieces) < 2 or used < LEAST_SURE * len(segments):
        return None
    level = [float(np.median([segment.coarse.tau_s for segment in piece])) for piece in pieces]
    between = [(a[-1].first_s, b[0].last_s) for a, b in pairwise(pieces)]
    jumps = [(0.5 * (low + high), size) for (low, high), size in zip(between, np.diff(level), strict=True)]
    t_ref = 0.5 * (pieces[0][0].first_s + pieces[0][-1].last_s)
    line = Line.start(t_ref, level[0], 0.0, tuple((at, float(size)) for at, size in jumps))
    t_s = pairing.camera.t_s
    sure = pairing.overlap(line.at(t_s))
    for low, high in between:
        sure &= (t_s < low) | (t_s > high)
    if sure.sum() < pairing.camera.hz:
        return None
    rotation = fit_rotation(pairing, line, sure)
    placed = []
    for k, (low, high) in enumerate(between):
        before = Line.start(t_ref, level[k], 0.0, ())
        placed.append(
            (place_jump(pairing, before, rotation, float(level[k + 1] - level[k]), (low, high)), jumps[k][1])
        )
    return level[0], t_ref, tuple((at, float(size)) for at, size in placed)


def in_pieces(coarse: Coarse, pieces: list[list[Segment]]) -> Coarse:
    """Return the evidence of the coarse search by piece: that of the weakest piece."""
    coarse_by_piece = [[segment.coarse for segment in piece] for piece in pieces]
    weakest = min(coarse_by_piece, key=lambda piece: float(np.median([c.rho for c in piece])))
    rival = max(weakest, key=lambda c: c.rival)
    return replace(
        coarse,
        tau_s=coarse_by_piece[0][0].tau_s,
        rho=float(np.median([c.rho for c in weakest])),
        rho2=rival.rho2,
        second_tau_s=rival.second_tau_s,
        rival=rival.rival,
        z=float(np.median([c.z for c in weakest])),
        edge=False,
    )


DEGREES_PER_RADIAN = 180.0 / np.pi
NEAR_SIGMAS = 2.0
WIDER_SHARE = 1.25  # a match outside the prior's window wins if it is more likely by this factor
WEAK_RHO = 0.6  # below it the nominal rate may be wrong
RESCUE_GAIN = 1.3
NAN = float("nan")


def align_pair(
    headset: HeadsetGyro, camera: GyroTrack, *, prior: Prior | None = None, unit: str = "auto"
) -> PairAlignment:
    """Align a camera (media s, rad/s) with a headset; `unit` is auto, deg_per_s or rad_per_s. Raises TooShort."""
    factor = DEGREES_PER_RADIAN if unit == "deg_per_s" else 1.0
    if unit == "auto":  # by the magnitudes of both motions, for which a factor of seven is close enough
        ratio = _liveliness(headset.track) / max(_liveliness(camera), 1e-12)
        factor = DEGREES_PER_RADIAN if _nearer(ratio, DEGREES_PER_RADIAN, 1.0) else 1.0
    pair = _align_once(headset, camera, prior, factor)
    other = DEGREES_PER_RADIAN if factor == 1.0 else 1.0
    if unit == "auto" and pair.fine is not None and _nearer(pair.unit.scale, other, factor):
        pair = _align_once(headset, camera, prior, other)
    return pair if unit == "auto" else replace(pair, unit=replace(pair.unit, name=unit, source="setting"))


def _liveliness(track: GyroTrack) -> float:
    centred = track.rad_per_s - np.median(track.rad_per_s, axis=0)
    return float(np.sqrt(np.mean(centred**2)))


def _nearer(scale: float, one: float, other: float) -> bool:
    return abs(np.log(max(scale, 1e-12) / one)) < abs(np.log(max(scale, 1e-12) / other))


def _align_once(headset: HeadsetGyro, camera: GyroTrack, prior: Prior | None, factor: float) -> PairAlignment:
    track = headset.track.scaled(1.0 / factor) if factor != 1.0 else headset.track
    windows: list[Window | None] = [None]
    if prior is not None:  # near the prior, then everywhere if that is better
        near_s = min(NEAR_SIGMAS * prior.sigma_s, prior.half_width_s)
        windows = [Window(prior.tau0_s, near_s), Window(prior.tau0_s, prior.half_width_s), None]
    for window in windows:
        coarse = coarse_search(track, camera, window)
        if not coarse.edge and coarse.rival <= WIDER_SHARE:
            break
    pairing = Pairing.of(track, camera)
    fine, nominal = _fit(pairing, coarse)
    if is_suspicious(coarse, fine):
        coarse, fine, nominal = _fit_pieces(track, camera, pairing, (coarse, fine, nominal))
    # with nominal stamps the match may be weak, or only fit for a few seconds
    alone = coarse.rival <= THRESHOLDS["rival_share_most"]
    badly_fitted = fine is None or fine.line.chi > THRESHOLDS["chi_most"]
    if coarse.rho < WEAK_RHO or (alone and badly_fitted):
        coarse, fine, nominal = _rescue(track, camera, prior, pairing, (coarse, fine, nominal))
    overlay = _overlay(pairing, fine) if fine is not None else None
    until_s = sampled_until(float(camera.t_s[-1]))
    return _conclude(headset, (coarse, fine, nominal), prior, factor, overlay, until_s)


FitResult = tuple[Coarse, Fine | None, bool]


def _fit(pairing: Pairing, coarse: Coarse) -> tuple[Fine | None, bool]:
    """Return the fine alignment from a coarse lag; an implausible drift means nominal stamps, and a second fit."""
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


def _fit_pieces(track: GyroTrack, camera: GyroTrack, pairing: Pairing, earlier: FitResult) -> FitResult:
    """Search for large jumps by segments; return the earlier result unless they explain more windows."""
    segments = segments_of(track, camera)
    pieces = pieces_of(segments)
    jumps = find_jumps(segments, pieces, pairing)
    if jumps is None:
        return earlier
    tau_s, t_ref_s, sizes = jumps
    fine = fine_alignment(pairing, tau_s=tau_s, rate=1.0, t_ref_s=t_ref_s, jumps=sizes)
    before = earlier[1].lags.kept.sum() if earlier[1] is not None else 0
    if fine is None or fine.lags.kept.sum() <= before:
        return earlier
    return in_pieces(earlier[0], pieces), fine, False


def _rescue(
    track: GyroTrack, camera: GyroTrack, prior: Prior | None, pairing: Pairing, fit: FitResult
) -> FitResult:
    """Search the rate too, as nominal stamps may be wrong by a percent; use it if it is much more likely."""
    coarse = fit[0]
    rate = search_rate(track, camera)
    if abs(rate - 1.0) * 1e6 <= THRESHOLDS["drift_most_ppm"]:
        return fit
    window = Window(prior.tau0_s, prior.half_width_s) if prior is not None else None
    rescued = coarse_search(track, camera, window, rate=rate)
    if rescued.likelihood <= RESCUE_GAIN * coarse.likelihood:
        return fit
    return rescued, *_fit(pairing, rescued)


def _conclude(
    headset: HeadsetGyro,
    fit: FitResult,
    prior: Prior | None,
    factor: float,
    overlay: Overlay | None,
    until_s: float,
) -> PairAlignment:
    coarse, fine, nominal = fit
    unknown = ErrorParts((NAN,) * 3, (NAN,) * 3, NAN)
    parts = error_parts(fine, headset, (0.0, until_s)) if fine is not None else unknown
    verdict = judge(_evidence(headset, fit, prior, parts.within_ms))
    clock_map, unit = None, "undecided"
    if fine is not None and verdict.status != "not_aligned":
        line, unit = fine.line, "rad_per_s" if factor == 1.0 else "deg_per_s"
        clock_map = ClockMap(headset.epoch_ticks, line.t_mid_s, line.coef, fine.overlap_s, line.jumps)
    return PairAlignment(
        verdict=verdict,
        clock_map=clock_map,
        coarse=coarse,
        fine=fine,
        unit=Unit(unit, fine.scale * factor if fine is not None else NAN, "measured"),
        prior=prior,
        nominal_rate=nominal,
        stat_ms=parts.stat_ms,
        model_ms=parts.model_ms,
        overlay=overlay,
        head_pose=headset.source == HEAD_POSE,
    )


def _evidence(headset: HeadsetGyro, fit: FitResult, prior: Prior | None, stat_ms: float) -> Evidence:
    """Return the evidence for the verdict."""
    coarse, fine, nominal = fit
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
    if fine is None:
        return evidence
    return replace(
        evidence,
        tau0_s=float(fine.line.at(0.0)),
        windows=len(fine.lags.kept),
        windows_ok=int(fine.lags.kept.sum()),
        correlation=fine.correlation,
        stat_ms=stat_ms,
        chi=fine.line.chi,
        step_ms=fine.step.size_s * 1e3,
        step_z=fine.step.z,
        step_t_s=fine.step.t_s,
        jumps=tuple((at, size * 1e3) for at, size in fine.line.jumps),
        mount_deg=fine.turn_deg,
        mount_sigma_deg=fine.turn_sigma_deg,
        drift_ppm=fine.line.drift * 1e6,
        scale=fine.scale,
        nominal_rate=nominal,
        stamp_bend_ms=headset.repair.bend_ms,
    )


def _overlay(pairing: Pairing, fine: Fine, seconds: float = 10.0) -> Overlay:
    """Return the ten seconds with most motion, both tracks in the headset's axes."""
    t_s = pairing.camera.t_s
    good = pairing.overlap(fine.line.at(t_s))
    power = np.where(good, (pairing.camera.values**2).sum(axis=1), 0.0)
    length = min(int(seconds * pairing.camera.hz), len(power))
    start = int(np.argmax(np.convolve(power, np.ones(length), mode="valid")))
    rows = start + np.flatnonzero(good[start : start + length])
    headset = pairing.spline(t_s[rows] + fine.line.at(t_s[rows]))
    return Overlay(t_s[rows], headset, pairing.camera.values[rows] @ fine.rotation.T)
