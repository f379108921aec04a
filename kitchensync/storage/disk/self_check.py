"""JSON that carries its own checksum: one flipped bit anywhere in it is found, and it may be changed again later.

The last key, `check`, is the SHA-256 of all bytes of the text, its own 64 digits counted as zeros.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kitchensync.shell.files_on_disk import read_plain
from kitchensync.shell.untrusted_json import BadJson, parse_object
from kitchensync.storage.disk.durable import LOCAL

CHECK = "check"
MOST_LINES_BYTES = 32 << 20
"""Of a file of lines that is read whole."""
_ZEROS = "0" * 64
_MARK = re.compile(rb'"check": "([0-9a-f]{64})"(?=\n?}\n)')


def checked_json(value: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Write an object as JSON with its checksum and a line end; a checksum that it brings along is replaced."""
    plain = {key: content for key, content in value.items() if key != CHECK} | {CHECK: _ZEROS}
    text = json.dumps(plain, indent=indent, ensure_ascii=False).encode() + b"\n"
    place = text.rindex(_ZEROS.encode())
    return text[:place] + _digest(text) + text[place + len(_ZEROS) :]


def is_sound(text: bytes) -> bool | None:
    """Return whether a text is, to the bit, what was written; None where it carries no checksum."""
    # millions of short lines are told apart quickly
    marks = list(_MARK.finditer(text)) if len(text) > len(_ZEROS) else []
    if not marks:
        return None
    start, stop = marks[-1].span(1)
    return _digest(text[:start] + _ZEROS.encode() + text[stop:]) == text[start:stop]


def each_line(text: bytes) -> Iterator[bytes]:
    """Yield the whole lines of a text; a list of millions of empty ones would take forty times their size."""
    return (line for line in io.BytesIO(text) if line.endswith(b"\n"))


def checked_lines(text: bytes) -> Iterator[bytes]:
    """Yield the whole lines that are as they were written; found by their checksums, so other lines cost nothing."""
    for mark in _MARK.finditer(text):
        line = text[text.rfind(b"\n", 0, mark.start()) + 1 : text.index(b"\n", mark.end()) + 1]
        if is_sound(line):
            yield line


def torn_tail(text: bytes) -> bool | None:
    """Tell of what comes after the last line end: None for nothing, False for a line that was never finished.

    True means that a finished line has lost its end: something else stands in that place.
    """
    tail = text.rpartition(b"\n")[2]
    if not tail:
        return None
    return bool(is_sound(tail[:-1] + b"\n"))


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def append_line(path: Path, value: Mapping[str, Any], rights: int = 0o600) -> None:
    """Append an object; what a kill left of the line before counts as not written. Raises OSError."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, rights)
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
        yield from sound_lines(read_plain(path, MOST_LINES_BYTES))


def sound_lines(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of a text, one a line, that are as they were written."""
    for line in checked_lines(text):
        with suppress(BadJson):
            yield parse_object(line)
