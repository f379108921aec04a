"""Find the recordings below a folder, and make a line about each for `kitchensync list`.

No chunk is opened: a line comes from the manifest, the stored answers, and file sizes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, TypedDict

from kitchensync.shell.files_on_disk import is_left_by_system
from kitchensync.storage.consent import Purpose, why_not
from kitchensync.storage.copies.store_states import store_states
from kitchensync.storage.errors import CopyUnfinished, StorageError, words_of
from kitchensync.storage.life import Life, life_of, usable_manifest, why_aborted
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.names import PART_OF, is_recording
from kitchensync.storage.privacy import span_of
from kitchensync.storage.reading.alignments import alignment_files, read_alignment
from kitchensync.storage.recording_files.annotation_folder import ACCEPTED, FOLDER
from kitchensync.storage.timeline.utc_times import moment_utc_ns
from kitchensync.storage.verify import FAIL, PASS, WARN, kept_verdict
from kitchensync.storage.verify.by_life import RecordingVerification

HIDDEN = (".", "_")
"""Prefixes of our own folders beside the recordings."""
FolderEntry = os.DirEntry[str]
WORST_FIRST = ("unreadable", "not_aligned", "check", "aligned")


class RecordingLine(TypedDict, total=False):
    """A recording in `list/1`; of a withdrawn recording only the first three keys."""

    recording: str
    path: str
    "From the listed folder."
    life: str | None
    "None: it is no recording."
    problem: str
    "What is wrong with a damaged recording, or why it cannot be read."
    uuid: str | None
    part_of: str | None
    recipe: str | None
    order: Any
    strategy: str | None
    display: str | None
    person: str | None
    place: str | None
    consent: str | None
    consented: bool
    releasable: bool
    aborted: str | None
    started: str | None
    "UTC, ISO 8601."
    seconds: float | None
    verdict: str | None
    alignment: str | None
    "The worst status of its alignments."
    annotated: bool
    stores: list[dict[str, str]]
    "`place`, `state` and `why` of each store."
    bytes: int
    site: str
    "Of the lab; absent without a lab file."


def recordings_below(root: Path) -> Iterator[Path]:
    """Yield the recordings in a folder, at any depth, in order of path; links to folders are not followed.

    Folders with a lost `recording.json` and unreadable folders are included, so that they are reported. Raises
    OSError if the root cannot be read.
    """
    if is_recording(root):
        yield root
    else:
        yield from _among(folders_in(root))


def _among(folders: list[FolderEntry]) -> Iterator[Path]:
    for entry in sorted(folders, key=lambda entry_: entry_.name):
        path = Path(entry.path)
        try:
            inside = None if is_recording(path) else folders_in(path)
        except OSError:
            inside = None
        if inside is None:
            yield path
        else:
            yield from _among(inside)


def folders_in(folder: Path | str) -> list[FolderEntry]:
    """Return the subfolders that are not our own, unordered. Raises OSError."""
    with os.scandir(folder) as entries:
        return [
            entry for entry in entries if entry.name[0] not in HIDDEN and entry.is_dir(follow_symlinks=False)
        ]


def line_of(recording: Path, root: Path) -> RecordingLine:
    """Return the line of a recording, without opening its streams; of a withdrawn recording only its life."""
    where = recording.name if recording == root else str(recording.relative_to(root))
    line: RecordingLine = {"recording": recording.name, "path": where, "life": None}
    try:
        os.scandir(recording).close()
        line["life"] = str(life_of(recording))
        if line["life"] == Life.WITHDRAWN:
            return line
        manifest = usable_manifest(recording)
        start_s, end_s = span_of(manifest)
        verdict: RecordingVerification = kept_verdict(recording) or {}
        statuses = {read_alignment(path).status for path in alignment_files(recording)}
        line |= _of_manifest(manifest)
        if (session_s := verdict.get("session_s")) is not None:
            line["seconds"] = session_s
        line |= {
            "verdict": verdict.get("status"),
            "alignment": next((status for status in WORST_FIRST if status in statuses), None),
            "annotated": (recording / FOLDER / ACCEPTED).is_file(),
            "stores": [asdict(store) for store in store_states(recording)],
            "bytes": sum(_sizes(recording)),
        }
        if isfinite(end_s - start_s):  # a part with both ends given
            line["seconds"] = end_s - start_s
        is_releasable = line["releasable"] and line["verdict"] in (PASS, WARN) and not line["aborted"]
        return line | {"releasable": is_releasable}
    except CopyUnfinished as error:
        return line | {"problem": words_of(error)}
    except StorageError as error:
        return line | {"problem": words_of(error), "verdict": FAIL} | {"bytes": sum(_sizes(recording))}
    except OSError as error:  # a fault of the computer, not of the recording
        return line | {"problem": words_of(error)}


def _of_manifest(manifest: Manifest) -> RecordingLine:
    started, stopped = manifest.get("started") or {}, manifest.get("stopped") or {}
    begin, end = started.get("host_ns"), stopped.get("host_ns")
    recipe, script = manifest.get("recipe"), manifest.get("script")
    script = script if isinstance(script, dict) else {}
    return {
        "uuid": manifest.get("uuid"),
        "part_of": manifest[PART_OF].get("recording") if PART_OF in manifest else None,
        "recipe": recipe.get("name") if isinstance(recipe, dict) else recipe,
        "order": recipe.get("order") if isinstance(recipe, dict) else None,
        "strategy": script.get("strategy"),
        "display": script.get("display"),
        "person": manifest.get("pseudonym"),
        "place": manifest.get("place"),
        "consent": manifest.get("consent", "none"),
        "consented": not why_not(manifest, Purpose.ANNOTATE),
        "releasable": not why_not(manifest, Purpose.RELEASE_RAW),
        "aborted": why_aborted(manifest),
        "started": utc_words(moment_utc_ns(manifest)),
        "seconds": (end - begin) / 1e9 if isinstance(begin, int) and isinstance(end, int) else None,
    }


def utc_words(utc_ns: int | None) -> str | None:
    """Return a time in UTC, to the second, as ISO 8601."""
    if not isinstance(utc_ns, int):
        return None
    return datetime.fromtimestamp(utc_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sizes(folder: Path) -> Iterator[int]:
    with os.scandir(folder) as entries:
        here = [entry for entry in entries if not is_left_by_system(entry.name)]
    for entry in here:
        if entry.is_dir(follow_symlinks=False):
            yield from _sizes(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):  # a running recorder renames and removes files
                yield entry.stat(follow_symlinks=False).st_size
