"""What a check finds, and what it is given to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from kitchensync.task_graphs.formats.annotations import Annotations

_BLOCK = 1 << 22
Tell = Callable[[str, int, int], None]
"""The film that is looked at, bytes of films done, bytes in all."""


class Difference(TypedDict):
    """What is not as it must be: where in which file, what is wanted, and what is there."""

    file: str
    where: str
    want: object
    got: object


@dataclass
class ReleaseFaults:
    """What differs (`file`, `where`, `want`, `got`), words found that must not leave, and known flaws of others."""

    differences: list[Difference] = field(default_factory=list)
    names: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def differs(self, file: str, where: str, want: object, got: object) -> None:
        """Note one difference."""
        self.differences.append({"file": file, "where": where, "want": want, "got": got})


@dataclass(frozen=True)
class DataSetUnderCheck:
    """A data set under check: SHA256SUMS, its texts by path, its annotations, and where findings go.

    `is_taken_over` tells of a file whether it came unchanged from a published set: a known flaw in it is a warning.
    """

    folder: Path
    sums: dict[str, str]
    texts: dict[str, str]
    annotations: Annotations
    is_own: bool
    is_taken_over: Callable[[str], bool]
    found: ReleaseFaults
    tell: Tell

    def flaw(self, file: str, where: str, want: object, got: object) -> None:
        """Note a flaw that published sets are known for."""
        if self.is_taken_over(file):
            self.found.warnings.append(f"{file} {where}: {got} instead of {want}")
        else:
            self.found.differs(file, where, want, got)

    @property
    def ids(self) -> list[str]:
        """Published ids of all recordings."""
        return [one.recording_id for one in self.annotations.recordings]


def overlapping_blocks(path: Path, overlap: int) -> Iterator[bytes]:
    """Yield a file in blocks, each with the last bytes of the one before it."""
    kept = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield kept + block
            kept = block[-overlap:]
