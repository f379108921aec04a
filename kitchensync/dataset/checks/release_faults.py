"""The data set under check, and the faults that checks report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from kitchensync.task_graphs.formats.annotations import Annotations

_BLOCK = 1 << 22
Tell = Callable[[str, int, int], None]
"""Progress: current video, bytes of videos done, bytes in total."""


class Difference(TypedDict):
    """A fault: file, place in the file, expected content, and actual content."""

    file: str
    where: str
    want: object
    got: object


class PrivateWord(TypedDict):
    """A file that holds a private word."""

    file: str
    found: str


@dataclass
class ReleaseFaults:
    """Differences, files with private words (`names`), and warnings about known flaws of published sets."""

    differences: list[Difference] = field(default_factory=list)
    names: list[PrivateWord] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def differs(self, file: str, where: str, want: object, got: object) -> None:
        """Add a difference."""
        self.differences.append({"file": file, "where": where, "want": want, "got": got})


@dataclass(frozen=True)
class DataSetUnderCheck:
    """A data set under check: SHA256SUMS, texts by path, annotations, and the faults of all checks.

    `is_imported` returns whether a file is unchanged from a published set: a known flaw in it is only a warning.
    """

    folder: Path
    sums: dict[str, str]
    texts: dict[str, str]
    annotations: Annotations
    is_own: bool
    is_imported: Callable[[str], bool]
    faults: ReleaseFaults
    tell: Tell

    def flaw(self, file: str, where: str, want: object, got: object) -> None:
        """Add a known flaw of published sets: a warning in an imported file, else a difference."""
        if self.is_imported(file):
            self.faults.warnings.append(f"{file} {where}: {got} instead of {want}")
        else:
            self.faults.differs(file, where, want, got)

    @property
    def ids(self) -> list[str]:
        """Published ids of all recordings."""
        return [recording.recording_id for recording in self.annotations.recordings]


def overlapping_blocks(path: Path, overlap: int) -> Iterator[bytes]:
    """Yield a file in blocks, each with the last bytes of the one before it."""
    kept = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield kept + block
            kept = block[-overlap:]
