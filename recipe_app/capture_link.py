"""What the app needs of whoever runs the devices. `capture` implements it; the command line joins the two."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from recipe_app.errors import RecipeError

Health = Literal["recording", "starting", "stopped", "problem", "unknown"]

FRESH_NS = 3_000_000_000
"""Health older than this is no health: the tablet shows `unknown`."""


class CannotStart(RecipeError):
    """Capture refuses to begin; the text says why."""


@dataclass(frozen=True)
class Report:
    """How a recording is: one word, reasons in words, and when that was known (capture clock)."""

    health: Health
    host_ns: int
    reasons: list[str] = field(default_factory=list)


class Capture(Protocol):
    """Starts, stops and watches recordings."""

    def start(self, recording: str, *, participant: str, consent: str, place: str) -> None:
        """Return once every expected stream delivers. Raises CannotStart with the reasons, and nothing is left."""

    def stop(self, recording: str) -> None:
        """End a recording; what had arrived is kept. Raises RecipeError when it does not run."""

    def abort(self, recording: str, *, reason: str) -> None:
        """End a recording that shall not be used; it is kept and marked. Raises RecipeError."""

    def report(self, recording: str) -> Report:
        """Say how a recording is, newest first-hand knowledge; never waits for a device."""
