"""The numbers of an alignment in words: offset, bounds, evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeGuard

from kitchensync.storage.timeline.alignment import CAMERA_CLOCK, Alignment
from kitchensync.storage.timeline.alignment_evidence import ClockEvidence, GyroEvidence, GyroReport
from kitchensync.storage.timeline.clock_map import ClockMap

PARTS = {
    "gyro_to_frame": "the camera's pictures against its gyroscope",
    "reference_gyro_to_frame": "the reference's pictures against its gyroscope",
    "headset_stamp": "late stamps of the headset",
    "head_pose_filter": "the headset's own filter of the head pose",
    "microphones": "the microphones' latencies",
}
FAR_S = 43_200.0
STATEMENTS = {"shutter": "Shutter", "creation_time": "Camera's clock"}

Rows = Iterator[tuple[str, str]]


def numbers(alignment: Alignment, first_picture: str = "") -> list[tuple[str, str]]:
    """List the main numbers: offset, drift, bound, and systematic errors.

    `first_picture` is the time of the camera's first picture in words. Without a map only the evidence is listed, as
    the bound of a refused fit would be misleading.
    """
    rows: list[tuple[str, str]] = []
    if alignment.clock_map is not None:
        rows = [*_place(alignment, alignment.clock_map, first_picture), *_errors(alignment)]
    if alignment.gyro is not None:
        rows += _evidence(alignment.gyro)
    if alignment.headset_gyro is not None:
        rows += _headset_gyro(alignment.headset_gyro, alignment.compared_with)
    if (sound := alignment.sound) is not None:
        lag = f", {sound.tau0_s:.3f} s" if _number(sound.tau0_s) else ""
        rows.append(("Sound", f"{sound.windows_ok or 0} of {sound.windows or 0} windows agree{lag}"))
    if alignment.clocks is not None:
        rows += _clocks(alignment.clocks)
    return rows


def _number(value: float | None) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _place(alignment: Alignment, clock_map: ClockMap, first_picture: str) -> Rows:
    """Return the start of the camera's time on the headset's clock, and its headset if there are several."""
    at = f"{first_picture}: " if first_picture else ""
    since_s = float(clock_map.tau_s(0.0))
    what = "Camera's first picture" if alignment.source_clock == CAMERA_CLOCK else "Its first sample"
    if alignment.is_on_camera:
        yield what, f"{at}at {since_s:.4f} s of {alignment.master}"
        return
    yield what, f"{at}{since_s:.4f} s after tick {clock_map.epoch_ticks} of {alignment.headset}"
    if others := [other.headset for other in alignment.other_headsets]:
        yield "Moves with", f"{alignment.headset}, not with {' or '.join(others)}"


def _errors(alignment: Alignment) -> Rows:
    """Return the drift, and the statistical, systematic and total errors."""
    fit, errors = alignment.gyro.fit if alignment.gyro is not None else None, alignment.errors
    if fit is not None and _number(fit.drift_ppm):
        give = f" ± {fit.drift_sigma_ppm:.1f}" if _number(fit.drift_sigma_ppm) else ""
        yield f"Clock drift, {alignment.compared_with} against camera", f"{fit.drift_ppm:.1f}{give} ppm"
    if errors is None:
        return
    if errors.bound95_ms:
        known = ("not known" if value is None else f"{value:.2f}" for value in errors.bound95_ms)
        what = "Gyroscope to gyroscope" if alignment.gyro is not None else "Clock to clock"
        yield f"{what}, 95 % bound", f"{' / '.join(known)} ms at start / middle / end"
    for part in errors.systematic:
        words = PARTS.get(part.part, part.part.replace("_", " "))
        source = "assumed" if part.source == "default" else part.source
        yield f"Systematic: {words}", f"{part.value:g} ± {part.sigma:g} ms ({source})"
    if _number(errors.total_ms):
        yield "Picture to picture, one sigma with the systematic parts", f"{errors.total_ms:.1f} ms"


def _evidence(gyro: GyroEvidence) -> Rows:
    """Return the main evidence of the verdict."""
    if gyro.windows_ok is not None:
        yield "Windows used", f"{gyro.windows_ok} of {gyro.windows}"
    for words, value in (
        ("Agreement at the best lag", gyro.search.rho),
        ("Agreement at the next best lag", gyro.search.rho2),
        ("Correlation of the rates after alignment", gyro.fit.correlation if gyro.fit is not None else None),
    ):
        if _number(value):
            yield words, f"{value:.3f}"


def _headset_gyro(headset: GyroReport, device: str) -> Rows:
    unit = headset.unit
    if unit is not None and unit.name:
        scale = f", scale {unit.scale:.2f}" if _number(unit.scale) else ""
        yield f"Unit of the {device}'s gyroscope", f"{unit.name.replace('_', ' ')} ({unit.source}{scale})"
    if _number(headset.rate_hz):
        lost = f", {headset.lost} batches lost" if headset.lost is not None else ""
        jitter = f", stamps scatter {headset.jitter_ms:.2f} ms" if _number(headset.jitter_ms) else ""
        yield f"{device.capitalize()}'s gyroscope", f"{headset.rate_hz:.1f} samples/s{jitter}{lost}"


def _clocks(clocks: ClockEvidence) -> Rows:
    """Return the camera's start by the clocks, and the error of the headset's clock."""
    for statement in clocks.statements or ():
        if _number(statement.prior_s) and _number(statement.sigma_s):
            words = f"{statement.prior_s:.2f} ± {statement.sigma_s:.2f} s"
            if abs(statement.prior_s) > FAR_S:
                words = f"{abs(statement.prior_s) / 86_400:.1f} days away"
            unused = "" if statement.serves else ", not used"
            yield f"{STATEMENTS.get(statement.source, statement.source)} said", words + unused
    clock = clocks.host_clock
    if clock is not None and _number(clock.bound_ms):
        stretches = f" in {clock.stretches} stretches" if clock.stretches > 1 else ""
        yield "Headset's clock", f"within {clock.bound_ms:.2f} ms by {clock.probes} exchanges{stretches}"
