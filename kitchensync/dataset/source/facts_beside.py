"""What `kitchensync.jsonl` says beside the published form, line by line: facts, of which some have a form here."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat

from kitchensync.shell.untrusted_json import parse_object


class _Facts(BaseModel):
    model_config = ConfigDict(strict=True)


class LackingFact(_Facts):
    """What a stream lacks, in words, and which entries that touches."""

    said: str
    entries: list[int]


class AlignedFilm(_Facts):
    """How far a film may be from its times; None where that is not known."""

    said: str = ""
    gyroscopes_within_ms: FiniteFloat | None
    pictures_within_ms: FiniteFloat | None


class FactLine(_Facts):
    """A line of a recording, an entry, a recipe or the participants; other keys are free."""

    kind: str
    recording_id: str = ""
    entry: int = -1
    lacking: list[LackingFact] = []
    alignment: list[AlignedFilm] = []
    hidden_s: list[tuple[FiniteFloat, FiniteFloat]] = []
    heating: list[str] = []
    skills: list[str] = []
    tools: list[str] = []
    age: dict[str, int] = {}
    cooks: dict[str, int] = {}
    gender: dict[str, int] = {}
    hand: dict[str, int] = {}


def parse_fact(line: str) -> dict[str, Any]:
    """Parse a line. Raises ValueError where it is none that `release` writes."""
    said = parse_object(line)
    FactLine.model_validate_json(line)
    if said["kind"] in ("recording", "entry") and "recording_id" not in said:
        raise ValueError("names no recording")
    return said
