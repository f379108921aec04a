"""Digest of an export's sources: a repeated export keeps files that are complete and would be the same."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, TypeVar

from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.storage.copies.derived import keeps, stamps_of
from kitchensync.storage.names import COPIES, DERIVED, LOGS, REVIEW
from kitchensync.storage.options.outputs import OutputRefused
from kitchensync.storage.recording_files.annotation_folder import FILMS, FOLDER, JUDGED, PUSHED

NOT_READ = (
    *(COPIES, DERIVED, f"{LOGS}/", f"{REVIEW}/", f"{FOLDER}/{FILMS}", f"{FOLDER}/{PUSHED}"),
    *(f"{FOLDER}/{kind}-" for kind in JUDGED if kind != "errors"),
)
"""Prefixes of paths in a recording that no export contains."""


class ExportedRecording(TypedDict):
    """What every export states of a recording."""

    recording: str
    left_out: dict[str, str]
    "Stream: why it is not exported."
    was_there: NotRequired[Literal[True]]
    "An earlier export with the same sources is kept."


Stored = TypeVar("Stored", bound=ExportedRecording)


class MadeOfOther(OutputRefused):
    """An existing export has other sources: it is not overwritten, and not the requested one."""

    def __init__(self, path: Path) -> None:
        why = "exists and is not overwritten: it was made from another recording, or with other options or version"
        super().__init__(path, why, "choose another folder, or give --force")


def source_digest(recording: OpenedRecording, *options: object) -> str:
    """Return the SHA-256 of our version, the options, and path, size and time of each file of a recording."""
    stamps = stamps_of(recording.stored.path).items()
    sources = [stamp for stamp in stamps if not stamp[0].startswith(NOT_READ)]
    return hashlib.sha256(repr((version("kitchensync"), options, sources)).encode()).hexdigest()


def keep_existing(answer: Stored | None, path: Path, *, exists: bool) -> Stored | None:
    """Keep an existing export with the same sources and return its answer, or None if there is no export.

    `answer` is the answer that the existing export has stored, None if its sources are others. Raises MadeOfOther.
    """
    if answer is not None:
        keeps(path)
        answer["was_there"] = True
        return answer
    if exists:
        raise MadeOfOther(path)
    return None
