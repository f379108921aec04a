"""Alignments of a recording for a report: what `sync` wrote, its numbers in words and its plots."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from markupsafe import Markup

from sensors.array_types import Floats
from storage.reading.alignments import alignment_files, read_alignment
from storage.timeline.alignment import Alignment
from sync.report.svg import Axis, Plot, axis_around

PLOT_SUFFIX = ".plot.npz"
NEAR_PEAK_S = 3.0
PLOT_HEIGHT = 190
OVERLAY_HEIGHT = 170
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Figure:
    """One drawing with its caption."""

    drawing: Markup
    caption: str


@dataclass(frozen=True)
class ShownAlignment:
    """One alignment of a recording with what is drawn of it."""

    said: Alignment
    figures: list[Figure] = field(default_factory=list)
    overlays: list[Figure] = field(default_factory=list)

    def is_of(self, device: str, file: str) -> bool:
        """Tell whether this is the alignment of a camera's file."""
        named = [one.path for one in self.said.inputs if one.path.upper().endswith(".MP4")]
        if named:
            return any(Path(path).name == file and device in Path(path).parts[:-1] for path in named)
        return self.said.source in (
            device,
            f"{device}/{file}",
            f"{device}-{Path(file).stem}",
            Path(file).stem,
        )


def read_alignments(recording: Path) -> list[ShownAlignment]:
    """Read every alignment that `sync` wrote, with its plots."""
    return [_drawn(path) for path in alignment_files(recording)]


def _drawn(path: Path) -> ShownAlignment:
    stored = read_alignment(path)
    if stored.problem:
        return ShownAlignment(stored)
    return ShownAlignment(stored, *_figures(path.with_name(path.stem + PLOT_SUFFIX), stored))


