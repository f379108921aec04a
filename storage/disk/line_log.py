"""A small file of our own that only grows: one checked JSON object a line, on the disk when `append_line` returns."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from storage.disk.durable import LOCAL
from storage.disk.self_check import checked_json, is_sound, whole_lines


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Append an object; what a kill left of the line before counts as not written. Raises OSError."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(handle).st_size
        torn = size and os.pread(handle, 1, size - 1) != b"\n"
        text = b"\n" * bool(torn) + checked_json(value)
        if os.write(handle, text) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(handle)
    finally:
        os.close(handle)
    LOCAL.sync_folder(path.parent)


def read_sound_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects that are as they were written; none where there is no file. Raises OSError."""
    if path.exists():
        for line in whole_lines(path.read_bytes()):
            if is_sound(line):
                yield json.loads(line)
