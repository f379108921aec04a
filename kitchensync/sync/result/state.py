"""The inputs of a finished synchronization, so that a run over many recordings can be continued."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from kitchensync.shell.files_on_disk import files_below
from kitchensync.shell.untrusted_json import load_json
from kitchensync.storage.copies.copy_log import freed_lines
from kitchensync.storage.errors import OutsideMap, UnsafeFile
from kitchensync.storage.manifest import write_json
from kitchensync.storage.names import COPIES, DERIVED, MANIFEST
from kitchensync.storage.recording_folder import check_folder
from kitchensync.storage.timeline.alignment import ALIGNED, CHECK, NOT_ALIGNED, Alignment
from kitchensync.sync.align.verdict import THRESHOLDS
from kitchensync.sync.answers import RecordingAnswer, software_version
from kitchensync.sync.recording.latency_store import store_of

STATE = Path("sync") / "state.json"
SCHEMA = "sync-state/1"
OWN = "sync"
STATUSES = (ALIGNED, CHECK, NOT_ALIGNED, "nothing_to_align")
LATER = ("annotations", "logs", "report.html", COPIES, DERIVED)


class KeptState(TypedDict):
    """The file: fingerprint of the inputs, answer, and names of all written files."""

    schema: str
    inputs: str
    answer: RecordingAnswer
    written: list[str]


def finished(recording: Path, master: str | None) -> RecordingAnswer | None:
    """Return the answer of an earlier run if still valid: same files, software and thresholds, and its tables."""
    state = _state(recording)
    try:
        if state is None or state.get("inputs") != fingerprint(recording, master):
            return None
    except OSError:
        return None  # a file was removed meanwhile by another process
    if any(not (recording / OWN / name).exists() for name in state["written"]):
        return None
    return state["answer"] | {"path": str(recording)}


def kept_answer(recording: Path) -> RecordingAnswer | None:
    """Return the answer of the last finished run, regardless of later changes, or None."""
    state = _state(recording)
    return state["answer"] | {"path": str(recording)} if state is not None else None


def _state(recording: Path) -> KeptState | None:
    try:
        check_folder(recording)  # it may not have been checked if the manifest is damaged
        state: KeptState = load_json(recording / STATE)
        if state["schema"] != SCHEMA:
            return None
        # An answer that is not ours may lack values that a page needs.
        answer, written = state["answer"], state["written"]
        for pair in answer["pairs"]:
            Alignment.from_object(pair)
        lists = [answer.get("reasons", []), answer.get("warnings", []), written]
        texts = [answer["recording"], *(text for part in lists for text in part)]
        are_lists = all(isinstance(part, list) for part in [*lists, answer["pairs"]])
        is_ours = answer["status"] in STATUSES and are_lists and all(isinstance(text, str) for text in texts)
        return state if is_ours else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OutsideMap, UnsafeFile):
        return None


def forget(recording: Path) -> None:
    """Invalidate the last answer because the data is damaged."""
    try:
        (recording / STATE).unlink(missing_ok=True)
    except OSError:
        return  # not a folder, or not writable, so the answer was not ours either


def remember(folder: Path, inputs: str, answer: RecordingAnswer) -> None:
    """Write the state beside the other files of a set, in `folder`; it lists them all.

    It has no absolute paths, so that equal recordings have equal files. `inputs` is the fingerprint from before the
    work. Raises OSError.
    """
    written = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    kept = {key: value for key, value in answer.items() if key != "path"}
    state = {"schema": SCHEMA, "inputs": inputs, "answer": kept, "written": written}
    write_json(folder / STATE.name, state)


def fingerprint(recording: Path, master: str | None) -> str:
    """Return a hash of the inputs: files by name and size, the manifest (with hashes), the software."""
    try:
        latencies = hashlib.sha256(store_of(recording).read_bytes()).hexdigest()
    except OSError:
        latencies = ""  # no latencies by `sync-camera`
    digest = hashlib.sha256()
    about = [software_version(), json.dumps(THRESHOLDS, sort_keys=True), str(master), latencies]
    for line in [*about, *_files(recording)]:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def _files(recording: Path) -> Iterator[str]:
    """Yield the files on which an answer may depend, without lists of copies and outputs of other commands."""
    below = ((path.relative_to(recording), path) for path in files_below(recording))
    sizes = {name: path.stat().st_size for name, path in below if name.parts[0] not in (OWN, *LATER)}
    sizes |= {Path(line.file): line.bytes for line in freed_lines(recording)}
    for relative in sorted(sizes):
        if relative.name == MANIFEST:
            yield hashlib.sha256((recording / relative).read_bytes()).hexdigest()
        yield f"{relative.as_posix()} {sizes[relative]}"
