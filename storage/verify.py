"""The balance sheet of a recording, made anew from its files alone: received = stored + named losses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from storage.chunk import INDEX, Chunk, chunk_paths, is_archive
from storage.chunk_reader import UNREADABLE
from storage.copies import freed_to
from storage.errors import BadChunk, BadEventLog, NotARecording
from storage.events import read_lines
from storage.gaps import find_gaps, missing_ranges, stamps_that_go_back, uncovered, usual_step
from storage.manifest import Manifest, read_manifest
from storage.media_blocks import damaged_stretches
from storage.names import MANIFEST, MEDIA, chunk_name, stream_folder
from storage.notes import Note, read_notes

PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
_ORDER = [PASS, WARN, FAIL]
READ_BYTES = 4 << 20

LOW_RATE = 0.8
"""A stream below this share of its nominal rate is flagged; AHAT depth slows down by itself and is not."""
EARLY_ENDS = {"no_space": "no_space", "recovered": "restart"}
"""Reasons why a recording stopped that put an early end to its streams -> the cause that this gap has."""

AFTER_LAST_SIGN_NS = 1_000_000_000
"""A killed recorder lived for a quarter second after its last sign, and what its sockets held went with it."""

ADAPTIVE = ("depth_ahat", "depth_longthrow")

Progress = Callable[[str], None]


@dataclass
class Findings:
    """What is wrong so far."""

    status: str = PASS
    reasons: list[str] = field(default_factory=list)
    corrupt: list[dict[str, Any]] = field(default_factory=list)

    def add(self, status: str, reason: str) -> None:
        """Note a reason; the status only ever gets worse."""
        self.status = worst([self.status, status])
        if reason not in self.reasons:
            self.reasons.append(reason)

    def damage(self, file: str, stream: str, block: str) -> None:
        """Note damage at a place."""
        self.corrupt.append({"file": file, "stream": stream, "block": block})
        self.add(FAIL, f"{file} is damaged ({block}): restore it from a copy")


def worst(statuses: Iterable[str]) -> str:
    """Return the worst of some statuses, PASS when there are none."""
    return max(statuses, key=_ORDER.index, default=PASS)


def verify(recording: Path, progress: Progress = lambda _: None) -> dict[str, Any]:
    """Check one recording; return the object `verify/1`. Never raises for what is wrong inside a recording."""
    findings = Findings()
    streams: dict[str, Any] = {}
    try:
        manifest = read_manifest(recording)
    except NotARecording as error:
        findings.add(FAIL, str(error))
        return _answer(recording.name, findings, streams)
    if manifest["state"] != "complete":
        findings.add(FAIL, f"the recording was never closed (state {manifest['state']!r})")
    if where := freed_to(recording):
        findings.add(
            FAIL, f"its files were freed after they were copied: verify the copy in {' or '.join(where)}"
        )
    for problem in manifest.get("problems", []):
        findings.add(WARN, problem)
    notes = _notes(recording, findings)
    for name in manifest["streams"]:
        progress(name)
        streams[name] = _check_stream(recording, name, manifest, notes.get(name, []), findings)
    for device, facts in manifest["devices"].items():
        if facts["kind"] == "gopro":
            streams |= _check_camera(recording, device, findings, progress)
    _check_other_files(recording, manifest, findings)
    return _answer(str(manifest["recording"]), findings, streams)


def _answer(name: str, findings: Findings, streams: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": "verify/1",
        "recording": name,
        "status": findings.status,
        "reasons": findings.reasons,
        "streams": streams,
        "corrupt": findings.corrupt,
    }


def _notes(recording: Path, findings: Findings) -> dict[str, list[Note]]:
    try:
        return read_notes(recording)
    except (BadChunk, ValueError, KeyError) as error:
        findings.add(FAIL, f"the ledger cannot be read: {error}")
        return {}


@dataclass
class _Contents:
    """What the chunks of one stream hold."""

    index: Any
    sha256: str
    bytes: int


def _read_stream(recording: Path, name: str, manifest: Manifest, findings: Findings) -> _Contents:
    """Read every chunk of a stream once: checksums, hash over the payloads, index."""
    digest, sizes, parts = hashlib.sha256(), [0], []

    def take(payload: bytes) -> None:
        digest.update(payload)
        sizes[0] += len(payload)

    folder = stream_folder(recording, name)
    found = {path.name: path for path in chunk_paths(folder)}
    prefix = folder.relative_to(recording).as_posix()
    promised = {file.rpartition("/")[2] for file in manifest["files"] if file.rpartition("/")[0] == prefix}
    packed = _packed_files(found.values(), f"{prefix}/", manifest)
    for missing in sorted(promised - set(found) - packed):
        findings.add(FAIL, f"{prefix}/{missing} is missing: restore it from a copy")
    for file_name, path in found.items():
        relative = f"{prefix}/{file_name}"
        part = _read_file(path, relative, name, manifest, findings, take)
        if part is not None:
            parts.append(part)
    index = np.concatenate(parts) if parts else np.empty(0, INDEX)
    return _Contents(index, digest.hexdigest(), sizes[0])


def _read_file(
    path: Path,
    relative: str,
    name: str,
    manifest: Manifest,
    findings: Findings,
    take: Callable[[bytes], None],
) -> Any:
    """Check one sealed file against its checksums and its hash; return its index, None if that is no good."""
    try:
        with Chunk(path) as chunk:
            damage = chunk.damage(take)
            index = chunk.index
    except (BadChunk, *UNREADABLE) as error:
        findings.damage(relative, name, f"file: {error}")
        return None
    for block in damage:
        findings.damage(relative, name, block)
    facts = manifest["files"].get(relative)
    if not damage and facts is not None and _hash(path) != facts["sha256"]:
        findings.damage(relative, name, "file: its hash is not the one it was sealed with")
    return None if "index" in damage else index  # nothing that it says of its packets can be trusted


def _packed_files(found: Iterable[Path], prefix: str, manifest: Manifest) -> set[str]:
    """Return the names of promised chunks that an archive holds, block by block as they were sealed."""
    packed = set()
    for path in found:
        if not is_archive(path):
            continue
        try:
            with Chunk(path) as chunk:
                blocks = chunk.blocks
        except (BadChunk, *UNREADABLE):
            continue  # named as damage where it is read
        for block in blocks:
            name = chunk_name(int(block["number"]))
            facts = manifest["files"].get(prefix + name)
            if facts is not None and facts["sha256"] == block["file_sha256"].decode():
                packed.add(name)
    return packed


def _check_stream(
    recording: Path, name: str, manifest: Manifest, notes: list[Note], findings: Findings
) -> dict[str, Any]:
    contents = _read_stream(recording, name, manifest, findings)
    index = contents.index
    seqs = np.unique(index["seq"])
    ends = [note for note in notes if note["note"] == "end"]
    highest = int(seqs[-1]) + 1 if len(seqs) else 0
    received = max([highest, *(int(note["received"]) for note in ends)])
    missing = missing_ranges(seqs, received)
    causes = [note["cause"] for note in notes if note["note"] == "closed"]
    pauses = [(note["start_host_ns"], note["end_host_ns"]) for note in notes if note["note"] == "suspend"]
    gaps = find_gaps(index, causes, pauses) + _early_end(index, manifest, ends)
    named = _named_losses(name, notes, manifest)
    duplicates = len(index) - len(seqs)
    if not len(index):
        findings.add(FAIL, f"{name} was armed and holds no packet")
    if duplicates:
        findings.add(FAIL, f"{name} holds {duplicates} packets twice")
    if not ends and manifest["state"] == "complete":
        findings.add(WARN, f"{name}: its recorder died before it could close the ledger")
    unnamed = [part for part in missing if uncovered(part, named)]
    if unnamed:
        findings.add(FAIL, f"{name}: packets {unnamed} are missing and no cause is named")
    elif missing:
        findings.add(WARN, f"{name}: packets {missing} are a named loss")
    for cause in dict.fromkeys(gap["cause"] for gap in gaps):
        count = sum(gap["cause"] == cause for gap in gaps)
        findings.add(WARN, f"{name}: {count} gap{'s' if count > 1 else ''} ({cause})")
    if back := stamps_that_go_back(index):
        findings.add(WARN, f"{name}: {back} stamps do not go forward")
    _check_rate(name, index, manifest, findings)
    return {
        "received": received,
        "stored": len(index),
        "duplicates": duplicates,
        "missing": missing,
        "gaps": gaps,
        "bytes": contents.bytes,
        "sha256": contents.sha256,
        "ended": ends[-1]["reason"] if ends else "unknown",
    }


def _early_end(index: Any, manifest: Manifest, ends: list[Note]) -> list[dict[str, Any]]:
    """Name the end that a full disk or a killed recorder put to a stream, until its connection was closed."""
    stopped = manifest.get("stopped") or {}
    cause = EARLY_ENDS.get(stopped.get("reason", ""))
    if cause is None or not len(index) or (ends and ends[-1]["reason"] == "ended_by_device"):
        return []
    last_ticks = int(index["device_ticks"][-1])
    closed_ns = int(ends[-1]["host_ns"]) if ends else int(stopped["host_ns"]) + AFTER_LAST_SIGN_NS
    later_ns = max(closed_ns - int(index["host_ns"][-1]), 0)
    # The device notices a closed connection only when it sends: one or two packets later.
    step = usual_step(np.diff(index["device_ticks"].astype(np.int64)))
    end_ticks = last_ticks + later_ns // 100 + (2 * int(step) if np.isfinite(step) else 0)
    return [{"start_ticks": last_ticks, "end_ticks": end_ticks, "cause": cause}]


def _named_losses(name: str, notes: list[Note], manifest: Manifest) -> list[tuple[int, int]]:
    noted = [note for note in notes if note["note"] in ("declared_loss", "queue_loss")]
    left = [loss for loss in manifest.get("declared_losses", []) if loss["stream"] == name]
    return [(int(loss["first_seq"]), int(loss["last_seq"])) for loss in [*noted, *left]]


def _check_rate(name: str, index: Any, manifest: Manifest, findings: Findings) -> None:
    nominal_hz = manifest["streams"][name].get("nominal_hz")
    if not nominal_hz or len(index) < 10 or name.rpartition("/")[2] in ADAPTIVE:
        return
    seconds = float(int(index["device_ticks"][-1]) - int(index["device_ticks"][0])) / 1e7
    rate_hz = (len(index) - 1) / seconds if seconds > 0 else 0.0
    if rate_hz < LOW_RATE * nominal_hz:
        findings.add(WARN, f"{name}: {rate_hz:.1f} packets/s, nominal are {nominal_hz:g}")


def _check_camera(
    recording: Path, device: str, findings: Findings, progress: Progress
) -> dict[str, dict[str, Any]]:
    folder = recording / device
    try:
        media = json.loads((folder / MEDIA).read_text(encoding="utf-8"))
        files = media["files"]
    except (OSError, ValueError, KeyError) as error:
        findings.add(FAIL, f"{device}/{MEDIA} cannot be read ({error})")
        return {}
    if not files:
        findings.add(FAIL, f"{device} was armed and has no file")
    streams = {}
    for entry in files:
        name = f"{device}/{entry['file']}"
        progress(name)
        path = folder / entry["file"]
        stored = path.stat().st_size if path.is_file() else 0
        digest = _hash(path) if path.is_file() else ""
        if stored != entry["bytes"]:
            findings.add(FAIL, f"{name}: {stored} of {entry['bytes']} bytes are here; fetch it again")
        elif digest != entry.get("sha256"):
            known = entry.get("blocks")
            places = damaged_stretches(path, known) if isinstance(known, dict) else []
            for place in places or ["file: its hash is not the one it was fetched with"]:
                findings.damage(name, name, place)
        streams[name] = {
            "received": entry["bytes"],
            "stored": stored,
            "duplicates": 0,
            "missing": [[stored, entry["bytes"] - 1]] if stored < entry["bytes"] else [],
            "gaps": [],
            "bytes": stored,
            "sha256": digest,
        }
    return streams


def _check_other_files(recording: Path, manifest: Manifest, findings: Findings) -> None:
    """Check clock probes, ledger and events: they are no sensor streams, and as precious."""
    sensors = set(manifest["streams"])
    for relative, facts in manifest["files"].items():
        stream = relative.rpartition("/")[0]
        if stream in sensors:
            continue
        path = recording / relative
        if not path.is_file():
            findings.add(FAIL, f"{relative} is missing: restore it from a copy")
        elif _hash(path) != facts["sha256"]:
            findings.damage(relative, stream, "file: its hash is not the one it was sealed with")
    for path in sorted((recording / "events").glob("*.jsonl")):
        try:
            for _ in read_lines(path):
                pass
        except BadEventLog as error:
            findings.damage(f"events/{path.name}", "events", str(error))


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def recordings_in(path: Path) -> list[Path]:
    """Return the recordings that a path stands for: itself, or those in the folder, in order of name."""
    if (path / MANIFEST).exists() or not path.is_dir():
        return [path]
    found = sorted(folder.parent for folder in path.glob(f"*/{MANIFEST}"))
    return found or [path]


def verify_all(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the answers for several recordings into one object `verify-all/1`."""
    return {
        "schema": "verify-all/1",
        "status": worst(result["status"] for result in results),
        "recordings": results,
    }
