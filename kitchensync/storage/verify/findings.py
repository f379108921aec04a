"""What is wrong with a recording: a status that only gets worse, reasons in words, damage by place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
_ORDER = [PASS, WARN, FAIL]
WHOLE = "file"
"""Block name of a small file with only one block."""


@dataclass
class Findings:
    """What is wrong so far."""

    status: str = PASS
    reasons: list[str] = field(default_factory=list)
    corrupt: list[dict[str, Any]] = field(default_factory=list)
    trouble: dict[str, str] = field(default_factory=dict)
    "The worst status of each stream, camera or file that a reason begins with."
    notes: list[str] = field(default_factory=list)
    "What is worth knowing and changes nothing."

    def add(self, status: str, reason: str) -> None:
        """Note a reason; the status only ever gets worse."""
        self.status = worst([self.status, status])
        subject = reason.split(maxsplit=1)[0].rstrip(":")
        self.trouble[subject] = worst([self.trouble.get(subject, PASS), status])
        if reason not in self.reasons:
            self.reasons.append(reason)

    def note(self, text: str) -> None:
        """Note what harms nothing."""
        if text not in self.notes:
            self.notes.append(text)

    def damage(self, file: str, stream: str, block: str) -> None:
        """Note damage at a place."""
        self.corrupt.append({"file": file, "stream": stream, "block": block})
        self.add(FAIL, f"{file} is damaged ({block}): restore it from a copy")


def worst(statuses: Iterable[str]) -> str:
    """Return the worst of some statuses, PASS when there are none."""
    return max(statuses, key=_ORDER.index, default=PASS)
