"""Find the recording of a clip on a card by serial number, clock, motion, then by an acoustic slate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.memory_card import CardClip
from kitchensync.storage.errors import StorageError
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import recordings_in
from kitchensync.storage.reading.inertial import inertial_clock
from kitchensync.storage.recording import open_recording
from kitchensync.storage.timeline.utc_times import utc_times
from kitchensync.sync.align.gyro import align_pair
from kitchensync.sync.align.headset_gyro import HeadsetGyro
from kitchensync.sync.align.slate import find_slate
from kitchensync.sync.errors import SyncError
from kitchensync.sync.fit.resample import make_track
from kitchensync.sync.recording.clip_rates import ClipRates, clip_rates
from kitchensync.sync.recording.compare import take_sound
from kitchensync.sync.recording.headset import gyroscope

NEAR_S = 90.0  # maximum error of a trusted camera clock
LEAST_OVERLAP = 0.5  # minimum overlap, share of the shorter of clip and recording
ALIGNED = ("aligned", "check")
BEST_FIRST = (*ALIGNED, "not_aligned")


@dataclass
class CandidateRecording:
    """One recording that a clip could belong to."""

    path: Path
    manifest: Manifest
    device: str  # the camera's name in it
    away_s: float | None = None
    "Clip's start by the camera's clock, minus the recording's start, without whole time zones. None if unknown."

    @property
    def id(self) -> str:
        """The recording's id."""
        return str(self.manifest["recording"])


@dataclass
class Proposal:
    """Proposed recording of one clip, with the evidence."""

    clip: CardClip
    recording: Path | None = None
    device: str = ""
    evidence: list[str] = field(default_factory=list)
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return {
            "files": [str(path) for path in self.clip.paths],
            "serial": self.clip.serial,
            "recording": str(self.recording) if self.recording else None,
            "device": self.device,
            "evidence": self.evidence,
            "problem": self.problem,
        }


def recordings_below(root: Path) -> tuple[list[Path], list[str]]:
    """Return the recordings in a folder with a readable manifest, and the problems of the others."""
    readable, problems = [], []
    for path in recordings_in(root):
        try:
            read_manifest(path)
            readable.append(path)
        except StorageError as error:
            problems.append(" ".join(str(error).split()))
    return readable, problems


def propose(clips: list[CardClip], recordings: list[Path], *, chosen: bool = False) -> list[Proposal]:
    """Find the recording of each clip; `chosen`: the user chose the recording, and only contradictions count."""
    manifests = []
    for path in recordings:
        try:
            manifests.append((path, read_manifest(path)))
        except StorageError:
            continue  # reported by `verify`
    proposals = [_propose(clip, manifests, chosen=chosen) for clip in clips]
    owners: dict[tuple[Path, str], str | None] = {}
    for proposal in proposals:  # an unknown camera's name belongs to the camera of the first clip
        if proposal.recording is None:
            continue
        owner = owners.setdefault((proposal.recording, proposal.device), proposal.clip.serial)
        if owner != proposal.clip.serial:
            name = f"{proposal.recording.name}/{proposal.device}"
            proposal.problem = f"{name} is the name of camera {owner or 'without serial number'} already"
            proposal.recording = None
    return proposals


def _propose(clip: CardClip, manifests: list[tuple[Path, Manifest]], *, chosen: bool) -> Proposal:
    proposal = Proposal(clip)
    same = [
        candidate
        for path, manifest in manifests
        if (candidate := _by_serial(clip, path, manifest)) is not None
    ]
    if not same:
        proposal.problem = f"no recording was made with camera {clip.serial or 'of unknown serial number'}"
        return proposal
    if clip.serial:
        proposal.evidence.append(f"serial number {clip.serial}")
    try:
        rates = clip_rates(clip.clip)
    except SensorError as error:
        rates = ClipRates([], [], problem=" ".join(str(error).split()))
    proposal.evidence += [f"warning: {line}" for line in (*rates.noted, rates.problem) if line]
    timely = [candidate for candidate in same if _in_time(clip, candidate) or chosen]
    possible: dict[str, tuple[CandidateRecording, str | None]] = {}  # not contradicted by motion
    for candidate in sorted(timely or same, key=lambda candidate: abs(candidate.away_s or 0.0)):
        verdict = _by_motion(clip, rates, candidate)
        believed = verdict == "check" or (verdict is None and len(timely) == 1)
        if verdict == "aligned" or (timely and believed):
            _accept(proposal, candidate, verdict)
            return proposal
        if verdict != "not_aligned":
            possible[candidate.id] = candidate, verdict
    sound = None
    if possible:  # the tablet played a recording's acoustic slate at its start and end
        sound = take_sound(list(zip(clip.paths, map(float, clip.clip.starts_s), strict=True)))
    if sound is not None and (heard := find_slate(sound, possible)) is not None:
        proposal.evidence.append(f"slate: heard at {heard.at_s:.1f} s")
        _accept(proposal, *possible[heard.recording])
    elif timely:
        names = ", ".join(candidate.id for candidate in timely)
        why = "nothing tells which" if possible else "the motion does not fit"
        proposal.problem = f"the clock says {names}, {why}"
    else:
        proposal.problem = "no recording of this camera was made at that time"
    return proposal


