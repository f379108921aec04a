"""JSON with its own checksum, which detects every flipped bit and is replaced when the object is changed.

The last key, `check`, is the SHA-256 of all bytes of the text, with its own 64 digits as zeros.
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
"""Limit of a file of lines that is read at once."""
_ZEROS = "0" * 64
_MARK = re.compile(rb'"check": "([0-9a-f]{64})"(?=\n?}\n)')


def checked_json(value: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Write an object as JSON with its checksum and a line end; an existing checksum is replaced."""
    plain = {key: content for key, content in value.items() if key != CHECK} | {CHECK: _ZEROS}
    text = json.dumps(plain, indent=indent, ensure_ascii=False).encode() + b"\n"
    place = text.rindex(_ZEROS.encode())
    return text[:place] + _digest(text) + text[place + len(_ZEROS) :]


def is_sound(text: bytes) -> bool | None:
    """Return whether a text is unchanged; None without a checksum."""
    # a quick test for millions of short lines
    marks = list(_MARK.finditer(text)) if len(text) > len(_ZEROS) else []
    if not marks:
        return None
    start, stop = marks[-1].span(1)
    return _digest(text[:start] + _ZEROS.encode() + text[stop:]) == text[start:stop]


def each_line(text: bytes) -> Iterator[bytes]:
    """Yield the complete lines of a text; a list of millions of empty lines would take forty times their size."""
    return (line for line in io.BytesIO(text) if line.endswith(b"\n"))


def checked_lines(text: bytes) -> Iterator[bytes]:
    """Yield the complete unchanged lines; they are found by their checksums, so that other lines cost no time."""
    for mark in _MARK.finditer(text):
        line = text[text.rfind(b"\n", 0, mark.start()) + 1 : text.index(b"\n", mark.end()) + 1]
        if is_sound(line):
            yield line


def torn_tail(text: bytes) -> bool | None:
    """Classify the text after the last line end: None for none, False for an incomplete line.

    True means a complete line with another byte in place of its line end.
    """
    tail = text.rpartition(b"\n")[2]
    if not tail:
        return None
    return bool(is_sound(tail[:-1] + b"\n"))


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def append_line(path: Path, value: Mapping[str, Any], rights: int = 0o600) -> None:
    """Append an object; an incomplete line before it counts as not written. Raises OSError."""
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
    """Yield the unchanged objects of a file, if it exists. Raises OSError."""
    if path.exists():
        yield from sound_lines(read_plain(path, MOST_LINES_BYTES))


def sound_lines(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield the unchanged objects of a text with one per line."""
    for line in checked_lines(text):
        with suppress(BadJson):
            yield parse_object(line)
