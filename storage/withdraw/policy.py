"""What becomes of data whose person withdrew."""

from __future__ import annotations

from enum import StrEnum


class Policy(StrEnum):
    """Destroyed, or put aside where only the owner of the files can look."""

    DESTROY = "destroy"
    QUARANTINE = "quarantine"
