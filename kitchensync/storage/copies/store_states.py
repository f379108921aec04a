"""State of the copies of a recording in each store: at the end of the recording, and by later copies."""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kitchensync.shell.files_on_disk import read_plain
from kitchensync.storage.copies.copy_log import COPIED, read_copies
from kitchensync.storage.errors import NotPermitted, PlaceTaken, TargetAway, Withdrawn
from kitchensync.storage.manifest import write_json
from kitchensync.storage.names import MANIFEST, STORES

_MOST_BYTES = 1 << 20
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_AWAY = (errno.ENOENT, errno.ESTALE, errno.ENODEV, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT)


class StoreState(StrEnum):
    """State of the copy of a recording in a store."""

    COPIED = "copied"
    UNFINISHED = "unfinished"
    "Files are missing, or the store is full."
    AWAY = "away"
    "The store is missing or not mounted."
    REFUSED = "refused"
    "The store is read-only or has another recording of that name, or the recording may not be copied."


@dataclass(frozen=True)
class StoreReport:
    """The state of one store."""

    place: str
    state: StoreState
    why: str = ""

    @property
    def words(self) -> str:
        """One line about it."""
        return f"copy in {self.place}: {self.state}" + (f": {self.why}" if self.why else "")


_REPORTS = TypeAdapter(list[StoreReport])


def state_by(error: Exception) -> StoreState:
    """Return the state of a store after an error."""
    cause = error.__cause__ if isinstance(error, TargetAway) and error.__cause__ is not None else error
    number = cause.errno if isinstance(cause, OSError) else None
    if number in _REFUSED or isinstance(cause, PlaceTaken | NotPermitted | Withdrawn):
        return StoreState.REFUSED
    if number in _AWAY or isinstance(cause, TargetAway):
        return StoreState.AWAY
    return StoreState.UNFINISHED


def keep_store_states(recording: Path, states: list[StoreReport]) -> None:
    """Save the states of the stores at the end of a recording. Raises OSError."""
    write_json(recording / STORES, [asdict(state) for state in states])


def store_states(recording: Path) -> list[StoreReport]:
    """Return the state of each store, `copied` if its manifest is up to date. Raises UnreadableFile, OSError."""
    reports: dict[str, StoreReport] = {}
    with suppress(FileNotFoundError, ValidationError):  # if it is damaged the copy log is used
        kept = _REPORTS.validate_json(read_plain(recording / STORES, _MOST_BYTES))
        reports = {report.place: report for report in kept}
    lines = read_copies(recording)
    complete = {line.where: line for line in lines if (line.kind, line.file) == (COPIED, MANIFEST)}
    for place in dict.fromkeys(line.where for line in lines):
        line = complete.get(place)
        facts = (recording / MANIFEST).stat() if line else None
        if line and facts and (line.bytes, line.mtime_ns) == (facts.st_size, facts.st_mtime_ns):
            reports[place] = StoreReport(place, StoreState.COPIED)
        elif line or place not in reports:
            why = "changed since, or not all of it was copied: run `kitchensync move` again"
            reports[place] = StoreReport(place, StoreState.UNFINISHED, why)
    return list(reports.values())
