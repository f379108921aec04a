"""The alignment of one pair as stored in its file, and its plot data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.storage.timeline.alignment import (
    HEADSET_CLOCK,
    MEASURED,
    NOT_ALIGNED,
    REFERENCE_PART,
    Alignment,
    AlignmentErrors,
    ErrorPart,
    Input,
)
from kitchensync.storage.timeline.alignment_evidence import (
    BridgeEvidence,
    ClockEvidence,
    GyroEvidence,
    GyroFit,
    GyroReport,
    GyroSearch,
    GyroUnit,
)
from kitchensync.storage.timeline.bridge import Bridge
from kitchensync.storage.timeline.clock_map import ClockMap, sample_rows
from kitchensync.sync.align.pair_alignment import PairAlignment
from kitchensync.sync.align.prior import Prior
from kitchensync.sync.align.sound import MICROPHONES_MS, Heard
from kitchensync.sync.align.verdict import THRESHOLDS, Verdict, judge_bridge
from kitchensync.sync.answers import software_version
from kitchensync.sync.recording.latency_store import StoredLatency

PlotArrays = dict[str, npt.NDArray[Any]]
ASSUMED = "default"
HEAD_POSE_PART = ErrorPart("head_pose_filter", 0.0, 10.0, ASSUMED)
GYRO_TO_FRAME = "gyro_to_frame"
HEADSET_STAMP = ErrorPart("headset_stamp", 1.5, 1.5, ASSUMED)
FILM_PICTURES = ErrorPart(GYRO_TO_FRAME, 0.0, 15.0, ASSUMED)
REFERENCE_PICTURES = ErrorPart(REFERENCE_PART, 0.0, 15.0, ASSUMED)
BOTH_FILMS = (REFERENCE_PICTURES, FILM_PICTURES)
SYSTEMATIC = (HEADSET_STAMP, FILM_PICTURES)
"""Systematic errors that a correlation cannot measure, ms: late host stamps, and the delay of gyroscope to frames."""


def pair_aligned(
    pair: PairAlignment,
    *,
    epoch_ticks: int,
    last_t_s: float,
    headset: Mapping[str, object],
    camera: Mapping[str, object],
    inputs: Iterable[Input],
    clocks: ClockEvidence | None = None,
    systematic: tuple[ErrorPart, ...] = SYSTEMATIC,
) -> Alignment:
    """Return the alignment by two gyroscopes; without map and samples if not aligned."""
    unit, prior = GyroUnit(pair.unit.name, pair.unit.scale, pair.unit.source), pair.prior
    if clocks is None and prior is not None:
        clocks = ClockEvidence(prior.tau0_s, prior.sigma_s, prior.source)
    return replace(
        by_verdict(pair.verdict, pair.clock_map, last_t_s, inputs=inputs),
        epoch_ticks=epoch_ticks,
        errors=_errors_of_motion(pair, systematic) if pair.fine is not None else None,
        gyro=_gyro_evidence(pair),
        clocks=clocks,
        headset_gyro=GyroReport(headset, unit),
        camera_gyro=camera,
    )


def refused(reason: str, *, inputs: Iterable[Input] = ()) -> Alignment:
    """Return the alignment of a pair that could not be compared."""
    return by_verdict(Verdict(NOT_ALIGNED, (reason,)), None, 0.0, inputs=inputs)


def by_verdict(
    verdict: Verdict, clock_map: ClockMap | None, last_t_s: float, *, inputs: Iterable[Input] = ()
) -> Alignment:
    """Return a verdict with its map, sampled until `last_t_s`; the caller adds errors and evidence."""
    return Alignment(
        status=verdict.status,
        reasons=tuple(verdict.reasons),
        warnings=tuple(verdict.warnings),
        thresholds=dict(THRESHOLDS),
        inputs=tuple(inputs),
        version=software_version(),
        samples=tuple(sample_rows(clock_map, last_t_s)) if clock_map is not None else (),
        clock_map=clock_map,
    )


def with_picture_latency(answer: Alignment, measured: StoredLatency, name: str = GYRO_TO_FRAME) -> Alignment:
    """Replace the default picture latency by a measured one, if the alignment has that part."""
    errors = answer.errors
    if errors is None or errors.total_ms is None:
        return answer
    part = next((part for part in errors.systematic if part.part == name), None)
    if part is None:
        return answer
    new = ErrorPart(name, measured["latency_ms"], measured["sigma_ms"], MEASURED)
    changed = tuple(new if part.part == name else part for part in errors.systematic)
    variance = errors.total_ms**2 - part.sigma**2 + new.sigma**2
    total_ms = round(math.sqrt(max(variance, 0.0)), 3)
    return replace(answer, errors=replace(errors, systematic=changed, total_ms=total_ms))


def bridged(
    bridge: Bridge | None, name: str, epoch: int | None, source_epoch: int | None, last_ticks: int
) -> Alignment:
    """The alignment of another headset with the main one: seconds of its own ticks to ticks of the main one."""
    if bridge is None or epoch is None or source_epoch is None:
        empty = source_epoch is None or epoch is None
        why = (
            f"{name} or the main headset sent nothing" if empty else judge_bridge(None, name, 0.0).reasons[0]
        )
        return replace(refused(why), source_clock=HEADSET_CLOCK)
    clock_map, strays_ms = bridge.as_map(epoch, source_epoch, last_ticks)
    verdict = judge_bridge(bridge, name, strays_ms)
    evidence = BridgeEvidence(
        bound_ms=bridge.bound_ms,
        probes=[bridge.source.probes, bridge.target.probes],
        stretches=[len(bridge.source.lines), len(bridge.target.lines)],
    )
    placed = clock_map if verdict.status != NOT_ALIGNED else None
    answer = by_verdict(verdict, placed, clock_map.valid_s[1])
    answer = replace(answer, source_clock=HEADSET_CLOCK, clocks=ClockEvidence(bridge=evidence))
    if placed is None:
        return answer
    errors = replace(
        _errors_of(np.full(3, bridge.bound_ms / 2), (HEADSET_STAMP,)),
        model_ms=(round(strays_ms, 4),) * 3,
        bound95_ms=(round(bridge.bound_ms + strays_ms, 4),) * 3,
    )
    return replace(answer, epoch_ticks=epoch, source_epoch_ticks=source_epoch, errors=errors)


def sound_errors(heard: Heard) -> AlignmentErrors:
    """Return the error parts of an alignment by sound alone, ms."""
    first, last = heard.span_s
    where = np.array([first, 0.5 * (first + last), last])
    return _errors_of(heard.sigma_s(where) * 1e3, (ErrorPart("microphones", 0.0, MICROPHONES_MS, ASSUMED),))


def clock_errors(prior: Prior) -> AlignmentErrors:
    """Return the error parts of an alignment by clocks alone, ms."""
    return _errors_of(np.full(3, prior.sigma_s * 1e3), SYSTEMATIC)


def _errors_of(stat_ms: npt.NDArray[np.floating], parts: tuple[ErrorPart, ...]) -> AlignmentErrors:
    systematic = math.fsum(part.sigma**2 for part in parts)
    return AlignmentErrors(
        stat_ms=_rounded(stat_ms.tolist()),
        model_ms=(0.0, 0.0, 0.0),
        bound95_ms=_rounded((2.0 * stat_ms).tolist()),
        systematic=parts,
        total_ms=round(math.sqrt(float(stat_ms.max()) ** 2 + systematic), 3),
    )


def _errors_of_motion(pair: PairAlignment, systematic: tuple[ErrorPart, ...]) -> AlignmentErrors:
    """Return statistical, model and systematic parts of the error."""
    parts = systematic + ((HEAD_POSE_PART,) if pair.head_pose else ())
    systematic_variance = math.fsum(part.sigma**2 for part in parts)
    return AlignmentErrors(
        stat_ms=_rounded(pair.stat_ms),
        model_ms=_rounded(pair.model_ms),
        bound95_ms=_rounded(pair.bound95_ms),
        systematic=parts,
        total_ms=round(math.sqrt(max(pair.stat_ms) ** 2 + max(pair.model_ms) ** 2 + systematic_variance), 3),
    )


def _gyro_evidence(pair: PairAlignment) -> GyroEvidence:
    """Return the numbers of the gyroscopes."""
    coarse, fine = pair.coarse, pair.fine
    search = GyroSearch(
        rho=round(coarse.rho, 4),
        rho2=round(coarse.rho2, 4),
        rival=round(coarse.rival, 4),
        rival_distance_s=coarse.second_tau_s - coarse.tau_s,
        z=round(coarse.z, 2),
        edge=coarse.edge,
        magnitude_agrees=bool(abs(coarse.magnitude_tau_s - coarse.tau_s) < 0.1),
        rate_grid=coarse.rate if pair.nominal_rate else None,
    )
    if fine is None:
        return GyroEvidence(search, windows_ok=0, windows=0)
    fit = GyroFit(
        chi=round(fine.line.chi, 3),
        drift_ppm=round(fine.line.drift * 1e6, 3),
        drift_sigma_ppm=round(float(np.sqrt(fine.line.covariance[1, 1])) * 1e6, 3),
        R=np.round(fine.rotation, 6).tolist(),
        rot_halves_deg=round(fine.turn_deg, 3),
        rot_halves_sigma_deg=round(fine.turn_sigma_deg, 3),
        step={"size_ms": fine.step.size_s * 1e3, "z": round(fine.step.z, 2), "t_s": fine.step.t_s},
        jumps=[{"t_s": at, "size_ms": size * 1e3} for at, size in fine.line.jumps],
        degree=fine.line.shape.degree,
        residual_rms_ms=round(fine.residual_rms_s * 1e3, 4),
        correlation=round(fine.correlation, 5),
        cramer_rao_ms=round(fine.cramer_rao_s * 1e3, 5),
        overlap_s=list(fine.overlap_s),
    )
    return GyroEvidence(search, int(fine.lags.kept.sum()), len(fine.lags.kept), fit)


def plot_arrays(pair: PairAlignment) -> PlotArrays:
    """Return the arrays for the report: score over lag, window lags with the line, overlay of both rates."""
    arrays: PlotArrays = {"coarse_lag_s": pair.coarse.lags_s, "coarse_score": pair.coarse.score}
    if (fine := pair.fine) is not None:
        # points of the drawn curve: its ends, both sides of jumps, and between if it bends
        breaks = np.array(fine.line.shape.breaks_s)
        between = np.linspace(*fine.overlap_s, 2 if fine.line.shape.degree == 1 else 41)
        line_t_s = np.unique(np.concatenate([between, breaks, np.nextafter(breaks, np.inf)]))
        arrays |= {
            "window_t_s": fine.lags.t_s,
            "window_tau_s": fine.lags.tau_s,
            "window_sigma_s": fine.lags.sigma_s,
            "window_correlation": fine.lags.correlation,
            "window_kept": fine.lags.kept,
            "line_t_s": line_t_s,
            "line_tau_s": fine.line.at(line_t_s),
        }
    if pair.overlay is not None:
        arrays |= {
            "overlay_t_s": pair.overlay.t_s,
            "overlay_headset_rad_per_s": pair.overlay.headset,
            "overlay_camera_rad_per_s": pair.overlay.camera,
        }
    return arrays


def _rounded(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in values)
