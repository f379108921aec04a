"""Check a camera for `verify`: its files, and their coverage of the session.

Every file promised by `media.json` is compared byte for byte, and damage is located to a block. For an undamaged
video the clues about its telemetry offset are stored; they do not affect the verdict. The coverage is computed from
the shutter times of this computer, without decoding frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.clue import Clue, disagreements
from kitchensync.shell.files_on_disk import file_sha256, read_plain
from kitchensync.shell.untrusted_json import MOST_BYTES, BadJson
from kitchensync.storage.disk.media_blocks import damaged_stretches
from kitchensync.storage.disk.self_check import is_sound
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.storage.names import MEDIA
from kitchensync.storage.reading.clip_starts import clip_starts, read_media, shutter_host_ns
from kitchensync.storage.recording_files.media_file import parse_media
from kitchensync.storage.verify import thresholds as limits
from kitchensync.storage.verify.coverage import Span, length_of, without
from kitchensync.storage.verify.findings import FAIL, WARN, WHOLE, Findings
from kitchensync.storage.verify.session_span import SessionTimes, StepTime
from kitchensync.storage.verify.suitable_uses import clock

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import FilmForm
    from kitchensync.storage.verify.by_life import CameraBalance

Progress = Callable[[str], None]


def account(recording: Path, device: str, findings: Findings, progress: Progress) -> dict[str, Any]:
    """Return the `verify/1` facts of a camera's files by full name; add findings."""
    entries = _entries(recording / device, device, findings)
    if entries is None:
        return {}
    if not entries:
        findings.add(FAIL, f"{device} was armed and has no file")
    streams = {}
    for entry in entries:
        name = f"{device}/{entry['file']}"
        progress(name)
        streams[name] = _check(recording / device / entry["file"], name, entry, findings)
    damaged = {place["stream"] for place in findings.corrupt}
    whole = [name for name, facts in streams.items() if not facts["missing"] and name not in damaged]
    for clip in clip_starts({}, [recording / name for name in whole]):
        clues = _clues(list(clip.files))
        first = clip.files[0].relative_to(recording).as_posix()
        if clues:
            streams[first]["clues"] = [asdict(clue) for clue in clues]
        for says in disagreements(clues):
            findings.note(f"{first}: {says}; `kitchensync sync` lets the pictures decide")
    return streams


def _clues(chapters: list[Path]) -> list[Clue]:
    """Return clues about the telemetry offset of a clip; empty if it has no readable telemetry."""
    from kitchensync.sensors.gopro.files.clip import Clip
    from kitchensync.sensors.gopro.files.clip_clues import clip_clues
    from kitchensync.sensors.gopro.files.media import open_media

    try:
        clip = Clip([open_media(path) for path in chapters])
        return clip_clues(clip) if clip.payloads else []
    except (SensorError, OSError, ValueError, IndexError) as error:
        pass_on_trouble(error)
        return []


def _entries(folder: Path, device: str, findings: Findings) -> list[FilmForm] | None:
    """Return the files promised by `media.json`, None if it is damaged."""
    relative = f"{device}/{MEDIA}"
    try:
        content = read_plain(folder / MEDIA, MOST_BYTES)
        entries = parse_media(content).get("files") or []
    except OSError as error:
        findings.add(FAIL, f"{relative} cannot be read ({error.strerror})")
        return None
    except BadJson:
        findings.damage(relative, device, WHOLE)
        return None
    if not is_sound(content):
        findings.damage(relative, device, WHOLE)
        return None
    return entries


