"""Shared parts of all exports: options for span and streams, and the loop over recordings with consent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from kitchensync.exports.export_state import ExportedRecording, MadeOfOther
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
"""Called with the amount that is done, the whole amount and the name of the current item."""
NO_TABLE = "tables cannot hold this stream"
NOTHING_HERE = "it is empty"
NOT_DECLARED = "its packets cannot be decoded: the sensor declares no record"
FARTHEST_S = 1e9
"""Largest session time that is accepted, seconds: about thirty years."""


class NoSuchSpan(StorageError):
    """The span is not in the recording."""


class NoEpisodes(StorageError):
    """No episode can be made from the recordings."""


class SameName(StorageError):
    """Recordings have the same name and would overwrite each other."""


@dataclass(frozen=True)
class ExportedSpan:
    """Session seconds [start, end); infinite by default."""

    start: float = float("-inf")
    end: float = float("inf")

    @property
    def as_json(self) -> list[float | None]:
        """The ends, None for an infinite one."""
        return [None if abs(end) == float("inf") else end for end in (self.start, self.end)]

    def contains(self, seconds: float) -> bool:
        """Return whether a time is in the span; the infinite span also contains NaN, an unknown time."""
        return self == ExportedSpan() or self.start <= seconds < self.end

    def check_inside(self, recording: OpenedRecording) -> None:
        """Check that an empty span is not outside of the recording. Raises NoSuchSpan."""
        last = recording.duration
        if self.start > last or self.end <= 0:
            raise NoSuchSpan(f"{recording.id}: the span is empty; session seconds go from 0 to {last:.1f}")


@dataclass(frozen=True)
class ExportChoice:
    """Options of an export: the span of each recording and the streams; by default all."""

    start: float | None = None
    end: float | None = None
    step: int | None = None
    streams: tuple[str, ...] = ()

    def span(self, recording: OpenedRecording) -> ExportedSpan:
        """Return the span of a recording; that of a step covers all times it was done. Raises NoSuchSpan."""
        if not all(abs(end) <= FARTHEST_S for end in (self.start, self.end) if end is not None):
            raise NoSuchSpan(f"--from and --to are session seconds, at most {FARTHEST_S:g}")
        if self.step is not None and (self.start is not None or self.end is not None):
            raise NoSuchSpan("give --step, or --from and --to")
        if self.step is None:
            start = float("-inf") if self.start is None else self.start
            span = ExportedSpan(start, float("inf") if self.end is None else self.end)
        else:
            rows = [row for row in recording.step_rows if row["done"] and row["node"] == self.step]
            if not rows:
                raise NoSuchSpan(
                    f"{recording.id}: step {self.step} was not done; `rec.steps` lists steps by their `node`"
                )
            span = ExportedSpan(min(row["start"] for row in rows), max(row["end"] for row in rows))
        if span.start >= span.end:
            raise NoSuchSpan(f"{recording.id}: {span.start:g} s to {span.end:g} s is an empty span")
        return span

    def names(self, recording: OpenedRecording) -> list[str]:
        """Return the full names of the chosen streams and body streams. Raises UnknownStream."""
        available = recording.streams + recording.bodies
        short_names = [name.rpartition("/")[2] for name in available]
        if unknown := [name for name in self.streams if name not in (*available, *short_names)]:
            raise UnknownStream(unknown[0], available)
        chosen = set(self.streams)
        return [
            name
            for name, short in zip(available, short_names, strict=True)
            if not chosen or chosen & {name, short}
        ]


def opened_to_give(path: Path) -> OpenedRecording:
    """Open a recording with consent for `release_raw`. Raises NotARecording, Withdrawn, NotPermitted."""
    return OpenedRecording(path, purpose=Purpose.RELEASE_RAW)


def recordings_of(paths: Iterable[Path]) -> list[Path]:
    """Return the recordings at paths or in folders of them, each once. Raises SameName."""
    folders = [folder.resolve() for path in paths for folder in recordings_in(path)]
    recordings = list(dict.fromkeys(folders))
    for name, count in Counter(path.name for path in recordings).items():
        if count > 1:
            where = ", ".join(str(path) for path in recordings if path.name == name)
            raise SameName(
                f"{count} recordings are called {name} ({where}); export them into separate folders"
            )
    return recordings


def export_status(made: Sequence[ExportedRecording], without: dict[str, str]) -> str:
    """Return WARN if data is missing that the format could have held, else PASS."""
    reasons = [why for export in made for why in export["left_out"].values()]
    is_complete = all(why == NO_TABLE or why.startswith(NOTHING_HERE) for why in reasons)
    return "PASS" if is_complete and not without else "WARN"


def left_out_lines(made: Sequence[ExportedRecording], without: dict[str, str]) -> list[str]:
    """Return a line for each stream that was left out, and for each recording that was left out."""
    lines = [
        f"{export['recording']} {name} left out: {why}"
        for export in made
        for name, why in export["left_out"].items()
    ]
    return lines + [f"{name} left out: {why}" for name, why in without.items()]


def each_recording(
    paths: tuple[Path, ...], make: Callable[[OpenedRecording], Made]
) -> tuple[list[Made], dict[str, str]]:
    """Export every recording with `make`; return the results, and the reasons why others are left out, by name.

    The consent of all recordings is checked before anything is written. An existing export with other sources is
    kept. Raises the first error if no recording can be exported.
    """
    recordings = recordings_of(paths)
    refused: dict[Path, Exception] = {}
    for path in recordings:
        try:
            opened_to_give(path).close()
        except StorageError as error:
            refused[path] = error
    made = []
    for path in recordings:
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
    """Return the options as an `ExportChoice`; `streams` is a list with commas."""
    names = tuple(name.strip() for name in (streams or "").split(",") if name.strip())
    return ExportChoice(start, end, step, names)
