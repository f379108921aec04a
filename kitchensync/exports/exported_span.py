"""What all exports of recordings share: opened for giving away one by one, the span and the streams asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from kitchensync.exports.export_state import MadeOfOther
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.sensors.errors import SensorError
from kitchensync.storage.consent import Purpose
from kitchensync.storage.copies.derived import of_one
from kitchensync.storage.errors import StorageError, UnknownStream, pass_on_trouble
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.outputs import OutputRefused

Made = TypeVar("Made")
Progress = Callable[[float, float, str], None]
"""Told how much of how much is done, and of what."""
NO_TABLE = "no table holds those"
NOTHING_HERE = "it holds nothing"
NOT_DECLARED = "packets of which nobody declared a record: they cannot be taken apart here"
FARTHEST_S = 1e9
"""Half a lifetime: what is farther is no session second."""


class NoSuchSpan(StorageError):
    """A span that is not in the recording."""


class NoEpisodes(StorageError):
    """Recordings of which no episode can be made."""


class SameName(StorageError):
    """Recordings that would be written over each other."""


@dataclass(frozen=True)
class ExportedSpan:
    """Session seconds, the end not included; infinite ends take everything."""

    start: float = float("-inf")
    end: float = float("inf")

    @property
    def said(self) -> list[float | None]:
        """The ends as JSON has them, None where nothing is cut off."""
        return [None if abs(one) == float("inf") else one for one in (self.start, self.end)]

    def holds(self, seconds: float) -> bool:
        """Return whether a time lies in it; a span without ends holds what has no time, too."""
        return self == ExportedSpan() or self.start <= seconds < self.end

    def check_inside(self, recording: OpenedRecording) -> None:
        """Check a span of which nothing was found. Raises NoSuchSpan where it lies outside of the recording."""
        last = recording.duration
        if self.start > last or self.end <= 0:
            raise NoSuchSpan(f"{recording.id}: nothing lies there; session seconds go from 0 to {last:.1f}")


@dataclass(frozen=True)
class ExportChoice:
    """What the options of an export say: of each recording which span, and which streams; all where none is named."""

    start: float | None = None
    end: float | None = None
    step: int | None = None
    streams: tuple[str, ...] = ()

    def span(self, recording: OpenedRecording) -> ExportedSpan:
        """Return the span of a recording; a step that was done twice reaches over both. Raises NoSuchSpan."""
        if not all(abs(one) <= FARTHEST_S for one in (self.start, self.end) if one is not None):
            raise NoSuchSpan(f"--from and --to are session seconds, at most {FARTHEST_S:g}")
        if self.step is not None and (self.start is not None or self.end is not None):
            raise NoSuchSpan("give --step, or --from and --to")
        if self.step is None:
            start = float("-inf") if self.start is None else self.start
            found = ExportedSpan(start, float("inf") if self.end is None else self.end)
        else:
            rows = [row for row in recording.step_rows if row["done"] and row["node"] == self.step]
            if not rows:
                raise NoSuchSpan(
                    f"{recording.id}: no step {self.step} was done; `rec.steps` lists them by their `node`"
                )
            found = ExportedSpan(min(row["start"] for row in rows), max(row["end"] for row in rows))
        if found.start >= found.end:
            raise NoSuchSpan(f"{recording.id}: from {found.start:g} s to {found.end:g} s is nothing")
        return found

    def names(self, recording: OpenedRecording) -> list[str]:
        """Return the streams and bodies that are wanted, by full name. Raises UnknownStream."""
        known = recording.streams + recording.bodies
        short = [name.rpartition("/")[2] for name in known]
        if unknown := [one for one in self.streams if one not in (*known, *short)]:
            raise UnknownStream(unknown[0], known)
        wanted = set(self.streams)
        return [name for name, last in zip(known, short, strict=True) if not wanted or wanted & {name, last}]


def opened_to_give(path: Path) -> OpenedRecording:
    """Open a recording whose participant agreed to `release_raw`. Raises NotARecording, Withdrawn, NotPermitted."""
    return OpenedRecording(path, purpose=Purpose.RELEASE_RAW)


def recordings_of(paths: Iterable[Path]) -> list[Path]:
    """Return the recordings that paths stand for, each once. Raises SameName where two have one name."""
    every = list(dict.fromkeys(one.resolve() for path in paths for one in recordings_in(path)))
    for name, count in Counter(path.name for path in every).items():
        if count > 1:
            where = ", ".join(str(path) for path in every if path.name == name)
            raise SameName(
                f"{count} recordings are called {name} ({where}); export them into folders of their own"
            )
    return every


def export_status(made: list[dict[str, Any]], without: dict[str, str]) -> str:
    """Return WARN where something is lacking that the form could hold, else PASS."""
    reasons = [why for one in made for why in one["left_out"].values()]
    is_whole = all(why.endswith(NO_TABLE) or why.startswith(NOTHING_HERE) for why in reasons)
    return "PASS" if is_whole and not without else "WARN"


def left_out_lines(made: list[dict[str, Any]], without: dict[str, str]) -> list[str]:
    """Return a line for what is left out of each recording, and for each recording that is left out."""
    lines = [
        f"{one['recording']} {name} left out: {why}" for one in made for name, why in one["left_out"].items()
    ]
    return lines + [f"{name} left out: {why}" for name, why in without.items()]


def each_recording(
    paths: tuple[Path, ...], make: Callable[[OpenedRecording], Made]
) -> tuple[list[Made], dict[str, str]]:
    """Make something of every recording that paths stand for; return it, and why others are left out, by name.

    All are asked for consent before anything is made. What was made of something else is left as it is. What is
    refused of a single one, or of all, is raised.
    """
    every = recordings_of(paths)
    refused: dict[Path, Exception] = {}
    for path in every:
        try:
            opened_to_give(path).close()
        except StorageError as error:
            refused[path] = error
    made = []
    for path in every:
        if path in refused:
            continue
        try:
            with opened_to_give(path) as recording, of_one(path):
                made.append(make(recording))
        except MadeOfOther as error:
            refused[path] = error
        except OutputRefused:
            raise
        except (StorageError, SensorError, Refused) as error:
            pass_on_trouble(error)
            refused[path] = error
    if not made:
        raise next(iter(refused.values()))
    return made, {path.name: str(error) for path, error in refused.items()}


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


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare --from, --to, --step and --streams."""
    streams = click.option("--streams", metavar="A,B,...", help="Only these streams, by full or last name.")
    return span_options(streams(command))


def choice_of(
    start: float | None, end: float | None, step: int | None, streams: str | None = None
) -> ExportChoice:
    """Return what the options say."""
    return ExportChoice(
        start, end, step, tuple(one.strip() for one in (streams or "").split(",") if one.strip())
    )
