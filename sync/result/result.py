"""The alignment object (schema alignment/1) and the plot data of one pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.timeline.clock_map import ClockMap, sample_rows
from sync.align.bridge import Bridge, judge_bridge
from sync.align.fine import Fine
from sync.align.pair_alignment import PairAlignment, Prior
from sync.align.sound import Heard
from sync.align.verdict import THRESHOLDS, Verdict
from sync.answers import plain, software_version

SCHEMA = "alignment/1"
HEAD_POSE_PART: dict[str, Any] = {
    "part": "head_pose_filter",
    "value": 0.0,
    "sigma": 10.0,
    "source": "default",
}
GYRO_TO_FRAME = "gyro_to_frame"
HEADSET_STAMP: dict[str, Any] = {"part": "headset_stamp", "value": 1.5, "sigma": 1.5, "source": "default"}
SYSTEMATIC: tuple[dict[str, Any], ...] = (
    HEADSET_STAMP,
    {"part": GYRO_TO_FRAME, "value": 0.0, "sigma": 15.0, "source": "default"},
)
"""Errors that no correlation can see, ms: late host stamps, and the camera's gyroscope against its frames."""


def alignment_object(
    found: PairAlignment,
    *,
    epoch_ticks: int,
    last_t_s: float,
    headset: dict[str, Any],
    camera: dict[str, Any],
    inputs: list[dict[str, Any]],
    timestamps: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything that `sync/alignment/<source>.json` says; without `map` and samples when not aligned."""
    answer: dict[str, Any] = {
        "schema": SCHEMA,
        "status": found.verdict.status,
        "reasons": list(found.verdict.reasons),
        "warnings": list(found.verdict.warnings),
        "master_clock": "hl2_qpc_100ns",
        "source_clock": "gopro_media_s",
        "epoch_hl2_qpc": epoch_ticks,
        "sigma": sigma_object(found),
        "evidence": {
            "gyro": gyro_evidence(found),
            "audio": None,
            "timestamps": timestamps if timestamps is not None else prior_evidence(found.prior),
        },
        "streams": {"hl2_gyro": {**headset, "unit": unit_object(found)}, "gopro_gyro": camera},
        "thresholds": dict(THRESHOLDS),
        "inputs": inputs,
        "version": software_version(),
        "samples": sample_rows(found.clock_map, last_t_s) if found.clock_map else [],
    }
    if found.clock_map:
        answer["map"] = found.clock_map.as_object()
    return plain(answer)


def refusal_object(reason: str, *, inputs: list[dict[str, Any]]) -> dict[str, Any]:
    """Say why a pair could not even be compared."""
    return plain(
        {
            "schema": SCHEMA,
            "status": "not_aligned",
            "reasons": [reason],
            "warnings": [],
            "master_clock": "hl2_qpc_100ns",
            "source_clock": "gopro_media_s",
            "sigma": None,
            "evidence": {"gyro": None, "audio": None, "timestamps": None},
            "streams": {},
            "thresholds": dict(THRESHOLDS),
            "inputs": inputs,
            "version": software_version(),
            "samples": [],
        }
    )


def fallback_object(
    verdict: Verdict,
    clock_map: ClockMap | None,
    *,
    sigma: dict[str, Any],
    inputs: list[dict[str, Any]],
) -> dict[str, Any]:
    """An alignment without gyroscopes: the caller adds epoch, evidence and samples."""
    answer = refusal_object("", inputs=inputs)
    answer |= {"status": verdict.status, "reasons": list(verdict.reasons), "sigma": sigma}
    return answer | ({"map": clock_map.as_object()} if clock_map else {})


def with_picture_latency(answer: dict[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    """Put a camera's measured picture latency in the place of the default, and sum up anew.

    `measured` holds `latency_ms` and `sigma_ms`. An answer without such a part stays as it is.
    """
    sigma = answer.get("sigma")
    parts = [part for part in (sigma or {}).get("systematic_ms", []) if part["part"] == GYRO_TO_FRAME]
    if sigma is None or not parts:
        return answer
    new = {"value": measured["latency_ms"], "sigma": measured["sigma_ms"], "source": "measured"}
    changed = [part | new if part["part"] == GYRO_TO_FRAME else dict(part) for part in sigma["systematic_ms"]]
    variance = sigma["total_ms"] ** 2 - parts[0]["sigma"] ** 2 + new["sigma"] ** 2
    total = round(math.sqrt(max(variance, 0.0)), 3)
    return answer | {"sigma": sigma | {"systematic_ms": changed, "total_ms": total}}


def bridge_object(
    bridge: Bridge | None, name: str, epoch: int | None, source_epoch: int | None, last_ticks: int
) -> dict[str, Any]:
    """The alignment of another headset with the main one: seconds of its own ticks to ticks of the main one."""
    answer = refusal_object("", inputs=[]) | {"source_clock": "hl2_qpc_100ns"}
    if bridge is None or epoch is None or source_epoch is None:
        empty = source_epoch is None or epoch is None
        why = (
            f"{name} or the main headset sent nothing" if empty else judge_bridge(None, name, 0.0).reasons[0]
        )
        return answer | {"reasons": [why]}
    clock_map, strays_ms = bridge.as_map(epoch, source_epoch, last_ticks)
    verdict = judge_bridge(bridge, name, strays_ms)
    answer |= {"status": verdict.status, "reasons": list(verdict.reasons)}
    said = {
        "bound_ms": bridge.bound_ms,
        "probes": [bridge.source.probes, bridge.target.probes],
        "stretches": [len(bridge.source.lines), len(bridge.target.lines)],
    }
    answer["evidence"] = {"gyro": None, "audio": None, "timestamps": {"host_clocks": said}}
    if verdict.status == "not_aligned":
        return dict(plain(answer))
    sigma = _sigma_of(np.full(3, bridge.bound_ms / 2), [dict(HEADSET_STAMP)])
    sigma |= {"model_ms": [round(strays_ms, 4)] * 3}
    sigma["bound95_ms"] = [round(bridge.bound_ms + strays_ms, 4)] * 3
    answer |= {"epoch_hl2_qpc": epoch, "epoch_source_qpc": source_epoch, "sigma": sigma}
    answer |= {"map": clock_map.as_object(), "samples": sample_rows(clock_map, clock_map.valid_s[1])}
    return dict(plain(answer))


def sound_sigma(heard: Heard) -> dict[str, Any]:
    """Error parts of an alignment by sound alone, ms."""
    first, last = heard.span_s
    where = np.array([first, 0.5 * (first + last), last])
    stat = heard.sigma_s(where) * 1e3
    return _sigma_of(stat, [{"part": "microphones", "value": 0.0, "sigma": 15.0, "source": "default"}])


def clock_sigma(prior: Prior) -> dict[str, Any]:
    """Error parts of an alignment by clocks alone, ms."""
    return _sigma_of(np.full(3, prior.sigma_s * 1e3), [dict(part) for part in SYSTEMATIC])


def _sigma_of(stat_ms: npt.NDArray[np.floating], parts: list[dict[str, Any]]) -> dict[str, Any]:
    systematic = math.fsum(float(part["sigma"]) ** 2 for part in parts)
    return {
        "stat_ms": _rounded(tuple(stat_ms.tolist()), 4),
        "model_ms": [0.0, 0.0, 0.0],
        "bound95_ms": _rounded(tuple((2.0 * stat_ms).tolist()), 4),
        "systematic_ms": parts,
        "total_ms": round(math.sqrt(float(stat_ms.max()) ** 2 + systematic), 3),
    }


def sigma_object(found: PairAlignment) -> dict[str, Any] | None:
    """Statistical, model and systematic parts apart, ms; lists are [start, middle, end] of the overlap."""
    if found.fine is None:
        return None
    parts = SYSTEMATIC + ((HEAD_POSE_PART,) if found.head_pose else ())
    systematic = math.fsum(float(part["sigma"]) ** 2 for part in parts)
    return {
        "stat_ms": _rounded(found.stat_ms, 4),
        "model_ms": _rounded(found.model_ms, 4),
        "bound95_ms": _rounded(found.bound95_ms, 4),
        "systematic_ms": [dict(part) for part in parts],
        "total_ms": round(math.sqrt(max(found.stat_ms) ** 2 + max(found.model_ms) ** 2 + systematic), 3),
    }


def gyro_evidence(found: PairAlignment) -> dict[str, Any]:
    """What the gyroscopes say, in numbers."""
    coarse, fine = found.coarse, found.fine
    evidence: dict[str, Any] = {
        "rho": round(coarse.rho, 4),
        "rho2": round(coarse.rho2, 4),
        "rival": round(coarse.rival, 4),
        "rival_distance_s": coarse.second_tau_s - coarse.tau_s,
        "z": round(coarse.z, 2),
        "edge": coarse.edge,
        "magnitude_agrees": bool(abs(coarse.magnitude_tau_s - coarse.tau_s) < 0.1),
        "rate_grid": coarse.rate if found.nominal_rate else None,
    }
    if fine is None:
        return evidence | {"windows": 0, "windows_ok": 0}
    return evidence | {
        "windows_ok": int(fine.lags.kept.sum()),
        "windows": len(fine.lags.kept),
        "chi": round(fine.line.chi, 3),
        "drift_ppm": round(fine.line.drift * 1e6, 3),
        "drift_sigma_ppm": round(float(np.sqrt(fine.line.covariance[1, 1])) * 1e6, 3),
        "R": np.round(fine.rotation, 6).tolist(),
        "rot_halves_deg": round(fine.turn_deg, 3),
        "rot_halves_sigma_deg": round(fine.turn_sigma_deg, 3),
        "step": {"size_ms": fine.step.size_s * 1e3, "z": round(fine.step.z, 2), "t_s": fine.step.t_s},
        "jumps": [{"t_s": at, "size_ms": size * 1e3} for at, size in fine.line.jumps],
        "degree": fine.line.shape.degree,
        "residual_rms_ms": round(fine.residual_rms_s * 1e3, 4),
        "correlation": round(fine.correlation, 5),
        "cramer_rao_ms": round(fine.cramer_rao_s * 1e3, 5),
        "overlap_s": list(fine.overlap_s),
    }


def unit_object(found: PairAlignment) -> dict[str, Any]:
    """Which unit the headset's gyroscope was found to send, and the evidence."""
    return {"name": found.unit.name, "scale": found.unit.scale, "source": found.unit.source}


def prior_evidence(prior: Prior | None) -> dict[str, Any] | None:
    """What the clocks said before."""
    if prior is None:
        return None
    return {"prior_s": prior.tau0_s, "sigma_s": prior.sigma_s, "source": prior.source}


def plot_arrays(found: PairAlignment) -> dict[str, npt.NDArray[Any]]:
    """Arrays that the report draws: score over lag, window lags with the line, overlay of both rates."""
    arrays: dict[str, npt.NDArray[Any]] = {
        "coarse_lag_s": found.coarse.lags_s,
        "coarse_score": found.coarse.score,
    }
    fine = found.fine
    if fine is not None:
        line_t_s = _drawn_times(fine)
        arrays |= {
            "window_t_s": fine.lags.t_s,
            "window_tau_s": fine.lags.tau_s,
            "window_sigma_s": fine.lags.sigma_s,
            "window_correlation": fine.lags.correlation,
            "window_kept": fine.lags.kept,
            "line_t_s": line_t_s,
            "line_tau_s": fine.line.at(line_t_s),
        }
    if found.overlay is not None:
        arrays |= {
            "overlay_t_s": found.overlay.t_s,
            "overlay_headset_rad_per_s": found.overlay.headset,
            "overlay_camera_rad_per_s": found.overlay.camera,
        }
    return arrays


def _drawn_times(fine: Fine) -> npt.NDArray[np.floating]:
    """Where the curve must be known to be drawn: its ends, both sides of jumps, and between when it bends."""
    breaks = np.array(fine.line.shape.breaks_s)
    between = np.linspace(*fine.overlap_s, 2 if fine.line.shape.degree == 1 else 41)
    return np.unique(np.concatenate([between, breaks, np.nextafter(breaks, np.inf)]))


def _rounded(values: tuple[float, ...], digits: int) -> list[float]:
    return [round(value, digits) for value in values]
