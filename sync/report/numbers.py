"""The numbers of an alignment that a person asks for, in words: offset, bounds, what each witness said."""

from __future__ import annotations

import math
from typing import Any

from sync.report.alignment import Alignment, gyro_of

PARTS = {
    "gyro_to_frame": "the camera's pictures against its gyroscope",
    "headset_stamp": "late stamps of the headset",
    "head_pose_filter": "the headset's own filter of the head pose",
    "microphones": "the microphones' latencies",
}
SOURCES = {"default": "assumed", "measured": "measured by sync-camera"}
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
        is_camera = alignment.body.get("source_clock", "gopro_media_s") == "gopro_media_s"
        what = "Camera's first picture" if is_camera else "Its first sample"
        rows.append((what, f"{at}{since_s:.4f} s after tick {epoch} of {alignment.headset}"))
        rows += _company(alignment.body)
        rows += _bounds(alignment.body)
    return rows + _evidence(alignment.body) + _sound(alignment.body) + _clocks(alignment.body)


def _company(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Which of several headsets a camera moves with."""
    others = [str(one["master"]).partition("/")[0] for one in body.get("other_headsets") or []]
    own = str(body.get("master", "")).partition("/")[0]
    return [("Moves with", f"{own}, not with {' or '.join(others)}")] if others else []


def _bounds(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Drift and errors: statistical, systematic, together."""
    gyro, sigma = gyro_of(body), body.get("sigma") or {}
    rows: list[tuple[str, str]] = []
    if _number(gyro.get("drift_ppm")):
        give = f" ± {gyro['drift_sigma_ppm']:.1f}" if _number(gyro.get("drift_sigma_ppm")) else ""
        rows.append(("Clock drift, headset against camera", f"{gyro['drift_ppm']:.1f}{give} ppm"))
    if sigma.get("bound95_ms"):
        values = " / ".join(f"{value:.2f}" for value in sigma["bound95_ms"])
        what = "Gyroscope to gyroscope" if gyro else "Clock to clock"
        rows.append((f"{what}, 95 % bound", f"{values} ms at start / middle / end"))
    for part in sigma.get("systematic_ms") or []:
        words = PARTS.get(str(part["part"]), str(part["part"]).replace("_", " "))
        told = SOURCES.get(str(part["source"]), str(part["source"]))
        rows.append((f"Systematic: {words}", f"{part['value']:g} ± {part['sigma']:g} ms ({told})"))
    if _number(sigma.get("total_ms")):
        words = "Picture to picture, one sigma with the systematic parts"
        rows.append((words, f"{sigma['total_ms']:.1f} ms"))
    return rows


def _evidence(body: dict[str, Any]) -> list[tuple[str, str]]:
    """What the verdict rests on."""
    gyro = gyro_of(body)
    rows: list[tuple[str, str]] = []
    if "windows_ok" in gyro:
        rows.append(("Windows used", f"{gyro['windows_ok']} of {gyro['windows']}"))
    for key, words in (
        ("rho", "Agreement at the best lag"),
        ("rho2", "Agreement at the next best lag"),
        ("correlation", "Correlation of the rates after alignment"),
    ):
        if _number(gyro.get(key)):
            rows.append((words, f"{gyro[key]:.3f}"))
    headset = (body.get("streams") or {}).get("hl2_gyro") or {}
    unit = headset.get("unit") or {}
    if unit.get("name"):
        scale = f", scale {unit['scale']:.2f}" if _number(unit.get("scale")) else ""
        name = str(unit["name"]).replace("_", " ")
        rows.append(("Unit of the headset's gyroscope", f"{name} ({unit.get('source', 'not said')}{scale})"))
    if _number(headset.get("rate_hz")):
        lost = f", {headset['lost']} batches lost" if "lost" in headset else ""
        jitter = (
            f", stamps scatter {headset['jitter_ms']:.2f} ms" if _number(headset.get("jitter_ms")) else ""
        )
        rows.append(("Headset's gyroscope", f"{headset['rate_hz']:.1f} samples/s{jitter}{lost}"))
    return rows


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _sound(body: dict[str, Any]) -> list[tuple[str, str]]:
    """What the sounds said, where they were asked."""
    heard = (body.get("evidence") or {}).get("audio")
    if not heard:
        return []
    agreed = f"{heard.get('windows_ok', 0)} of {heard.get('windows', 0)} windows agree"
    lag = f", {heard['tau0_s']:.3f} s" if _number(heard.get("tau0_s")) else ""
    return [("Sound", agreed + lag)]


def _clocks(body: dict[str, Any]) -> list[tuple[str, str]]:
    """What the clocks said of the camera's start, and how well the headset's is known."""
    said = (body.get("evidence") or {}).get("timestamps") or {}
    rows = []
    for one in said.get("statements") or []:
        if not _number(one.get("prior_s")):
            continue
        who = f"{STATEMENTS.get(str(one['source']), str(one['source']))} said"
        told = f"{one['prior_s']:.2f} ± {one['sigma_s']:.2f} s"
        if abs(one["prior_s"]) > FAR_S:
            told = f"{abs(one['prior_s']) / 86_400:.1f} days away"
        rows.append((who, told if one.get("serves", True) else f"{told}, not used"))
    clock = said.get("host_clock") or {}
    if _number(clock.get("bound_ms")):
        stretches = f" in {clock['stretches']} stretches" if clock.get("stretches", 1) > 1 else ""
        rows.append(
            (
                "Headset's clock",
                f"within {clock['bound_ms']:.2f} ms by {clock['probes']} exchanges{stretches}",
            )
        )
    return rows
