"""Acceptance of a lab: what a recording of twenty minutes measured of its devices, beside what is promised.

Nothing in it names a person, a serial number or an address: it can be sent in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kitchensync.capture.doctor.checks import BAD, GOOD, LOOK, Report
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.reading.alignments import alignment_files, read_alignment
from kitchensync.storage.reading.shutter_openings import read_media
from kitchensync.storage.reading.swaps import DEVICE_SWAP
from kitchensync.storage.timeline.alignment import Alignment
from kitchensync.storage.verify import thresholds as limits
from kitchensync.storage.verify import verify

LEAST_MINUTES = 20
MOST_BACK_S = 30.0
"""A stream is back so long after its network was pulled for ten seconds."""
MOST_BOUND_MS = 16.7
"""Half a picture."""
SOUND_AGREES_MS = 45.0
"""Three times what microphones and their ways leave open."""
DESCRIBED = ("kind", "model", "firmware", "version", "virtual")
"""What is reported of a device."""
BROKEN = ("network", "reconnect")
ALIGNED = "aligned"
CALIBRATIONS = "calibrations"


def examine_acceptance(recording: Path) -> Report:
    """Hold a recording that was made and synchronized for it against what is promised. Raises StorageError."""
    manifest, seen = read_manifest(recording), verify(recording)
    devices = manifest["devices"]
    report = Report("acceptance")
    report.facts["devices"] = {
        name: {key: said for key, said in facts.items() if key in DESCRIBED}
        for name, facts in devices.items()
    }
    minutes = (seen.get("session_s") or 0.0) / 60
    told = f"{minutes:.1f} of {LEAST_MINUTES} minutes"
    report.add("length", GOOD if minutes >= LEAST_MINUTES else LOOK, told, "record for longer")
    streams = {name: facts for name, facts in seen["streams"].items() if "rate_hz" in facts}
    for name, facts in streams.items():
        _stream(report, name, facts)
    lost = sum(last - first + 1 for facts in streams.values() for first, last in facts["missing"])
    damaged = len(seen["corrupt"])
    told = f"{lost} packets lost, {damaged} places damaged; promised: none"
    report.add("storage", BAD if lost or damaged else GOOD, told, "see `kitchensync verify`")
    _reconnect(report, streams)
    cameras = {
        name: read_media(recording, name) for name, facts in devices.items() if facts["kind"] == "gopro"
    }
    _change(report, streams, list(cameras.values()))
    for name, media in cameras.items():
        _camera(report, name, seen.get("cameras", {}).get(name, {}).get("coverage"), media, 60 * minutes)
    films = [one for one in map(read_alignment, alignment_files(recording)) if one.source.endswith(".MP4")]
    _alignment(report, films, len([name for name in seen["streams"] if name.endswith(".MP4")]))
    _clap(report, films)
    _board(report, recording.resolve().parent, [str(devices[name].get("serial", "")) for name in cameras])
    return report


def _stream(report: Report, name: str, facts: dict[str, Any]) -> None:
    share, nominal = facts["coverage"], facts.get("nominal_hz")
    told = f"{facts['rate_hz']:.1f}" + (f" of {nominal:g}" if nominal else "") + " packets/s"
    told += f", covers {share:.1%}" if share is not None else ""
    told += f", at most {facts['latest_arrival_s']:.1f} s late" if "latest_arrival_s" in facts else ""
    good = share is None or share >= limits.COVERAGE_WARN
    told = f"{told}; promised: {limits.COVERAGE_WARN:.0%}"
    report.add(name, GOOD if good else BAD, told, "see `kitchensync doctor HOST` for the network")


def _camera(
    report: Report, name: str, share: float | None, media: Mapping[str, Any], session_s: float
) -> None:
    """Judge how much a camera filmed; the time in which its battery was changed is not asked of it."""
    if share is None:
        report.add(name, BAD, "nothing tells what its films cover", "see `kitchensync verify`")
        return
    away_s = sum(gap["end_host_ns"] - gap["start_host_ns"] for gap in _changes(media)) / 1e9
    away = min(away_s / max(session_s, 1.0), 1.0 - share)
    told = f"films cover {share:.1%}, changes of its battery {away:.1%}; promised: {limits.COVERAGE_WARN:.0%}"
    good = share + away >= limits.COVERAGE_WARN
    report.add(name, GOOD if good else BAD, told, "see `kitchensync verify`")


def _changes(media: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [gap for gap in media.get("gaps", []) if gap["cause"] == DEVICE_SWAP]


def _gaps(streams: Iterable[dict[str, Any]], causes: tuple[str, ...]) -> list[float]:
    found = (gap for facts in streams for gap in facts["gaps"] if gap["cause"] in causes)
    return [abs(gap["end_ticks"] - gap["start_ticks"]) / 1e7 for gap in found]


def _reconnect(report: Report, streams: dict[str, dict[str, Any]]) -> None:
    """Judge how streams came back after their network was pulled."""
    gaps = _gaps(streams.values(), BROKEN)
    gone = [name for name, facts in streams.items() if facts.get("ended") == "lost"]
    if not gaps:
        report.add("reconnect", LOOK, "not tried", "pull the headset's network for ten seconds")
        return
    told = f"{len(gaps)} breaks, the longest {max(gaps):.1f} s; promised: all back within {MOST_BACK_S:g} s"
    told += f"; never back: {', '.join(gone)}" if gone else ""
    report.add("reconnect", BAD if gone or max(gaps) > MOST_BACK_S else GOOD, told, "look at the network")


def _change(report: Report, streams: dict[str, dict[str, Any]], cameras: Sequence[Mapping[str, Any]]) -> None:
    """Judge the change of a battery: a gap of that name, and a clip after it."""
    away = [gap for media in cameras for gap in _changes(media)]
    clips = sum(len(media.get("shutters_on_again", [])) for media in cameras)
    headset = _gaps(streams.values(), (DEVICE_SWAP,))
    if not away and not headset:
        report.add("battery", LOOK, "not tried", "take a battery out in the middle, and put it in again")
        return
    told = f"cameras: {len(away)} changes, {clips} clips after them; headset: {len(headset)} gaps"
    report.add("battery", GOOD if clips == len(away) else BAD, told, "see the report")


def _alignment(report: Report, films: list[Alignment], count: int) -> None:
    if not count:
        return
    if not films:
        report.add("nod", LOOK, "not tried", "run `kitchensync sync` first")
        return
    aligned = [one for one in films if one.status == ALIGNED]
    bounds = [bound for one in aligned if (bound := one.bound95_ms) is not None]
    told = f"{len(aligned)} of {count} films"
    told += f", bound {max(bounds):.2f} ms; promised: {MOST_BOUND_MS:g} ms" if bounds else ""
    good = len(aligned) == count and bounds and max(bounds) <= MOST_BOUND_MS
    report.add("nod", GOOD if good else BAD, told, "nod and turn the head briskly at start and end")


def _clap(report: Report, films: list[Alignment]) -> None:
    """Hold the sounds against the motion, where both tell."""
    away_ms = [
        1e3 * abs(one.sound.tau0_s - float(one.clock_map.tau_s(0.0)))
        for one in films
        if one.sound is not None and one.sound.usable and one.sound.tau0_s is not None and one.clock_map
    ]
    if not away_ms:
        report.add("clap", LOOK, "no sound could be compared", "clap three times before both microphones")
        return
    told = f"sound {max(away_ms):.1f} ms from motion; promised: {SOUND_AGREES_MS:g} ms"
    report.add("clap", GOOD if max(away_ms) <= SOUND_AGREES_MS else BAD, told, "see the report")


def _board(report: Report, data: Path, serials: list[str]) -> None:
    """Report how well the lens of each camera is known by the board."""
    for serial in serials:
        kept = sorted((data / CALIBRATIONS / serial).glob("lens-*.json"))
        if not serial or not kept:
            report.add("board", LOOK, "not tried", "film the board, then `kitchensync calibrate gopro`")
            continue
        answer = json.loads(kept[-1].read_text(encoding="utf-8"))
        report.add("board", GOOD, f"lens known to {answer['rms_px']:.2f} px")
