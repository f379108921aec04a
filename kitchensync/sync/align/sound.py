"""Align sounds: onset envelopes for the coarse lag, then phase correlation of windows. Pure functions.

The result confirms or replaces that of the gyroscopes. Two microphones on one head are 10-20 cm apart and every
recorder has its own latency, so the systematic error is 15 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft, signal

from kitchensync.shell.array_types import Floats
from kitchensync.storage.timeline.alignment_evidence import SoundEvidence
from kitchensync.sync.align.coarse import parabola
from kitchensync.sync.align.verdict import THRESHOLDS
from kitchensync.sync.fit.line import DriftPrior, Lags, Line, Shape, fit_line

SOUND_HZ = 12_000  # keeps PHASE_BAND_HZ and the chirps of a slate, which reach 4.8 kHz
ENVELOPE_HZ = 100
ONSET_BAND_HZ = (300.0, 4000.0)
PHASE_BAND_HZ = (200.0, 4200.0)
WINDOW_S, SEARCH_S, UPSAMPLE, EXPONENT = 8.0, 0.2, 4, 0.8
LEAST_S = 20.0
MICROPHONES_MS = 15.0  # difference of the latencies of two microphones, one sigma
LEAST_OVERLAP_S = 10.0
CLUSTER_S = 0.002
WINDOW_SIGMA_S = 1e-4
SIGMA_SHARE = 1.6  # sources do not move for seconds, so differences of the paths do not average out


@dataclass(frozen=True, slots=True)
class Sound:
    """Mono sound (n,) at `hz` of its own device's clock; sample 0 at `start_s` of the same clock."""

    start_s: float
    samples: Floats
    hz: float = float(SOUND_HZ)

    @property
    def seconds(self) -> float:
        """Its length."""
        return len(self.samples) / self.hz


@dataclass(frozen=True, slots=True)
class Heard:
    """The alignment of two sounds: `t_H = t_G + tau`; `line` is None if no window agreed."""

    tau_s: float
    z: float
    windows: int
    windows_ok: int
    inliers: float
    line: Line | None
    lags: Lags | None
    span_s: tuple[float, float]

    @property
    def is_usable(self) -> bool:
        """Return whether it is reliable: 60 % inliers, four windows, a plausible drift."""
        return (
            self.line is not None
            and self.z >= THRESHOLDS["sound_z_least"]
            and self.inliers >= THRESHOLDS["sound_inliers_least"]
            and self.windows_ok >= THRESHOLDS["windows_least"]
            and abs(self.line.drift) * 1e6 <= THRESHOLDS["sound_drift_most_ppm"]
        )

    def sigma_s(self, t_s: Floats) -> Floats:
        """Statistical sigma (s) at media times; 0 without a line."""
        return SIGMA_SHARE * self.line.sigma_s(t_s) if self.line is not None else np.zeros(len(t_s))

    def evidence(self) -> SoundEvidence:
        """Return the evidence for the alignment file."""
        line = self.line
        return SoundEvidence(
            usable=self.is_usable,
            tau0_s=float(line.at(0.0)) if line else self.tau_s,
            z=round(self.z, 2),
            windows=self.windows,
            windows_ok=self.windows_ok,
            inliers=round(self.inliers, 3),
            drift_ppm=round(line.drift * 1e6, 3) if line else None,
            stat_ms=round(float(self.sigma_s(np.array(self.span_s)).max()) * 1e3, 4) if line else None,
            systematic_ms=MICROPHONES_MS,
        )


def onset_envelope(sound: Sound) -> Floats:
    """Return positive steps of the loudness, 100 per second, which are alike in all microphones."""
    sos = signal.butter(2, ONSET_BAND_HZ, "bandpass", fs=sound.hz, output="sos")
    block = round(sound.hz / ENVELOPE_HZ)
    count = len(sound.samples) // block
    loud = np.empty(count)
    state = np.zeros((sos.shape[0], 2))
    step = 60 * ENVELOPE_HZ  # a minute at a time
    for first in range(0, count, step):
        piece = sound.samples[first * block : min(first + step, count) * block]
        filtered, state = signal.sosfilt(sos, piece, zi=state)
        loud[first : first + step] = np.mean(filtered.reshape(-1, block) ** 2, axis=1)
    floor = max(float(np.median(loud)) * 1e-2, 1e-12)
    rise = np.maximum(np.diff(0.5 * np.log(loud + floor), prepend=0.5 * np.log(loud[:1] + floor)), 0.0)
    return rise - rise.mean()


