"""Parse large JSON of strings in a process of its own, with bounds on memory and time.

The child gets the file's name and writes a line of JSON to its output, what the strings are called and how long each
is in bytes, then the strings themselves: the parent need not parse what somebody else made up.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

MEMORY = 1 << 30
CPU_S = 30
REFUSED = 3
"""How the child ends on what it does not take."""
MOST_STRINGS = 500
MOST_NAMES = 1 << 17
"""Of the line of names, in bytes."""


class NotStrings(ValueError):
    """No JSON, not an object of strings and of objects of strings, or too much of it."""


def strings_in(path: Path) -> dict[str, Any]:
    """Return `{name: text or {name: text}}` of a JSON file. Raises NotStrings."""
    child = [sys.executable, "-m", "recipe_app.web.strings_apart", str(path)]
    with subprocess.Popen(child, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        named = process.stdout.readline(MOST_NAMES)
        content = process.stdout.read()
    if process.returncode in (REFUSED, -signal.SIGXCPU):
        raise NotStrings("no strings, or too much of them")
    if process.returncode != 0:
        raise OSError(f"the process that reads the upload ended with {process.returncode}")
    return _joined(json.loads(named), content)


def _joined(named: list[Any], content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = 0
    for group, name, length in named:
        if name is None:
            found[group] = {}
            continue
        text = content[at : at + length].decode("utf-8", "surrogatepass")
        at += length
        if group is None:
            found[name] = text
        else:
            found[group][name] = text
    return found


def _limit() -> None:
    import resource

    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, CPU_S)):
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):
            continue  # macOS bounds no address space; the time stays bounded


def _flat(document: dict[str, Any]) -> list[tuple[str | None, str | None, str]]:
    rows: list[tuple[str | None, str | None, str]] = []
    for name, value in document.items():
        if isinstance(value, dict):
            rows.append((name, None, ""))
            rows += [(name, one, text) for one, text in value.items()]
        else:
            rows.append((None, name, value))
    if len(rows) > MOST_STRINGS or not all(isinstance(text, str) for _, _, text in rows):
        raise NotStrings("something else than strings")
    return rows


def _tell(path: Path) -> None:
    rows = _flat(json.loads(path.read_bytes()))
    parts = [text.encode("utf-8", "surrogatepass") for _, _, text in rows]
    named = [(group, name, len(part)) for (group, name, _), part in zip(rows, parts, strict=True)]
    line = json.dumps(named).encode() + b"\n"
    if len(line) > MOST_NAMES:
        raise NotStrings("the names are too long")
    sys.stdout.buffer.write(line)
    for part in parts:
        sys.stdout.buffer.write(part)


if __name__ == "__main__":
    _limit()
    try:
        _tell(Path(sys.argv[1]))
    except (ValueError, AttributeError, RecursionError, MemoryError):
        sys.exit(REFUSED)
