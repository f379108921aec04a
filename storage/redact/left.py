"""What privacy pauses still hold: raw copies for others are refused until it is destroyed."""

from __future__ import annotations

from pathlib import Path

from storage.errors import HoldsPauses
from storage.names import MANIFEST
from storage.privacy import pauses_of
from storage.recording import open_recording
from storage.redact.to_destroy import plan


def check_no_pauses(recording: Path) -> None:
    """Raise HoldsPauses while a recording holds pictures or sound of its privacy pauses; StorageError."""
    if pauses_of(recording):
        with open_recording(recording) as opened:
            found = plan(opened, opened.pauses, whole_films=True)
        if found["streams"] or found["films"]:
            raise HoldsPauses(recording)


def check_no_pauses_in(file: Path) -> None:
    """Raise HoldsPauses where a film of a recording shows one of its privacy pauses; other files hold none."""
    recording = file.resolve().parent.parent
    if (recording / MANIFEST).is_file() and pauses_of(recording):
        with open_recording(recording) as opened:
            found = plan(opened, opened.pauses, whole_films=True)
        if f"{file.resolve().parent.name}/{file.name}" in found["films"]:
            raise HoldsPauses(recording)
