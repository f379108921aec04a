"""What a run of `sync` says when something stands in its way: asked for first, or of the computer."""

from __future__ import annotations

from storage.errors import Unusable, words_of
from sync.errors import BadLatencyStore, NoSuchMaster

REFUSALS = (Unusable, NoSuchMaster, BadLatencyStore)
"""What asks for something to be done first, and was noticed before any data was judged."""


def said_by_computer(error: Exception) -> str:
    """Say in words what a disk or memory said, and what to do."""
    if isinstance(error, MemoryError):
        return "not enough memory; run it with fewer --workers"
    return words_of(error)
