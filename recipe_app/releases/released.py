"""What came of a release, recording by recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Released:
    """What came of it, recording by recording."""

    members: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    not_agreed: list[str] = field(default_factory=list)
    "Recordings that were released without consent."
    no_splits: dict[str, str] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0
