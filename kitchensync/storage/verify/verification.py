"""Compute the balance of a recording from its files alone: received = stored + reported losses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

from kitchensync.shell.files_on_disk import matching, read_plain
from kitchensync.shell.untrusted_json import MOST_BYTES
from kitchensync.storage.chunks.apart import ReaderApart
from kitchensync.storage.copies.copy_log import COPY_LOG
from kitchensync.storage.copies.read_through import readable_folder
from kitchensync.storage.disk.self_check import MOST_LINES_BYTES, each_line, is_sound, torn_tail
from kitchensync.storage.errors import BadChunk, BadEventLog, FilesFreed, NotARecording
from kitchensync.storage.events import event_logs, read_lines
from kitchensync.storage.ledger import Note, UnknownNote, of_kind
from kitchensync.storage.ledger_reader import notes_in
from kitchensync.storage.life import Life, life_by
from kitchensync.storage.manifest import Manifest, read_manifest
from kitchensync.storage.names import CLOCK_STREAMS, LEDGER_STREAMS, chunk_range
from kitchensync.storage.privacy import pauses_of
from kitchensync.storage.reading.decoded import sensor_stream
from kitchensync.storage.reading.device_constants import CALIBRATION
from kitchensync.storage.reading.swaps import swaps_of
from kitchensync.storage.recording_files.annotation_folder import FOLDER as ANNOTATIONS
from kitchensync.storage.redact.redactions import BEGUN, CUT, PICTURES, REDACTED
from kitchensync.storage.timeline.utc_times import utc_times
from kitchensync.storage.verify.by_life import (
    RecordingVerification,
    answer,
    can_be_judged,
    unchecked,
    unfinished_copy,
    unreadable,
)
from kitchensync.storage.verify.camera_account import CameraCover, account, camera_cover
from kitchensync.storage.verify.coverage import Span
from kitchensync.storage.verify.deep import decode
from kitchensync.storage.verify.findings import FAIL, WARN, WHOLE, Findings, worst
from kitchensync.storage.verify.quality import StreamQuality, judge
from kitchensync.storage.verify.sealed_files import SealedFiles, differs
from kitchensync.storage.verify.session_span import SessionTimes, read_steps, session_of
from kitchensync.storage.verify.stream_balance import balance
from kitchensync.storage.verify.suitable_uses import clock, good_for

Progress = Callable[[str], None]
FILMS = ("gopro", "video")
"""Kinds of devices with files in `media.json`."""
MOST_LINES = 100
"""Limit of reported damaged lines per file."""


def verify(
    recording: Path, progress: Progress = lambda _: None, *, deep: bool = False, most_parts: int | None = None
) -> RecordingVerification:
    """Check one recording; return the object `verify/1`. Never raises for damage inside a recording.

    Freed files are read in a copy; without a reachable copy the last answer is returned, with `checked` false. `deep`
    also decodes all frames, or `most_parts` parts of each stream.
    """
    findings = Findings()
    try:
        manifest = read_manifest(recording)
    except NotARecording as error:
        return unreadable(recording, error)
    life = life_by(recording, manifest)
    if life == Life.COPYING:
        return unfinished_copy(recording, manifest)
    if not can_be_judged(life, manifest, findings):
        return answer(recording.name, findings, {}, life)
    for note in manifest.get("notes", []):
        findings.note(note)
    for problem in manifest.get("problems", []):
        findings.add(WARN, problem)
    _check_redactions(manifest, findings)
    _check_lines(recording, findings)
    _check_constants(recording, manifest, findings)
    try:
        folder = readable_folder(recording, manifest)
    except FilesFreed as error:
        return unchecked(recording, findings, error, life)
    streams, use = _check_files(folder, manifest, findings, progress)
    if deep:
        _add_decoded(folder, manifest, streams, use["cameras"], findings, most_parts)
    if life == Life.WITHDRAWN:
        use["good_for"] = []
    result = answer(str(manifest["recording"]), findings, streams, life) | use
    return result if folder == recording else result | {"read_from": str(folder)}


def _check_redactions(manifest: Manifest, findings: Findings) -> None:
    """Report redacted parts of videos (those of streams are in their balance), and unfinished redactions."""
    for redaction in manifest.get("redactions", []):
        if redaction["state"] == BEGUN:
            findings.add(FAIL, "a redaction was interrupted: `kitchensync redact` continues it")
        for why in redaction["open"]:
            findings.add(WARN, f"{REDACTED} here, not yet elsewhere: {why}")
        for film, what in redaction["films"].items() if redaction["id"] != CUT else ():
            count = sum(last + 1 - first for first, last in what["samples"].get(PICTURES, []))
            findings.add(WARN, f"{film}: {count} pictures and the sound beside them were {REDACTED}")


def _check_files(
    folder: Path, manifest: Manifest, findings: Findings, progress: Progress
) -> tuple[dict[str, Any], RecordingVerification]:
    """Check the sealed files and videos in a folder; return `streams`, and the keys about suitable uses."""
    with ReaderApart() as apart:
        streams, session, judged = _check_streams(folder, manifest, findings, progress, apart)
    # Setting the computer's clock makes UTC jump, but not host times and session time.
    times = utc_times(manifest)
    if times is not None and session is not None:
        for step in times.steps():
            findings.add(WARN, step.words(clock(session.seconds(step.after_host_ns))))
    cameras: dict[str, CameraCover] = {}
    for device, facts in manifest["devices"].items():
        if facts.get("kind") in FILMS:
            streams |= account(folder, device, findings, progress)
            cameras |= camera_cover(folder, device, session, findings)
    return streams, _use(folder, session, judged, cameras)


def _add_decoded(
    folder: Path,
    manifest: Manifest,
    streams: dict[str, Any],
    cameras: dict[str, Any],
    findings: Findings,
    most_parts: int | None,
) -> None:
    """Decode undamaged streams; damaged files, already reported, could crash HDF5 and decoders."""
    if manifest["state"] != "complete":
        findings.note("nothing was decoded: the recording was never closed")
        return
    damaged = {place["stream"] for place in findings.corrupt}
    names = [name for name in streams if name not in damaged]
    decoded, filmed = decode(folder, names, findings, most_parts=most_parts)
    for name, facts in decoded.items():
        streams[name] |= facts
    for device, facts in filmed.items():
        cameras[device] = cameras.get(device, {}) | facts


def _use(
    recording: Path,
    session: SessionTimes | None,
    judged: dict[str, StreamQuality],
    cameras: dict[str, CameraCover],
) -> RecordingVerification:
    """Return session length, coverage of the cameras, suitable uses, and lost spans.

    `lost` has the spans without head tracking, and those in which gaze or a sensor repeated one value.
    """
    if session is None:
        return {"session_s": 0.0, "cameras": {}, "good_for": [], "lost": {}}
    steps = read_steps(recording, session)
    holes = {name: quality.holes for name, quality in judged.items()}
    holes |= {device: cover.holes for device, cover in cameras.items()}
    lost = {name: quality.facts["lost"] for name, quality in judged.items() if "lost" in quality.facts}
    return {
        "session_s": round(max(session.stop_s - session.start_s, 0.0), 3),
        "cameras": {device: cover.facts(steps) for device, cover in cameras.items()},
        "good_for": good_for(holes, session, steps, _paused(recording, session)),
        "lost": {name: [[round(a, 3), round(b, 3)] for a, b in spans] for name, spans in lost.items()},
    }


def _paused(recording: Path, session: SessionTimes) -> list[Span]:
    """Return the privacy pauses within the session; an unreadable log is reported by `_check_lines`."""
    try:
        pauses = pauses_of(recording)
    except BadEventLog:
        return []
    spans = [
        (max(session.seconds(begin), session.start_s), min(session.seconds(end), session.stop_s))
        for begin, end in pauses
    ]
    return [(begin, end) for begin, end in spans if begin < end]


def _check_streams(
    recording: Path, manifest: Manifest, findings: Findings, progress: Progress, apart: ReaderApart
) -> tuple[dict[str, Any], SessionTimes | None, dict[str, StreamQuality]]:
    """Check ledger and clock streams first, then each sensor stream with the ledger's notes, then all together."""
    files = SealedFiles(recording, manifest, findings, apart)
    notes: dict[str, list[Note]] = {}
    promised = {Path(file).parent.as_posix() for file in manifest["files"] if chunk_range(Path(file))}
    here = {
        f"{kind}/{folder.name}"
        for kind in (CLOCK_STREAMS, LEDGER_STREAMS)
        for folder in matching(recording / kind, "*")
    }
    for stream in sorted((promised | here) - set(manifest["streams"])):
        sound = files.read(stream).sound
        for path in sound if stream.startswith(f"{LEDGER_STREAMS}/") else ():
            try:
                for about, stream_notes in notes_in([path]).items():
                    notes.setdefault(about, []).extend(stream_notes)
            except BadChunk as error:  # its checksums match: it was written like this
                findings.damage(path.relative_to(recording).as_posix(), stream, error.why)
    # A note of a newer version may explain a loss.
    unknown = [note for stream_notes in notes.values() for note in of_kind(stream_notes, UnknownNote)]
    if unknown:
        kinds = ", ".join(sorted({note.kind_name for note in unknown}))
        what = f"{len(unknown)} notes of the ledger are not understood ({kinds})"
        findings.add(WARN, f"{what}: verify with the version that recorded them")
    contents, streams = {}, {}
    swaps: list[tuple[int, int]] = []
    with suppress(BadEventLog):  # reported by _check_lines
        swaps = swaps_of(recording)
    for name in manifest["streams"]:
        progress(name)
        check, form = sensor_stream(manifest, name).check, manifest["streams"][name].get("format") or {}
        contents[name] = files.read(name, check, form)
        streams[name] = balance(name, contents[name], manifest, notes.get(name, []), findings, swaps)
    session = session_of(
        {name: stream_contents.index for name, stream_contents in contents.items()}, notes, manifest
    )
    judged = judge(contents, manifest["streams"], streams, session, findings)
    for name, facts in streams.items():
        facts |= {key: value for key, value in judged[name].facts.items() if key != "lost"}
    return streams, session, judged


