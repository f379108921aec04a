"""What every export of one recording shares: opened for giving away, and the span that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.storage.consent import Purpose
from kitchensync.storage.errors import StorageError


class NoSuchSpan(StorageError):
    """A span that is not in the recording."""


@dataclass(frozen=True)
class ExportedSpan:
    """Session seconds, the end not included; infinite ends take everything."""

    start: float = float("-inf")
    end: float = float("inf")

    @property
    def said(self) -> list[float | None]:
        """The ends as JSON has them, None where nothing is cut off."""
        return [None if abs(one) == float("inf") else one for one in (self.start, self.end)]


def opened_to_give(path: Path) -> OpenedRecording:
    """Open a recording whose participant agreed to `release_raw`. Raises NotARecording, Withdrawn, NotPermitted."""
    return OpenedRecording(path, purpose=Purpose.RELEASE_RAW)


def span_of(
    recording: OpenedRecording, start: float | None, end: float | None, step: int | None
) -> ExportedSpan:
    """Return what --from, --to and --step ask for; a step that was done twice reaches over both.

    Raises NoSuchSpan.
    """
    if step is not None and (start is not None or end is not None):
        raise NoSuchSpan("give --step, or --from and --to")
    if step is None:
        found = ExportedSpan(float("-inf") if start is None else start, float("inf") if end is None else end)
    else:
        rows = [row for row in recording.step_rows if row["done"] and row["node"] == step]
        if not rows:
            raise NoSuchSpan(
                f"{recording.id}: no step {step} was done; `rec.steps` lists them by their `node`"
            )
        found = ExportedSpan(min(row["start"] for row in rows), max(row["end"] for row in rows))
    if found.start >= found.end:
        raise NoSuchSpan(f"{recording.id}: from {found.start:g} s to {found.end:g} s is nothing")
    return found


def span_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare --from, --to and --step."""
    for option in (
        click.option(
            "--step", type=click.IntRange(1), metavar="N", help="Only the span of step N of the recipe."
        ),
        click.option("--to", "end", type=float, metavar="S", help="Only up to this session second."),
        click.option("--from", "start", type=float, metavar="S", help="Only from this session second on."),
    ):
        command = option(command)
    return command
