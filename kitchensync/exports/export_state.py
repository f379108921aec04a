"""Of what an export was made: one that is given again leaves alone what is whole and would be the same."""

from __future__ import annotations

import hashlib
from importlib.metadata import version

from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.storage.copies.derived import stamps_of
from kitchensync.storage.names import COPIES, DERIVED, LOGS

NOT_READ = (COPIES, DERIVED, LOGS)
"""What lies in a recording and is in no export: it changes while one is made."""


def made_of(recording: OpenedRecording, *options: object) -> str:
    """Return the SHA-256 of our version, the options and each file of a recording: its path, bytes and time."""
    files = stamps_of(recording.stored.path).items()
    read = [one for one in files if one[0].partition("/")[0] not in NOT_READ]
    return hashlib.sha256(repr((version("kitchensync"), options, read)).encode()).hexdigest()