def _figures(path: Path, said: Alignment) -> tuple[list[Figure], list[Figure]]:
    """Draw what the arrays beside an alignment hold; without them there is nothing to draw."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, TypeError, AttributeError, BadZipFile) as error:
        return ([] if isinstance(error, FileNotFoundError) else [_no_figure(path, error)]), []
    figures: list[Figure] = []
    overlays: list[Figure] = []
    if _has(arrays, "coarse_lag_s", "coarse_score"):
        figures += score_figures(arrays["coarse_lag_s"], arrays["coarse_score"], said)
    if _has(arrays, "window_t_s", "window_tau_s", "window_sigma_s", "window_kept", "line_t_s", "line_tau_s"):
        figures += [lag_figure(arrays, said), residual_figure(arrays)]
    if _has(arrays, "overlay_t_s", "overlay_headset_rad_per_s", "overlay_camera_rad_per_s"):
        overlays = overlay_figures(arrays)
    return figures, overlays


def _no_figure(path: Path, error: Exception) -> Figure:
    return Figure(Markup(""), f"{path.name} cannot be read ({error}); run `kitchensync sync` again")


def _has(arrays: dict[str, Any], *names: str) -> bool:
    return all(name in arrays and len(arrays[name]) for name in names)


def score_figures(lag_s: Floats, score: Floats, said: Alignment) -> list[Figure]:
    """Draw the agreement over the lag: the whole search, and around its peak. Lags (n,) s, scores (n,) in [0, 1]."""
    known = np.isfinite(score)
    if not known.any():
        return []
    peak_s, peak = _chosen_lag(lag_s, score, said)
    needed = said.thresholds.get("rho_least")
    figures = []
    for title, half in (
        ("Agreement over the lag, whole search", math.inf),
        ("Agreement over the lag, around its peak", NEAR_PEAK_S),
    ):
        rows = np.flatnonzero((np.abs(lag_s - peak_s) <= half) & known)
        if len(rows) < 2:
            continue
        rows = np.arange(rows[0], rows[-1] + 1)
        x = Axis(float(lag_s[rows[0]]), float(lag_s[rows[-1]]), "lag, headset minus camera (s)")
        y = Axis(min(0.0, float(np.nanmin(score[rows]))), 1.0, "agreement, 0 to 1")
        plot = Plot(x, y, title, PLOT_HEIGHT)
        if needed is not None:
            plot.line(np.array([x.low, x.high]), np.array([needed, needed]), "limit")
        plot.line(lag_s[rows], score[rows], "line one")
        plot.upright(peak_s, f"{peak_s:.2f} s: {peak:.2f}", "peak")
        caption = f"{title}. Dotted: what is needed at least." if needed is not None else title
        figures.append(Figure(plot.svg(), caption))
    return figures


def _chosen_lag(lag_s: Floats, score: Floats, said: Alignment) -> tuple[float, float]:
    """The lag that won: where the evidence has its score, else the highest."""
    rho = said.gyro.search.rho if said.gyro is not None else None
    if isinstance(rho, (int, float)):
        row = int(np.nanargmin(np.abs(score - rho)))
        if abs(float(score[row]) - rho) < 1e-3:
            return float(lag_s[row]), float(score[row])
    row = int(np.nanargmax(score))
    return float(lag_s[row]), float(score[row])


def lag_figure(arrays: dict[str, Any], said: Alignment) -> Figure:
    """Draw the lags of all windows about the fitted line, ms, with one sigma up and down."""
    t_s, tau_s, sigma_s = (np.asarray(arrays[f"window_{n}"], np.float64) for n in ("t_s", "tau_s", "sigma_s"))
    kept = np.asarray(arrays["window_kept"], bool)
    line_t, line_tau = np.asarray(arrays["line_t_s"]), np.asarray(arrays["line_tau_s"])
    zero = float(np.mean(line_tau))
    tau_ms, sigma_ms = (tau_s - zero) * 1e3, sigma_s * 1e3
    fitted_ms = (line_tau - zero) * 1e3
    shown = kept if kept.any() else np.isfinite(tau_ms)
    y = axis_around(
        "lag about its mean (ms)", tau_ms[shown] - sigma_ms[shown], tau_ms[shown] + sigma_ms[shown], fitted_ms
    )
    x = axis_around("camera media time (s)", t_s, line_t, margin=0.02)
    plot = Plot(x, y, "Lag of every window with the fitted clock line", PLOT_HEIGHT)
    inside = (tau_ms >= y.low) & (tau_ms <= y.high)
    plot.error_bars(t_s[kept], tau_ms[kept], sigma_ms[kept], "bar")
    plot.line(line_t, fitted_ms, "line two")
    plot.dots(t_s[kept & inside], tau_ms[kept & inside], "dot")
    plot.crosses(t_s[~kept & inside], tau_ms[~kept & inside], "cross")
    fit = said.gyro.fit if said.gyro is not None else None
    drift = fit.drift_ppm if fit is not None else None
    slope = f", slope {drift:.1f} ppm" if isinstance(drift, (int, float)) else ""
    left_out = int((~kept).sum())
    caption = (
        f"Dots: lags of {int(kept.sum())} windows with one sigma up and down; line: the fit{slope};"
        f" mean lag {zero:.4f} s. Crosses: windows left out ({left_out}, those beyond the frame are not drawn)."
    )
    return Figure(plot.svg(), caption)


def residual_figure(arrays: dict[str, Any]) -> Figure:
    """Draw what each window says beyond the fitted line, ms, with one sigma up and down."""
    t_s, tau_s, sigma_s = (np.asarray(arrays[f"window_{n}"], np.float64) for n in ("t_s", "tau_s", "sigma_s"))
    kept = np.asarray(arrays["window_kept"], bool)
    line_t, line_tau = np.asarray(arrays["line_t_s"]), np.asarray(arrays["line_tau_s"])
    slope = (line_tau[-1] - line_tau[0]) / max(line_t[-1] - line_t[0], 1e-9)
    left_ms = (tau_s - line_tau[0] - slope * (t_s - line_t[0])) * 1e3
    sigma_ms = sigma_s * 1e3
    y = axis_around(
        "beyond the line (ms)", (left_ms - sigma_ms)[kept], (left_ms + sigma_ms)[kept], np.zeros(1)
    )
    x = axis_around("camera media time (s)", t_s, line_t, margin=0.02)
    plot = Plot(x, y, "Lag of every window beyond the fitted line", PLOT_HEIGHT)
    plot.line(np.array([x.low, x.high]), np.zeros(2), "line two")
    plot.error_bars(t_s[kept], left_ms[kept], sigma_ms[kept], "bar")
    plot.dots(t_s[kept], left_ms[kept], "dot")
    rms = float(np.sqrt(np.mean(left_ms[kept] ** 2))) if kept.any() else float("nan")
    return Figure(
        plot.svg(), f"The same beyond the line: {rms:.3f} ms root mean square. A step or a bend shows here."
    )


def overlay_figures(arrays: dict[str, Any]) -> list[Figure]:
    """Draw ten seconds of both rotation rates after alignment, one drawing an axis."""
    t_s = np.asarray(arrays["overlay_t_s"], np.float64)
    headset = np.degrees(np.asarray(arrays["overlay_headset_rad_per_s"], np.float64))
    camera = np.degrees(np.asarray(arrays["overlay_camera_rad_per_s"], np.float64))
    if headset.shape != camera.shape or headset.shape != (len(t_s), 3):
        return []
    limit = max(float(np.nanmax(np.abs(np.stack([headset, camera])))), 1.0) * 1.06
    figures = []
    for axis, name in enumerate(AXES):
        x = Axis(float(t_s[0]), float(max(t_s[-1], t_s[0] + 1e-3)), "camera media time (s)")
        plot = Plot(
            x,
            Axis(-limit, limit, "rate (deg/s)"),
            f"Rotation rates about the headset's {name} axis",
            OVERLAY_HEIGHT,
        )
        plot.line(t_s, headset[:, axis], "line one")
        plot.line(t_s, camera[:, axis], "line two dashed")
        caption = f"Rotation about {name}: headset solid, camera (turned into the headset's axes) dashed."
        figures.append(Figure(plot.svg(), caption))
    return figures
