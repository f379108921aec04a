"""What a check finds, and what it is given to look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kitchensync.task_graphs.formats.annotations import Annotations

Tell = Callable[[str, int, int], None]
"""The film that is looked at, bytes of films done, bytes in all."""


@dataclass
class ReleaseFaults:
    """What differs (`file`, `where`, `want`, `got`), words found that must not leave, and known flaws of others."""

    differences: list[dict[str, Any]] = field(default_factory=list)
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
