"""What the installation's list says commands wrote of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kitchensync.storage.copies.derived_files import by_place
from kitchensync.storage.installation.own_list import own_list, uuid_of


def read_derived(recording: Path) -> list[dict[str, Any]]:
    """Return what was written of a recording since its last withdrawal, each place once."""
    return by_place(own_list(recording).outside(uuid_of(recording)).derived)
