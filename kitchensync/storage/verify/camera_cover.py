"""How much of the session a camera's files cover, by the shutter as this computer saw it. No picture is decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kitchensync.sensors.errors import SensorError
from kitchensync.storage.reading.shutter_openings import clip_openings, read_media, shutter_host_ns
from kitchensync.storage.verify import thresholds as limits
from kitchensync.storage.verify.coverage import Span, length_of, without
from kitchensync.storage.verify.findings import FAIL, WARN, Findings
from kitchensync.storage.verify.session_span import SessionTimes
from kitchensync.storage.verify.steps import StepTime
from kitchensync.storage.verify.suitable_uses import clock

NEAR_S = 1.5
"""How exactly the shutter's times place a file: an end that is off by less is no hole."""


@dataclass(frozen=True)
class CameraCover:
    """What one camera holds of the session, seconds on its axis."""

    asked: Span
    "From the moment the shutter was seen open until the stop: nobody can have more."
    holes: list[Span]
    is_known: bool = True
    "False where a file does not tell how long it is."

    @property
    def share(self) -> float:
        """Share of what was asked, 0 to 1."""
        return 1.0 - length_of(self.holes) / max(length_of([self.asked]), 1e-9)

    def facts(self, steps: Sequence[StepTime]) -> dict[str, Any]:
        """Return what `verify/1` says of the camera; `steps_coverage` is None where no step was done."""
        here = without([self.asked], self.holes)
        times = [(step.start_s, step.end_s) for step in steps]
        shown_s = sum(max(min(b, d) - max(a, c), 0.0) for a, b in times for c, d in here)
        steps_s = length_of(times) if self.is_known else 0.0
        return {
            "coverage": round(self.share, 4) if self.is_known else None,
            "from_s": round(self.asked[0], 2),
            "steps_coverage": round(shown_s / steps_s, 4) if steps_s > 0 else None,
        }


def camera_cover(
    recording: Path, device: str, session: SessionTimes | None, findings: Findings
) -> dict[str, CameraCover]:
    """Return the cover of one camera by its name; empty where nothing places its files on the capture clock."""
    media = read_media(recording, device)
    opened = media.get("shutter_on")
    if session is None or not opened:
        return {}
    start_s = session.seconds(shutter_host_ns(opened))
    asked = start_s, max(session.stop_s, start_s)
    entries = media.get("files", [])
    for entry in entries:
        _download(device, entry, findings)
    filmed, at_s = [], start_s
    for opening in clip_openings(media, [recording / device / str(entry["file"]) for entry in entries]):
        lengths = [_seconds(file) for file in opening.files]
        if None in lengths:
            findings.add(WARN, f"{device}: a film of it does not open, so nobody can tell what it covers")
            return {device: CameraCover(asked, [], is_known=False)}
        begin_s = session.seconds(opening.opened_host_ns) if opening.opened_host_ns is not None else at_s
        at_s = begin_s + sum(length for length in lengths if length is not None)
        filmed.append((begin_s, at_s))
    found = CameraCover(asked, [hole for hole in without([asked], filmed) if hole[1] - hole[0] > NEAR_S])
    _judge(device, found, findings)
    return {device: found}


def _judge(device: str, found: CameraCover, findings: Findings) -> None:
    if found.share < limits.COVERAGE_WARN:
        status = FAIL if found.share < limits.COVERAGE_FAIL else WARN
        until_s = found.asked[1]
        holes = " and ".join(
            f"after {clock(a)}" if b == until_s else f"from {clock(a)} to {clock(b)}" for a, b in found.holes
        )
        covers = f"{device}: its films cover {int(100 * found.share)} % of the session"
        findings.add(status, f"{covers}, nothing {holes}" if holes else covers)


def _download(device: str, entry: dict[str, Any], findings: Findings) -> None:
    rate = entry.get("bytes_per_s")
    if isinstance(rate, int) and 0 < rate < limits.CAMERA_SLOW_BYTES_PER_S:
        findings.note(f"{device}/{entry['file']}: fetched slowly, {rate / 1e6:.2f} MB/s, which harms nothing")


def _seconds(path: Path) -> float | None:
    from kitchensync.sensors.gopro.files.media import open_media

    try:
        video = open_media(path).video
    except (SensorError, OSError, ValueError, IndexError):
        return None
    return float(video.duration_s) if video is not None else None