def _check_constants(recording: Path, manifest: Manifest, findings: Findings) -> None:
    """Check the hashes of sealed files that are not chunks: calibration constants of sensors."""
    for relative, facts in manifest["files"].items():
        path = recording / relative
        if chunk_range(path) is not None:
            continue
        if not path.is_file():
            findings.add(FAIL, f"{relative} is missing: restore it from a copy")
        elif differs(path, facts):
            stream = relative.replace(f"/{CALIBRATION}/", "/").removesuffix(path.suffix)
            findings.damage(relative, stream, WHOLE)


def _check_lines(recording: Path, findings: Findings) -> None:
    """Check event logs, list of copies and annotations by their checksums.

    No event may be missing between two others; files are freed by the list of copies, so it must be correct.
    """
    for path in event_logs(recording):
        name = f"events/{path.name}"
        content = read_plain(path, MOST_LINES_BYTES)
        if damaged := _damaged_lines(content):
            for number in damaged:
                findings.damage(name, "events", f"line {number}")
        elif torn_tail(content) is False:
            findings.add(WARN, f"{name}: its last line is incomplete; it was never confirmed as stored")
        try:
            for _ in read_lines(path):
                pass
        except BadEventLog as error:
            if not damaged:
                findings.damage(name, "events", f"line {error.line}")

    path = recording / COPY_LOG
    for number in _damaged_lines(read_plain(path, MOST_LINES_BYTES) if path.exists() else b""):
        findings.damage(COPY_LOG, "copies", f"line {number}")
    for path in matching(recording / ANNOTATIONS, "*.json"):
        if not is_sound(read_plain(path, MOST_BYTES)):
            findings.damage(f"{ANNOTATIONS}/{path.name}", ANNOTATIONS, WHOLE)


def _damaged_lines(content: bytes) -> list[int]:
    """Return the numbers of the first damaged lines; a line that is being written does not count."""
    bad = (number for number, line in enumerate(each_line(content), start=1) if not is_sound(line))
    damaged = list(islice(bad, MOST_LINES))
    return [*damaged, content.count(b"\n") + 1] if torn_tail(content) else damaged


class VerificationOfAll(TypedDict):
    """The object `verify-all/1`."""

    schema: str
    status: str
    "The worst."
    recordings: list[RecordingVerification]


def verify_all(results: list[RecordingVerification]) -> VerificationOfAll:
    """Combine the answers for several recordings."""
    return {
        "schema": "verify-all/1",
        "status": worst(result["status"] for result in results),
        "recordings": results,
    }
