"""In how many different places a file lies right now, each read past the page cache: what may be erased elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kitchensync.storage.copies.copy_log import COPIED, COPY_LOG, read_copies
from kitchensync.storage.copies.target import Target
from kitchensync.storage.disk.read_back import stored_sha256
from kitchensync.storage.errors import TargetAway, UnreadableFile


@dataclass
class Places:
    """Where a file was found whole, and what was in the way elsewhere."""

    found: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def verified_places(recording: Path, relative: str, sha256: str, roots: list[Path]) -> Places:
    """Read every copy of a recording's file now: its own, those that `copies.jsonl` names, and those below `roots`.

    A store whose identity is another than when the copy was made does not count, nor does the same file found by two
    ways, nor one inside the recording, which may bring a store along. Raises UnreadableFile when the copy log cannot
    be read.
    """
    places, own = Places(), recording / relative
    seen: set[tuple[int, int]] = set()
    for place in _candidates(recording, relative, sha256, roots, places.problems):
        try:
            if place != own and place.resolve().is_relative_to(recording.resolve()):
                places.problems.append(f"{place} lies in the recording itself")
                continue
            facts = place.stat()
            if (facts.st_dev, facts.st_ino) in seen:
                continue
            digest, _ = stored_sha256(place)
        except FileNotFoundError:
            continue
        except OSError as error:
            places.problems.append(f"{place}: {(error.strerror or str(error)).lower()}")
            continue
        if digest == sha256:
            seen.add((facts.st_dev, facts.st_ino))
            places.found.append(place)
        else:
            places.problems.append(f"{place} holds other bytes")
    return places


def _candidates(
    recording: Path, relative: str, sha256: str, roots: list[Path], problems: list[str]
) -> Iterator[Path]:
    yield recording / relative
    try:
        lines = read_copies(recording)
    except (OSError, ValueError, TypeError) as error:
        raise UnreadableFile(recording / COPY_LOG, str(error)) from error
    for identity, where in {
        line.target: Path(line.where)
        for line in lines
        if (line.kind, line.file, line.sha256) == (COPIED, relative, sha256)
    }.items():
        try:
            yield Target(where, identity).place_of(recording, relative)
        except TargetAway as error:
            problems.append(str(error))
    for root in roots:
        if not root.is_dir():
            problems.append(f"{root}: there is no such folder (is the store mounted?)")
        yield root / recording.name / relative
