"""Answers of `verify` from the life of a recording alone, without reading its large files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict, cast

from kitchensync.shell.untrusted_json import BadJson, load_json
from kitchensync.storage.copies.read_through import missing_files, promised_files
from kitchensync.storage.errors import (
    CopyUnfinished,
    FilesFreed,
    ManifestDamaged,
    ManifestLost,
    NotARecording,
)
from kitchensync.storage.life import Life, lacking, why_aborted
from kitchensync.storage.manifest import Manifest, note_change, write_json
from kitchensync.storage.names import MANIFEST
from kitchensync.storage.verify.findings import FAIL, WARN, WHOLE, Findings, worst
from kitchensync.storage.verify.gaps import Gap

KEPT = Path("sync") / "verify.json"
"""The last answer of `verify`: by the command, the recorder, a report, or before files were freed."""

USE = ("notes", "session_s", "cameras", "good_for", "lost")
"""Further keys of an answer that stay valid while files cannot be checked."""


class CameraBalance(TypedDict, total=False):
    """Coverage of the session by a camera."""

    coverage: float | None
    "0 to 1; None if it is unknown."
    from_s: float
    steps_coverage: float | None
    decoded: dict[str, int]
    "Frames asked for, decoded and undecodable; with --deep."
    loudest_dbfs: float | None
    "Level of the loudest second; with --deep."


class StreamBalance(CameraBalance, total=False):
    """Balance of a stream in packets, or of a camera file in bytes."""

    received: int
    stored: int
    duplicates: int
    missing: list[tuple[int, int]]
    gaps: list[Gap]
    bytes: int
    sha256: str
    ended: str
    new_world_frames: list[int]
    undecodable: int
    rate_hz: float
    nominal_hz: float | None
    longest_silence_s: float | None
    latest_arrival_s: float
    tracked: dict[str, float]
    black: list[list[float]]
    "Spans of black frames; with --deep."


class RecordingVerification(TypedDict, total=False):
    """The object `verify/1`."""

    schema: str
    recording: str
    life: str
    status: str
    reasons: list[str]
    notes: list[str]
    "Observations that do not change the status."
    streams: dict[str, StreamBalance]
    corrupt: list[dict[str, Any]]
    "File, stream and block of each damage."
    trouble: dict[str, str]
    "Status of each stream, camera or file with a reason."
    session_s: float | None
    cameras: dict[str, CameraBalance]
    good_for: list[str]
    lost: dict[str, list[list[float]]]
    "Spans without tracking or with a stuck sensor."
    checked: bool
    "False: the files could not be read."
    read_from: str
    "The copy that was read."


def answer(name: str, findings: Findings, streams: dict[str, Any], life: Life) -> RecordingVerification:
    """Build the answer from findings."""
    return {
        "schema": "verify/1",
        "recording": name,
        "life": str(life),
        "status": findings.status,
        "reasons": findings.reasons,
        "notes": findings.notes,
        "streams": streams,
        "corrupt": findings.corrupt,
        "trouble": {
            name: status for name, status in findings.trouble.items() if name in streams or "/" not in name
        },
    }


def unreadable(recording: Path, error: NotARecording) -> RecordingVerification:
    """Answer for a folder with a lost or damaged manifest, or for a folder that is not a recording."""
    findings = Findings()
    if isinstance(error, ManifestDamaged) or (recording / MANIFEST).is_file():
        file = getattr(error, "file", MANIFEST)
        stream = file.rpartition("/")[0] or "recording"
        findings.corrupt.append({"file": file, "stream": stream, "block": WHOLE})
    findings.add(FAIL, str(error))
    life = Life.MANIFEST_LOST if isinstance(error, ManifestLost) else Life.DAMAGED
    result = answer(recording.name, findings, {}, life)
    if not isinstance(error, ManifestDamaged | ManifestLost):
        del result["life"]
    return result


def unfinished_copy(copy: Path, manifest: Manifest) -> RecordingVerification:
    """Answer for an incomplete copy: missing files, and how to finish it; nothing is checked."""
    findings, promised = Findings(), promised_files(copy, manifest)
    missing = missing_files(copy, promised)
    if manifest["state"] in ("complete", "aborted"):
        lacks = f"{len(missing)} of {len(promised)} files are missing"
        lacks += f", such as {missing[0]}" if missing else "; reports, events or its manifest may be too"
    else:
        lacks = "its recording was still running"
    findings.add(WARN, f"{CopyUnfinished(copy)} ({lacks})")
    return answer(str(manifest["recording"]), findings, {}, Life.COPYING) | {"checked": False}


def can_be_judged(life: Life, manifest: Manifest, findings: Findings) -> bool:
    """Add findings from the life of a recording; return whether its files can be checked."""
    lacks = lacking(manifest)
    if life == Life.WITHDRAWN:
        consequence = "its files were destroyed" if lacks else "nothing of it may be used or passed on"
        findings.add(FAIL if lacks else WARN, f"the participant withdrew consent: {consequence}")
    elif lacks:
        findings.add(FAIL, f"{MANIFEST} lacks {', '.join(lacks)}: restore it from a copy")
    if lacks:
        return False
    if rebuilt := manifest.get("rebuilt"):
        unknown = ", ".join(rebuilt["unknown"])
        findings.add(WARN, f"{MANIFEST} was lost and is rebuilt from the other files; unknown: {unknown}")
    if why := why_aborted(manifest):
        findings.note(f"it was aborted and shall not be used: {why}")
    if manifest["state"] == "aborted":
        findings.add(FAIL, "it was given up at its start: it holds what people entered, nothing else")
    elif waiting := manifest.get("waiting"):
        for stream, facts in waiting.items():
            why = f"{facts['packets']} packets wait in the queue ({facts['why']}): `kitchensync recover` stores them"
            findings.add(FAIL, f"{stream}: {why}")
    elif manifest["state"] != "complete":
        findings.add(
            FAIL,
            f"the recording was never closed (state {manifest['state']!r}): "
            "end it, or run `kitchensync recover` after a crash",
        )
    return True


def keep_verdict(recording: Path, result: RecordingVerification) -> None:
    """Store an answer for times when the files cannot be read. Raises OSError."""
    (recording / KEPT).parent.mkdir(exist_ok=True)
    write_json(recording / KEPT, result)
    note_change(recording)


def keep_if_closed(recording: Path, result: RecordingVerification) -> None:
    """Store the answer of a closed, checked recording, if its folder is writable."""
    if result.get("life") in (Life.COMPLETE, Life.ARCHIVED, Life.ELSEWHERE) and result.get("checked", True):
        with suppress(OSError):  # only `list` and `study` need it
            keep_verdict(recording, result)


def unchecked(recording: Path, findings: Findings, error: FilesFreed, life: Life) -> RecordingVerification:
    """Answer for a recording with unreadable files: the last status, and `findings` of small files."""
    kept: RecordingVerification = kept_verdict(recording) or {}
    result = answer(recording.name, findings, kept.get("streams", {}), life)
    result |= cast(RecordingVerification, {key: value for key, value in kept.items() if key in USE})
    reasons = [*result["reasons"], *kept.get("reasons", []), f"not checked: {error}"]
    return result | {
        "status": worst([result["status"], kept.get("status", WARN)]),
        "reasons": list(dict.fromkeys(reasons)),
        "corrupt": [*result["corrupt"], *kept.get("corrupt", [])],
        "checked": False,
    }


def kept_verdict(recording: Path) -> RecordingVerification | None:
    """Return the last stored answer: by `record`, `verify`, `report`, or before files were freed."""
    from kitchensync.storage.manifest_form import VerdictForm, wrong_in  # loads pydantic

    try:
        verdict: RecordingVerification = load_json(recording / KEPT)
    except (OSError, BadJson):
        return None
    return None if wrong_in(VerdictForm, verdict) else verdict
