"""The numbers of an alignment that a person asks for, in words: offset, bounds, what each witness said."""

from __future__ import annotations

import math
from typing import TypeGuard

from storage.timeline.alignment import CAMERA_CLOCK, Alignment
from storage.timeline.alignment_evidence import ClockStatement

PARTS = {
    "gyro_to_frame": "the camera's pictures against its gyroscope",
    "headset_stamp": "late stamps of the headset",
    "head_pose_filter": "the headset's own filter of the head pose",
    "microphones": "the microphones' latencies",
}
SOURCES = {"default": "assumed", "measured": "measured"}
FAR_S = 43_200.0
STATEMENTS = {"shutter": "Shutter", "creation_time": "Camera's clock"}


def numbers(alignment: Alignment, first_picture: str = "") -> list[tuple[str, str]]:
    """The numbers a person asks for first: offset, drift, bound, and what no correlation can see.

    `first_picture` says in words when the camera's first picture was. Without a map only the evidence is given:
    a bound beside a refused fit would be believed.
    """
    rows: list[tuple[str, str]] = []
    if alignment.clock_map is not None:
        at = f"{first_picture}: " if first_picture else ""
        since_s, epoch = float(alignment.clock_map.tau_s(0.0)), alignment.clock_map.epoch_ticks
        what = "Camera's first picture" if alignment.source_clock == CAMERA_CLOCK else "Its first sample"
        rows.append((what, f"{at}{since_s:.4f} s after tick {epoch} of {alignment.headset}"))
        rows += _company(alignment)
        rows += _drift(alignment)
        rows += _bounds(alignment)
    return rows + _evidence(alignment) + _headset_gyro(alignment) + _sound(alignment) + _clocks(alignment)


def _company(alignment: Alignment) -> list[tuple[str, str]]:
    """Which of several headsets a camera moves with."""
    others = [one.headset for one in alignment.other_headsets]
    return [("Moves with", f"{alignment.headset}, not with {' or '.join(others)}")] if others else []


def _drift(alignment: Alignment) -> list[tuple[str, str]]:
    fit = alignment.gyro.fit if alignment.gyro is not None else None
    if fit is None or not _number(fit.drift_ppm):
        return []
    give = f" ± {fit.drift_sigma_ppm:.1f}" if _number(fit.drift_sigma_ppm) else ""
    return [("Clock drift, headset against camera", f"{fit.drift_ppm:.1f}{give} ppm")]


def _bounds(alignment: Alignment) -> list[tuple[str, str]]:
    """Errors: statistical, systematic, together."""
    errors = alignment.errors
    rows: list[tuple[str, str]] = []
    if errors is None:
        return rows
    if errors.bound95_ms:
        values = " / ".join(f"{value:.2f}" for value in errors.bound95_ms)
        what = "Gyroscope to gyroscope" if alignment.gyro is not None else "Clock to clock"
        rows.append((f"{what}, 95 % bound", f"{values} ms at start / middle / end"))
    for part in errors.systematic:
        words = PARTS.get(part.part, part.part.replace("_", " "))
        told = SOURCES.get(part.source, part.source)
        rows.append((f"Systematic: {words}", f"{part.value:g} ± {part.sigma:g} ms ({told})"))
    if _number(errors.total_ms):
        words = "Picture to picture, one sigma with the systematic parts"
        rows.append((words, f"{errors.total_ms:.1f} ms"))
    return rows


def _evidence(alignment: Alignment) -> list[tuple[str, str]]:
    """What the verdict rests on."""
    gyro = alignment.gyro
    if gyro is None:
        return []
    rows: list[tuple[str, str]] = []
    if gyro.windows_ok is not None:
        rows.append(("Windows used", f"{gyro.windows_ok} of {gyro.windows}"))
    for value, words in (
        (gyro.search.rho, "Agreement at the best lag"),
        (gyro.search.rho2, "Agreement at the next best lag"),
        (gyro.fit.correlation if gyro.fit is not None else None, "Correlation of the rates after alignment"),
    ):
        if _number(value):
            rows.append((words, f"{value:.3f}"))
    return rows


def _headset_gyro(alignment: Alignment) -> list[tuple[str, str]]:
    headset = alignment.headset_gyro
    rows: list[tuple[str, str]] = []
    if headset is None:
        return rows
    unit = headset.unit
    if unit is not None and unit.name:
        scale = f", scale {unit.scale:.2f}" if _number(unit.scale) else ""
        name = unit.name.replace("_", " ")
        rows.append(("Unit of the headset's gyroscope", f"{name} ({unit.source}{scale})"))
    if _number(headset.rate_hz):
        lost = f", {headset.lost} batches lost" if headset.lost is not None else ""
        jitter = f", stamps scatter {headset.jitter_ms:.2f} ms" if _number(headset.jitter_ms) else ""
        rows.append(("Headset's gyroscope", f"{headset.rate_hz:.1f} samples/s{jitter}{lost}"))
    return rows


def _number(value: float | None) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _sound(alignment: Alignment) -> list[tuple[str, str]]:
    """What the sounds said, where they were asked."""
    heard = alignment.sound
    if heard is None:
        return []
    agreed = f"{heard.windows_ok or 0} of {heard.windows or 0} windows agree"
    lag = f", {heard.tau0_s:.3f} s" if _number(heard.tau0_s) else ""
    return [("Sound", agreed + lag)]


def _clocks(alignment: Alignment) -> list[tuple[str, str]]:
    """What the clocks said of the camera's start, and how well the headset's is known."""
    said = alignment.clocks
    if said is None:
        return []
    rows = [row for one in said.statements or () for row in _statement(one)]
    clock = said.host_clock
    if clock is not None and _number(clock.bound_ms):
        stretches = f" in {clock.stretches} stretches" if clock.stretches > 1 else ""
        told = f"within {clock.bound_ms:.2f} ms by {clock.probes} exchanges{stretches}"
        rows.append(("Headset's clock", told))
    return rows


def _statement(one: ClockStatement) -> list[tuple[str, str]]:
    if not _number(one.prior_s):
        return []
    told = f"{one.prior_s:.2f} ± {one.sigma_s:.2f} s"
    if abs(one.prior_s) > FAR_S:
        told = f"{abs(one.prior_s) / 86_400:.1f} days away"
    return [(f"{STATEMENTS.get(one.source, one.source)} said", told if one.serves else f"{told}, not used")]