def coarse_lag(headset: Sound, camera: Sound) -> tuple[float, float]:
    """Return the lag tau (s) with the best onset correlation, and its z among all lags with enough overlap."""
    h, g = onset_envelope(headset), onset_envelope(camera)
    total = len(h) + len(g) - 1
    size = fft.next_fast_len(total, real=True)
    full = fft.irfft(fft.rfft(h, size) * np.conj(fft.rfft(g, size)), size)
    score = np.roll(full, len(g) - 1)[:total]
    lags = np.arange(total) - (len(g) - 1)
    overlap = np.minimum(len(h), lags + len(g)) - np.maximum(lags, 0)
    even = np.where(overlap >= LEAST_OVERLAP_S * ENVELOPE_HZ, score / np.sqrt(np.maximum(overlap, 1)), np.nan)
    if not np.isfinite(even).any():
        return float("nan"), 0.0
    peak = int(np.nanargmax(even))
    spread = 1.4826 * float(np.nanmedian(np.abs(even - np.nanmedian(even))))
    z = (float(even[peak]) - float(np.nanmedian(even))) / max(spread, 1e-12)
    return headset.start_s - camera.start_s + float(lags[peak]) / ENVELOPE_HZ, z


def align_sounds(headset: Sound, camera: Sound) -> Heard | None:
    """Return lag, drift and evidence of two sounds; None if one is too short."""
    if min(headset.seconds, camera.seconds) < LEAST_S:
        return None
    tau, z = coarse_lag(headset, camera)
    nothing = Heard(tau, z, 0, 0, 0.0, None, None, (camera.start_s, camera.start_s + camera.seconds))
    if not np.isfinite(tau):
        return nothing
    width, rows = round(WINDOW_S * camera.hz), []
    for first in range(0, len(camera.samples) - width + 1, width):
        begin_s = camera.start_s + first / camera.hz
        at = round((begin_s + tau - headset.start_s) * headset.hz)
        if at < 0 or at + width > len(headset.samples):
            continue
        found = phase_lag(headset.samples[at : at + width], camera.samples[first : first + width], camera.hz)
        exact = headset.start_s + at / headset.hz - begin_s
        rows.append((begin_s + WINDOW_S / 2, exact + found[0], found[1]))
    if not rows:
        return nothing
    t_s, lag_s, sharp = np.array(rows).T
    clear = sharp > THRESHOLDS["sound_peak_least"]
    kept = clear & _densest(lag_s, clear)
    share = float(kept.sum() / max(clear.sum(), 1))
    lags = Lags(t_s, lag_s, np.full(len(t_s), WINDOW_SIGMA_S), sharp, kept)
    line = None
    if kept.sum() >= THRESHOLDS["windows_least"]:
        line = fit_line(lags, Shape(float(t_s[kept].mean())), DriftPrior(0.0, 50e-6))
        kept = clear & (np.abs(lag_s - line.at(t_s)) < CLUSTER_S)
        share = float(kept.sum() / max(clear.sum(), 1))
    span = (float(t_s[0] - WINDOW_S / 2), float(t_s[-1] + WINDOW_S / 2))
    return Heard(tau, z, len(rows), int(kept.sum()), share, line, lags, span)


def phase_lag(one: Floats, other: Floats, hz: float) -> tuple[float, float]:
    """Lag (s) of `one` behind `other` by GCC-PHAT with exponent 0.8, and how far its peak stands out."""
    size = fft.next_fast_len(len(one) + round(2 * SEARCH_S * hz), real=True)
    taper = signal.windows.tukey(len(one), 0.1)
    cross = fft.rfft(one * taper, size) * np.conj(fft.rfft(other * taper, size))
    freq = np.arange(len(cross)) * hz / size
    band = (freq >= PHASE_BAND_HZ[0]) & (freq <= PHASE_BAND_HZ[1])
    white = np.where(band, cross / np.maximum(np.abs(cross), 1e-20) ** EXPONENT, 0.0)
    wave = fft.irfft(white, size * UPSAMPLE)
    reach = round(SEARCH_S * hz * UPSAMPLE)
    near = np.concatenate([wave[-reach:], wave[: reach + 1]])
    peak = int(np.argmax(near))
    return (peak - reach + parabola(near, peak)) / (hz * UPSAMPLE), float(
        near[peak] / max(float(near.std()), 1e-20)
    )


def _densest(lag_s: Floats, clear: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The largest group of lags that a drift of 200 ppm over the recording may hold together."""
    best = np.zeros(len(lag_s), dtype=bool)
    for centre in lag_s[clear]:
        group = np.abs(lag_s - centre) < 10 * CLUSTER_S
        best = group if (group & clear).sum() > (best & clear).sum() else best
    return best