def _check(path: Path, name: str, entry: FilmForm, findings: Findings) -> dict[str, Any]:
    stored = path.stat().st_size if path.is_file() else 0
    digest = file_sha256(path) if path.is_file() and stored == entry["bytes"] else ""
    if stored != entry["bytes"]:
        findings.add(FAIL, f"{name}: {stored} of {entry['bytes']} bytes are here; fetch it again")
    elif digest != entry.get("sha256"):
        hashes = entry.get("blocks")
        for place in (damaged_stretches(path, hashes) if hashes else []) or [WHOLE]:
            findings.damage(name, name, place)
    return {
        "received": entry["bytes"],
        "stored": stored,
        "duplicates": 0,
        "missing": [[stored, entry["bytes"] - 1]] if stored < entry["bytes"] else [],
        "gaps": [],
        "bytes": stored,
        "sha256": digest,
    }


NEAR_S = 1.5
"""Tolerance of shutter times, seconds: a smaller gap is ignored."""


@dataclass(frozen=True)
class CameraCover:
    """Coverage of the session by one camera, session seconds."""

    target: Span
    "From the start of filming until the stop."
    holes: list[Span]
    is_known: bool = True
    "False if the length of a file is not known."

    @property
    def share(self) -> float:
        """Covered share of the target, 0 to 1."""
        return 1.0 - length_of(self.holes) / max(length_of([self.target]), 1e-9)

    def facts(self, steps: Sequence[StepTime]) -> CameraBalance:
        """Return the `verify/1` facts of the camera; `steps_coverage` is None if no step was done."""
        here = without([self.target], self.holes)
        times = [(step.start_s, step.end_s) for step in steps]
        shown_s = sum(max(min(b, d) - max(a, c), 0.0) for a, b in times for c, d in here)
        steps_s = length_of(times) if self.is_known else 0.0
        return {
            "coverage": round(self.share, 4) if self.is_known else None,
            "from_s": round(self.target[0], 2),
            "steps_coverage": round(shown_s / steps_s, 4) if steps_s > 0 else None,
        }


def camera_cover(
    recording: Path, device: str, session: SessionTimes | None, findings: Findings
) -> dict[str, CameraCover]:
    """Return the coverage of one camera by its name; empty without shutter times on the capture clock."""
    media = read_media(recording, device)
    opened = media.get("shutter_on")
    if session is None or not opened:
        return {}
    start_s = session.seconds(shutter_host_ns(opened))
    target = start_s, max(session.stop_s, start_s)
    entries = media.get("files", [])
    for entry in entries:
        rate = entry.get("bytes_per_s")
        if isinstance(rate, int) and 0 < rate < limits.CAMERA_SLOW_BYTES_PER_S:
            findings.note(
                f"{device}/{entry['file']}: fetched slowly, {rate / 1e6:.2f} MB/s, which harms nothing"
            )
    filmed, at_s = [], start_s
    for clip in clip_starts(media, [recording / device / str(entry["file"]) for entry in entries]):
        lengths = [_seconds(file) for file in clip.files]
        if None in lengths:
            findings.add(WARN, f"{device}: a video does not open, so its coverage is not known")
            return {device: CameraCover(target, [], is_known=False)}
        begin_s = session.seconds(clip.started_host_ns) if clip.started_host_ns is not None else at_s
        at_s = begin_s + sum(length for length in lengths if length is not None)
        filmed.append((begin_s, at_s))
    coverage = CameraCover(target, [hole for hole in without([target], filmed) if hole[1] - hole[0] > NEAR_S])
    if coverage.share < limits.COVERAGE_WARN:
        status = FAIL if coverage.share < limits.COVERAGE_FAIL else WARN
        until_s = coverage.target[1]
        holes = " and ".join(
            f"after {clock(a)}" if b == until_s else f"from {clock(a)} to {clock(b)}"
            for a, b in coverage.holes
        )
        covers = f"{device}: its films cover {int(100 * coverage.share)} % of the session"
        findings.add(status, f"{covers}, nothing {holes}" if holes else covers)
    return {device: coverage}


def _seconds(path: Path) -> float | None:
    from kitchensync.sensors.gopro.files.media import open_media

    try:
        video = open_media(path).video
    except (SensorError, OSError, ValueError, IndexError):
        return None
    return float(video.duration_s) if video is not None else None
