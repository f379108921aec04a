"""Parse large JSON of strings in a separate process, so that hostile input cannot harm the app."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kitchensync.shell import process_apart

BOUNDS = process_apart.Bounds(30.0, 1 << 30)
MOST_STRINGS = 500
MOST_NAMES = 1 << 17
"""Limit for all names together as JSON, bytes."""
REFUSED = "no strings, or too much of them"


class NotStrings(ValueError):
    """Not JSON, not an object of strings or of objects of strings, or too large."""


def strings_in(path: Path) -> dict[str, Any]:
    """Return `{name: text or {name: text}}` of a JSON file. Raises NotStrings; OSError if it cannot be read."""
    try:
        answer = process_apart.ask_once(f"{__name__}:tell_strings", BOUNDS, str(path.absolute()))
    except (process_apart.OutOfMemory, process_apart.OutOfTime) as error:
        raise NotStrings(REFUSED) from error
    except process_apart.ReaderFailed as error:
        raise OSError(f"the upload cannot be read: {error}") from error
    if answer.value is None:
        raise NotStrings(REFUSED)
    strings: dict[str, Any] = {}
    texts = iter(answer.blobs)
    for group, name in answer.value:
        if name is None:
            strings[group] = {}
            continue
        place = strings if group is None else strings[group]
        place[name] = next(texts).decode("utf-8", "surrogatepass")
    return strings


def tell_strings(path: str) -> process_apart.ChildAnswer:
    """Return the names as `[group, name]` and the texts as blobs, or None if the file is refused."""
    content = Path(path).read_bytes()
    rows: list[tuple[str | None, str | None, str]] = []
    try:
        for name, value in json.loads(content).items():
            if isinstance(value, dict):
                rows.append((name, None, ""))
                rows += [(name, key, text) for key, text in value.items()]
            else:
                rows.append((None, name, value))
    except (ValueError, AttributeError, RecursionError):
        return process_apart.ChildAnswer(None)
    names = [(group, name) for group, name, _ in rows]
    is_taken = len(rows) <= MOST_STRINGS and all(isinstance(text, str) for _, _, text in rows)
    if not is_taken or len(json.dumps(names)) > MOST_NAMES:
        return process_apart.ChildAnswer(None)
    return process_apart.ChildAnswer(
        names, [text.encode("utf-8", "surrogatepass") for _, name, text in rows if name is not None]
    )
