"""One clue to where a film's telemetry lies on its pictures. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clue:
    """What one part of a file says, and whether that agrees with the others; None where it says nothing."""

    name: str
    says: str
    agrees: bool | None


def disagreements(clues: Iterable[Clue]) -> list[str]:
    """Return what the clues say that contradict the others."""
    return [clue.says for clue in clues if clue.agrees is False]
