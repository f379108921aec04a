"""Room that is kept aside on the disk, so that on a full one what is in hand can still be sealed and closed."""

from __future__ import annotations

import os
from pathlib import Path

RESERVE = "reserve"
RESERVE_BYTES = 48 << 20
"""Enough for the packets in hand and the ledger."""


def set_aside(path: Path, size: int) -> None:
    """Take room on the disk now, to have it back by removing the file when there is none."""
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
    )  # a private file, like all beside it
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)
