"""What every answer of `sync` needs; it is light, so that a run over many recordings starts at once."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypedDict

import numpy as np


class RecordingAnswer(TypedDict, total=False):
    """The answer of `sync` for one recording: its entry in `sync/1`."""

    recording: str
    status: str
    path: str
    reasons: list[str]
    warnings: list[str]
    pairs: list[dict[str, Any]]  # the alignments, as their files have them
    master: str | None
    index: dict[str, Any] | None  # what is worth knowing of the tables
    events: EventCounts
    checked: bool
    error: str
    failed: bool


class EventCounts(TypedDict):
    """How many events were noted, and how many have a place in the pictures."""

    events: int
    placed: int


class SyncAnswer(TypedDict):
    """The object `sync/1`."""

    schema: str
    recordings: list[RecordingAnswer]


def software_version() -> str:
    """Version of this software, as installed."""
    try:
        return version("kitchensync")
    except PackageNotFoundError:
        return "unknown"


def plain(value: Any) -> Any:
    """Make a value JSON-able: numpy scalars become Python's, and what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
