"""Of what an export was made: one that is given again leaves alone what is whole and would be the same."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.storage.copies.derived import keeps, stamps_of
from kitchensync.storage.names import COPIES, DERIVED, LOGS, REVIEW
from kitchensync.storage.options.outputs import OutputRefused
from kitchensync.storage.recording_files.annotation_folder import FILMS, FOLDER, JUDGED, PUSHED

NOT_READ = (
    *(COPIES, DERIVED, f"{LOGS}/", f"{REVIEW}/", f"{FOLDER}/{FILMS}", f"{FOLDER}/{PUSHED}"),
    *(f"{FOLDER}/{kind}-" for kind in JUDGED if kind != "errors"),
)
"""How the paths begin of what lies in a recording and is in no export."""


class MadeOfOther(OutputRefused):
    """What lies there was made of something else: it is not written over, and not what is asked for."""

    def __init__(self, path: Path) -> None:
        why = "exists and is not written over: recording, options or version were others when it was made"
        super().__init__(path, why, "choose another folder, or give --force")


def made_of(recording: OpenedRecording, *options: object) -> str:
    """Return the SHA-256 of our version, the options and each file of a recording: its path, bytes and time."""
    files = stamps_of(recording.stored.path).items()
    read = [one for one in files if not one[0].startswith(NOT_READ)]
    return hashlib.sha256(repr((version("kitchensync"), options, read)).encode()).hexdigest()


def left_in_place(told: dict[str, Any] | None, *places: Path, is_there: bool) -> dict[str, Any] | None:
    """Keep what lies at places if it was made of the same, which is what is `told` of it; return that then.

    Raises MadeOfOther where nothing is told and yet something `is_there`.
    """
    if told is None:
        if is_there:
            raise MadeOfOther(places[0])
        return None
    for place in places:
        keeps(place)
    return told | {"was_there": True}
