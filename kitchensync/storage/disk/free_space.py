"""Room on the disk: what visitors send never takes what recordings need."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from kitchensync.shell.files_on_disk import NO_INODES, lacks_inodes

KEPT_FREE = 2 << 30
"""Bytes that uploads and voice notes leave free on the disk that is being recorded to: ten minutes of a rig."""


def require_room(folder: Path, more: int, *, kept: int = KEPT_FREE) -> None:
    """Refuse what would leave less than `kept` bytes on the folder's disk. Raises OSError."""
    if lacks_inodes(folder):
        raise OSError(errno.ENOSPC, NO_INODES, str(folder))
    if shutil.disk_usage(folder).free - more < kept:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
