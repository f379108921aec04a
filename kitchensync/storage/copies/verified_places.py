"""Find the places of a file, each read past the page cache, to decide whether it may be erased elsewhere."""

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
    """Places with a complete file, and problems of other places."""

    found: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def verified_places(recording: Path, relative: str, sha256: str, roots: list[Path]) -> Places:
    """Read every copy of a recording's file: its own, those in `copies.jsonl`, and those below `roots`.

    Not counted are a store of another identity, a second path of the same file, and a file inside the recording,
    which may contain a store. Raises UnreadableFile if the copy log cannot be read.
    """
    places, own = Places(), recording / relative
    checked: set[tuple[int, int]] = set()
    for place in _candidates(recording, relative, sha256, roots, places.problems):
        try:
            if place != own and place.resolve().is_relative_to(recording.resolve()):
                places.problems.append(f"{place} lies in the recording itself")
                continue
            facts = place.stat()
            if (facts.st_dev, facts.st_ino) in checked:
                continue
            digest, _ = stored_sha256(place)
        except FileNotFoundError:
            continue
        except OSError as error:
            places.problems.append(f"{place}: {(error.strerror or str(error)).lower()}")
            continue
        if digest == sha256:
            checked.add((facts.st_dev, facts.st_ino))
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
