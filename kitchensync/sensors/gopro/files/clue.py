"""A clue to the position of a video's telemetry relative to its frames. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clue:
    """The statement of one part of a file, and whether it agrees with the others; None if it states nothing."""

    name: str
    says: str
    agrees: bool | None


def disagreements(clues: Iterable[Clue]) -> list[str]:
    """Return the statements of the clues that contradict the others."""
    return [clue.says for clue in clues if clue.agrees is False]
