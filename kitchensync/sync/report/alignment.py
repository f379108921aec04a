"""Alignments of a recording for a report, with their plots."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from kitchensync.shell.array_types import Floats
from kitchensync.storage.exports.arrays_file import DAMAGED, each_array
from kitchensync.storage.reading.alignments import alignment_files, read_alignment
from kitchensync.storage.timeline.alignment import Alignment
from kitchensync.sync.report.plots import CROSS, Axis, Figure, Plot, axis_around

PLOT_SUFFIX = ".plot.npz"
NEAR_PEAK_S = 3.0
OVERLAY_HEIGHT = 170
PlotArrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class ShownAlignment:
    """One alignment of a recording with its plots."""

    alignment: Alignment
    figures: list[Figure] = field(default_factory=list)
    overlays: list[Figure] = field(default_factory=list)

    def is_of(self, device: str, file: str) -> bool:
        """Return whether this is the alignment of a camera's file."""
        # On a camera's clock the inputs include the reference's films.
        inputs = self.alignment.inputs if not self.alignment.is_on_camera else ()
        named = [file_input.path for file_input in inputs if file_input.path.upper().endswith(".MP4")]
        if named:
            return any(Path(path).name == file and device in Path(path).parts[:-1] for path in named)
        stem = Path(file).stem
        return self.alignment.source in (device, f"{device}/{file}", f"{device}-{stem}", stem)


def read_alignments(recording: Path) -> list[ShownAlignment]:
    """Read every alignment of `sync` with its plots, which need the arrays beside it."""
    shown = []
    for path in alignment_files(recording):
        stored, plots = read_alignment(path), path.with_name(path.stem + PLOT_SUFFIX)
        try:
            arrays = dict(each_array(plots)) if not stored.problem else {}
        except FileNotFoundError:
            arrays = {}
        except DAMAGED as error:
            caption = f"{plots.name} cannot be read ({error}); run `kitchensync sync` again"
            shown.append(ShownAlignment(stored, [Figure(Markup(""), caption)]))
            continue
        figures: list[Figure] = []
        if _has(arrays, "coarse_lag_s", "coarse_score"):
            figures += score_figures(arrays["coarse_lag_s"], arrays["coarse_score"], stored)
        if _has(
            arrays, "window_t_s", "window_tau_s", "window_sigma_s", "window_kept", "line_t_s", "line_tau_s"
        ):
            figures += [lag_figure(arrays, stored), residual_figure(arrays)]
        has_overlays = _has(arrays, "overlay_t_s", "overlay_headset_rad_per_s", "overlay_camera_rad_per_s")
        overlays = overlay_figures(arrays, stored.compared_with) if has_overlays else []
        shown.append(ShownAlignment(stored, figures, overlays))
    return shown


def _has(arrays: PlotArrays, *names: str) -> bool:
    return all(name in arrays and len(arrays[name]) for name in names)


def score_figures(lag_s: Floats, score: Floats, alignment: Alignment) -> list[Figure]:
    """Draw the agreement over the lag: the whole search, and around its peak. Lags (n,) s, scores (n,) in [0, 1]."""
    has_score = np.isfinite(score)
    if not has_score.any():
        return []
    row, rho = int(np.nanargmax(score)), alignment.gyro.search.rho if alignment.gyro is not None else None
    if isinstance(rho, (int, float)):  # the chosen lag has the score of the evidence
        nearest = int(np.nanargmin(np.abs(score - rho)))
        row = nearest if abs(float(score[nearest]) - rho) < 1e-3 else row
    peak_s, peak = float(lag_s[row]), float(score[row])
    needed = alignment.thresholds.get("rho_least")
    dotted = ". Dotted: what is needed at least." if needed is not None else ""
    figures = []
    for part, half_s in (("whole search", math.inf), ("around its peak", NEAR_PEAK_S)):
        rows = np.flatnonzero((np.abs(lag_s - peak_s) <= half_s) & has_score)
        if len(rows) < 2:
            continue
        lags, scores = lag_s[rows[0] : rows[-1] + 1], score[rows[0] : rows[-1] + 1]
        x = Axis(float(lags[0]), float(lags[-1]), f"lag, {alignment.compared_with} minus camera (s)")
        y = Axis(min(0.0, float(np.nanmin(scores))), 1.0, "agreement, 0 to 1")
        plot = Plot(x, y, f"Agreement over the lag, {part}")
        if needed is not None:
            plot.level(needed, "limit")
        plot.line(lags, scores, "line one")
        plot.peak(peak_s, f"{peak_s:.2f} s: {peak:.2f}")
        figures.append(plot.figure(plot.title + dotted))
    return figures


