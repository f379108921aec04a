"""The facts of a report in words: verdicts, recorded data and software."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kitchensync.shell.files_on_disk import files_below
from kitchensync.storage.consent import consent_in_words, overrides_in_words
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.timeline.alignment import Alignment
from kitchensync.storage.timeline.utc_times import moment_utc_ns
from kitchensync.storage.verify.by_life import RecordingVerification
from kitchensync.sync.answers import software_version
from kitchensync.sync.report.cameras import ShownFile
from kitchensync.sync.report.render import length, local_time, size

_DEVICE_LEFT_OUT = ("kind", "address", "utc_offset_ticks")


@dataclass(frozen=True)
class ShownVerdict:
    """A status with its sign, meaning in words, and reasons."""

    status: str
    level: str  # good | warn | bad | none: the colour and the sign
    meaning: str
    reasons: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)  # suitable and unsuitable uses
    notes: list[str] = field(default_factory=list)  # harmless observations


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


def data_verdict(verification: RecordingVerification) -> ShownVerdict:
    """Return the answer of verify in words."""
    status = str(verification["status"])
    reasons, advice = verification.get("reasons", []), verification.get("good_for", [])
    level, meaning = _MEANINGS.get(status, ("bad", ""))
    return ShownVerdict(status, level, meaning, reasons, advice, verification.get("notes", []))


def alignment_verdict(
    alignments: list[Alignment], cameras: list[ShownFile], armed: list[str]
) -> ShownVerdict:
    """Return the alignment of all cameras in words; the worst one counts."""
    if not alignments and not armed:
        meaning = "One clocked device was recorded: there is nothing to align."
        return ShownVerdict("nothing to align", "none", meaning)
    if not alignments and not cameras:
        return ShownVerdict("not aligned", "bad", "The camera left no file, so there is nothing to align.")
    if not alignments:
        meaning = "No alignment was made yet: run `kitchensync sync` on the recording."
        return ShownVerdict("not yet aligned", "warn", meaning)
    statuses = {alignment.status for alignment in alignments}
    status = next(status for status in _ALIGNED if status in statuses or status == "aligned")
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
    manifest: Manifest, verification: RecordingVerification, recording: Path, data_s: float
) -> list[tuple[str, str]]:
    """List the main facts of a recording."""
    began_ns = moment_utc_ns(manifest)
    started, stopped = manifest.get("started") or {}, manifest.get("stopped") or {}
    took = ""
    if started.get("host_ns") and stopped.get("host_ns"):
        whole_s = (int(stopped["host_ns"]) - int(started["host_ns"])) / 1e9
        took = f" ({length(whole_s)} with start and closing)"
    sizes = f"{size(sum(path.stat().st_size for path in files_below(recording)))} on disk"
    if streams := verification["streams"]:
        cameras = sum(balance["bytes"] for name, balance in streams.items() if name.upper().endswith(".MP4"))
        packets = sum(balance["bytes"] for balance in streams.values()) - cameras
        sizes += f": {size(packets)} in packets, {size(cameras)} in camera files"
    rows = [
        ("Recording", f"{manifest.get('recording')}"),
        ("Started", local_time(began_ns, manifest.get("zone") or {}) if began_ns else "not known"),
        ("Length", f"{length(data_s)} of data{took}"),
        ("Ended", str(stopped.get("reason", "not closed")).replace("_", " ")),
        ("Place", str(manifest.get("place") or "not given")),
        ("Participant", str(manifest.get("pseudonym") or "not given")),
        ("Consent", consent_in_words(manifest)),
        ("Size", sizes),
    ]
    if overridden := overrides_in_words(manifest):
        rows.append(("Used without consent", overridden))
    if manifest.get("retake_of"):
        rows.insert(1, ("Retake of", str(manifest["retake_of"])))
    if restarts := manifest.get("restarts"):
        names = ", ".join(str(entry.get("process", "a process")) for entry in restarts)
        rows.append(("Restarted while recording", names))
    return rows


def devices(manifest: Manifest) -> list[dict[str, str]]:
    """List the devices with the facts that they reported."""
    rows = []
    for name, facts in (manifest.get("devices") or {}).items():
        words = [
            f"{key.replace('_', ' ')} {'; '.join(map(str, value)) if isinstance(value, list) else value}"
            for key, value in facts.items()
            if key not in _DEVICE_LEFT_OUT and value != []
        ]
        rows.append({"name": str(name), "kind": str(facts.get("kind", "")), "words": ", ".join(words)})
    return rows


def losses(manifest: Manifest) -> dict[str, list[str]]:
    """List the losses of each headset's bandwidth profile, with the streams."""
    lost: dict[str, list[str]] = {}
    for name, facts in (manifest.get("streams") or {}).items():
        for loss in (facts.get("format") or {}).get("loses") or []:
            lost.setdefault(str(loss), []).append(str(name))
    return lost


def profiles(manifest: Manifest) -> list[str]:
    """List the profile of each headset, with other chosen settings."""
    return [
        f"{device}: " + ", ".join(f"{str(key).replace('_', ' ')} {value}" for key, value in chosen.items())
        for device, chosen in (manifest.get("profile") or {}).items()
        if isinstance(chosen, dict)
    ]


def versions(manifest: Manifest, alignments: list[Alignment]) -> list[tuple[str, str]]:
    """List the software versions of recording, alignment and report."""
    recorded = ", ".join(f"{k} {v}" for k, v in (manifest.get("software") or {}).items()) or "not known"
    aligned = ", ".join(sorted({a.version for a in alignments if a.version}))
    rows = [("Recorded with", recorded), ("Reported with", f"kitchensync {software_version()}")]
    if aligned:
        rows.insert(1, ("Aligned with", f"kitchensync {aligned}"))
    return rows