def _accept(proposal: Proposal, candidate: CandidateRecording, verdict: str | None) -> None:
    proposal.recording, proposal.device = candidate.path, candidate.device
    if candidate.away_s is not None:
        proposal.evidence.append(f"clock: {candidate.away_s:+.1f} s from the recording's start")
    proposal.evidence.append(f"motion: {verdict}" if verdict else "motion: nothing to compare with")


def _by_serial(clip: CardClip, path: Path, manifest: Manifest) -> CandidateRecording | None:
    """Return the recording if it has this camera, or one of unknown serial number, or none."""
    cameras = {n: d for n, d in (manifest.get("devices") or {}).items() if d.get("kind") == "gopro"}
    for name, device in cameras.items():
        if clip.serial and device.get("serial") == clip.serial:
            return CandidateRecording(path, manifest, name)
    unnamed = [name for name, device in cameras.items() if not device.get("serial")]
    if unnamed or not cameras:
        return CandidateRecording(path, manifest, unnamed[0] if unnamed else "gopro")
    return None


def _in_time(clip: CardClip, candidate: CandidateRecording) -> bool:
    """Return whether clip and recording overlap, with any time zone between their clocks.

    If the computer's clock was set during the recording, the camera may have the time of before or after.
    """
    utc = utc_times(candidate.manifest)
    if clip.started_s is None or utc is None:
        return False
    moments = candidate.manifest.get("started"), candidate.manifest.get("stopped")
    begin, end = (utc.readings((moment or {}).get("host_ns")) for moment in moments)
    length_s = (end[0] - begin[0]) / 1e9 if end and end > begin else clip.duration_s
    zones = {0, int((candidate.manifest.get("zone") or {}).get("utc_offset_s") or 0)}
    away = [clip.started_s - zone_s - begin_ns / 1e9 for zone_s in zones for begin_ns in begin]
    candidate.away_s = away_s = min(away, key=abs)
    overlap_s = min(away_s + clip.duration_s, length_s) - max(away_s, 0.0)
    shorter_s = min(clip.duration_s, length_s)
    return overlap_s + NEAR_S > 0 and (overlap_s >= LEAST_OVERLAP * shorter_s or abs(away_s) < NEAR_S)


def _by_motion(clip: CardClip, rates: ClipRates, candidate: CandidateRecording) -> str | None:
    """Compare the gyroscopes: aligned, check, not_aligned; None if clip or recording have no gyroscope.

    The camera is mounted on one of the headsets, so the best result counts.
    """
    if rates.track is None:
        return None
    verdicts = []
    for headset in _headsets(candidate.path):
        try:
            pair = align_pair(headset, make_track(clip.name, rates.track.t_s, rates.track.xyz))
        except SyncError:
            continue
        verdicts.append(str(pair.verdict.status))
    return min(verdicts, key=BEST_FIRST.index, default=None)


def _headsets(path: Path) -> Iterator[HeadsetGyro]:
    """Read the gyroscope of each headset, one in memory at a time; unreadable ones are skipped."""
    try:
        with open_recording(path) as recording:
            for name in recording.streams:
                sensor = recording.sensor(name)
                if sensor is None or not sensor.is_gyroscope:
                    continue
                if (clock := inertial_clock(recording[name])) is not None:
                    yield gyroscope(recording[name], clock)
    except (StorageError, SyncError, OSError):
        return