def lag_figure(arrays: PlotArrays, alignment: Alignment) -> Figure:
    """Draw the lags of all windows about the fitted line, ms, with one sigma up and down."""
    left_out, mean_s = ~arrays["window_kept"], float(np.mean(arrays["line_tau_s"]))
    lag_ms, line_ms = (arrays["window_tau_s"] - mean_s) * 1e3, (arrays["line_tau_s"] - mean_s) * 1e3
    title = "Lag of every window with the fitted clock line"
    plot = _window_plot(title, "lag about its mean (ms)", arrays, lag_ms, line_ms)
    plot.dots(arrays["window_t_s"][left_out], lag_ms[left_out], CROSS)
    fit = alignment.gyro.fit if alignment.gyro is not None else None
    drift_ppm = fit.drift_ppm if fit is not None else None
    slope = f", slope {drift_ppm:.1f} ppm" if isinstance(drift_ppm, (int, float)) else ""
    caption = (
        f"Dots: lags of {(~left_out).sum()} windows with one sigma up and down; line: the fit{slope}; mean lag"
        f" {mean_s:.4f} s. Crosses: windows left out ({left_out.sum()}, those beyond the frame are not drawn)."
    )
    return plot.figure(caption)


def residual_figure(arrays: PlotArrays) -> Figure:
    """Draw the residual of each window to the fitted line, ms, with one sigma up and down."""
    line_t_s, line_tau_s = arrays["line_t_s"], arrays["line_tau_s"]
    slope = (line_tau_s[-1] - line_tau_s[0]) / max(line_t_s[-1] - line_t_s[0], 1e-9)
    line_s = line_tau_s[0] + slope * (arrays["window_t_s"] - line_t_s[0])
    beyond_ms = (arrays["window_tau_s"] - line_s) * 1e3
    title = "Lag of every window beyond the fitted line"
    plot = _window_plot(title, "beyond the line (ms)", arrays, beyond_ms, np.zeros(len(line_t_s)))
    kept_ms = beyond_ms[arrays["window_kept"]]
    rms = float(np.sqrt(np.mean(kept_ms**2))) if len(kept_ms) else float("nan")
    caption = f"The same beyond the line: {rms:.3f} ms root mean square. A step or a bend shows here."
    return plot.figure(caption)


def _window_plot(title: str, label: str, arrays: PlotArrays, lag_ms: Floats, line_ms: Floats) -> Plot:
    """Draw the used windows with one sigma up and down, and the line."""
    t_s, kept, sigma_ms = arrays["window_t_s"], arrays["window_kept"], arrays["window_sigma_s"] * 1e3
    shown = kept if kept.any() else np.isfinite(lag_ms)
    y = axis_around(label, (lag_ms - sigma_ms)[shown], (lag_ms + sigma_ms)[shown], line_ms)
    x = axis_around("camera media time (s)", t_s, arrays["line_t_s"], margin=0.02)
    plot = Plot(x, y, title)
    plot.error_bars(t_s[kept], lag_ms[kept], sigma_ms[kept])
    plot.line(arrays["line_t_s"], line_ms, "line two")
    plot.dots(t_s[kept], lag_ms[kept])
    return plot


def overlay_figures(arrays: PlotArrays, master: str = "headset") -> list[Figure]:
    """Draw ten seconds of both rotation rates after alignment, one figure per axis."""
    t_s = arrays["overlay_t_s"]
    headset, camera = (np.degrees(arrays[f"overlay_{who}_rad_per_s"]) for who in ("headset", "camera"))
    if headset.shape != camera.shape or headset.shape != (len(t_s), 3):
        return []
    limit = max(float(np.nanmax(np.abs(np.stack([headset, camera])))), 1.0) * 1.06
    x = Axis(float(t_s[0]), float(max(t_s[-1], t_s[0] + 1e-3)), "camera media time (s)")
    y = Axis(-limit, limit, "rate (deg/s)")
    figures = []
    for axis, name in enumerate("xyz"):
        plot = Plot(x, y, f"Rotation rates about the {master}'s {name} axis", OVERLAY_HEIGHT)
        plot.line(t_s, headset[:, axis], "line one")
        plot.line(t_s, camera[:, axis], "line two dashed")
        caption = f"Rotation about {name}: {master} solid, camera (turned into the {master}'s axes) dashed."
        figures.append(plot.figure(caption))
    return figures
