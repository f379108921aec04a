"""What a report says in words: the verdicts, what was recorded, and how to do it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kitchensync.shell.files_on_disk import files_below
from kitchensync.storage.consent import consent_in_words, overrides_in_words
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.timeline.alignment import Alignment
from kitchensync.storage.timeline.utc_times import moment_utc_ns
from kitchensync.sync.answers import software_version
from kitchensync.sync.report.cameras import ShownFile
from kitchensync.sync.report.render import length, local_time, size

_DEVICE_LEFT_OUT = ("kind", "address", "utc_offset_ticks")


@dataclass(frozen=True)
class ShownVerdict:
    """A status with its sign, what it means in words, and reasons."""

    status: str
    level: str  # good | warn | bad | none: the colour and the sign
    meaning: str
    reasons: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    "What it is good for, and where not to use it."
    notes: list[str] = field(default_factory=list)
    "What is worth knowing and harms nothing."


_MEANINGS = {
    "PASS": ("good", "Every stream covers the session; what was received is stored and undamaged."),
    "WARN": ("warn", "Usable: everything is accounted for, and some of it needs a look."),
    "FAIL": ("bad", "A large part is missing, or something is damaged or lost without an explanation."),
}
_ALIGNED = {
    "unreadable": ("bad", "An alignment file cannot be read."),
    "not_aligned": ("bad", "A device could not be put on the clock of the others. Do not match its frames."),
    "check": (
        "warn",
        "All devices are on one clock, but something is odd: look at the reasons and the plots below.",
    ),
    "aligned": ("good", "All devices are on one clock, within the bound given below."),
}
"""Worst first."""


def data_verdict(verification: dict[str, Any]) -> ShownVerdict:
    """Put the answer of verify into words."""
    status = str(verification["status"])
    level, meaning = _MEANINGS.get(status, ("bad", ""))
    reasons, advice, notes = (
        list(map(str, verification.get(k, []))) for k in ("reasons", "good_for", "notes")
    )
    return ShownVerdict(status, level, meaning, reasons, advice, notes)


def alignment_verdict(
    alignments: list[Alignment], cameras: list[ShownFile], armed: list[str]
) -> ShownVerdict:
    """Put the alignment of all cameras into words; the worst one counts."""
    if not alignments and not armed:
        meaning = "One clocked device was recorded: there is nothing to align."
        return ShownVerdict("nothing to align", "none", meaning)
    if not alignments and not cameras:
        return ShownVerdict("not aligned", "bad", "The camera left no file, so there is nothing to align.")
    if not alignments:
        meaning = "No alignment was made yet: run `kitchensync sync` on the recording."
        return ShownVerdict("not yet aligned", "warn", meaning)
    found = {alignment.status for alignment in alignments}
    status = next(status for status in _ALIGNED if status in found or status == "aligned")
    level, meaning = _ALIGNED[status]
    reasons = [
        f"{a.source}: {text}" for a in alignments for text in [a.problem, *a.reasons, *a.warnings] if text
    ]
    return ShownVerdict(status.replace("_", " "), level, meaning, reasons)


def state_note(manifest: Manifest) -> str:
    """Return a note on a recording that was not closed."""
    if manifest.get("state") == "complete":
        return ""
    if manifest.get("state") == "aborted":
        return "This recording was aborted."
    return "This recording was never closed: it is still running, or its recorder was killed."


def what_was_recorded(
    manifest: Manifest, verification: dict[str, Any], recording: Path, data_s: float
) -> list[tuple[str, str]]:
    """List what a person wants to know of a recording before anything else."""
    zone = manifest.get("zone") or {}
    began_ns = moment_utc_ns(manifest)
    rows = [
        ("Recording", f"{manifest.get('recording')}"),
        ("Started", local_time(began_ns, zone) if began_ns else "not known"),
        ("Length", f"{length(data_s)} of data" + _took(manifest)),
        ("Ended", str((manifest.get("stopped") or {}).get("reason", "not closed")).replace("_", " ")),
        ("Place", str(manifest.get("place") or "not given")),
        ("Participant", str(manifest.get("pseudonym") or "not given")),
        ("Consent", consent_in_words(manifest)),
        ("Size", _sizes(verification, recording)),
    ]
    if overridden := overrides_in_words(manifest):
        rows.append(("Used without consent", overridden))
    if manifest.get("retake_of"):
        rows.insert(1, ("Retake of", str(manifest["retake_of"])))
    if restarts := manifest.get("restarts"):
        names = ", ".join(str(entry.get("process", "a process")) for entry in restarts)
        rows.append(("Restarted while recording", names))
    return rows


def _took(manifest: Manifest) -> str:
    started, stopped = manifest.get("started") or {}, manifest.get("stopped") or {}
    if not started.get("host_ns") or not stopped.get("host_ns"):
        return ""
    whole_s = (int(stopped["host_ns"]) - int(started["host_ns"])) / 1e9
    return f" ({length(whole_s)} with start and closing)"


def _sizes(verification: dict[str, Any], recording: Path) -> str:
    cameras = sum(f["bytes"] for name, f in verification["streams"].items() if name.upper().endswith(".MP4"))
    everything = sum(path.stat().st_size for path in files_below(recording))
    packets = sum(f["bytes"] for f in verification["streams"].values()) - cameras
    if not verification["streams"]:
        return f"{size(everything)} on disk"
    return f"{size(everything)} on disk: {size(packets)} in packets, {size(cameras)} in camera files"


def devices(manifest: Manifest) -> list[dict[str, str]]:
    """List the devices with what they reported of themselves."""
    found = []
    for name, facts in (manifest.get("devices") or {}).items():
        known = {key: value for key, value in facts.items() if key not in _DEVICE_LEFT_OUT and value != []}
        words = ", ".join(f"{key.replace('_', ' ')} {_written(value)}" for key, value in known.items())
        found.append({"name": str(name), "kind": str(facts.get("kind", "")), "words": words})
    return found


def _written(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


def losses(manifest: Manifest) -> dict[str, list[str]]:
    """List what the profile of each headset gives away for its bandwidth, with the streams."""
    lost: dict[str, list[str]] = {}
    for name, facts in (manifest.get("streams") or {}).items():
        for loss in (facts.get("format") or {}).get("loses") or []:
            lost.setdefault(str(loss), []).append(str(name))
    return lost


def profiles(manifest: Manifest) -> list[str]:
    """Name the profile of each headset, and what was chosen beside it."""
    return [
        f"{device}: " + ", ".join(f"{str(key).replace('_', ' ')} {value}" for key, value in chosen.items())
        for device, chosen in (manifest.get("profile") or {}).items()
        if isinstance(chosen, dict)
    ]


def versions(manifest: Manifest, alignments: list[Alignment]) -> list[tuple[str, str]]:
    """The software that recorded, aligned and reported."""
    recorded = ", ".join(f"{k} {v}" for k, v in (manifest.get("software") or {}).items()) or "not known"
    aligned = ", ".join(sorted({a.version for a in alignments if a.version}))
    rows = [("Recorded with", recorded), ("Reported with", f"kitchensync {software_version()}")]
    if aligned:
        rows.insert(1, ("Aligned with", f"kitchensync {aligned}"))
    return rows
