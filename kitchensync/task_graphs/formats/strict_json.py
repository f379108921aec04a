"""JSON from people's files: parsed strictly, every complaint with the file and the place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from kitchensync.shell.untrusted_json import MOST_ITEMS, check_shape
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.model import END, START

MAX_NODES = 500
MAX_LABEL = 1_000

NODE_ID = re.compile(r"0|[1-9][0-9]{0,8}")
_HALF_LETTER = re.compile("[\ud800-\udfff]")
_LONG_PLACE = 120


def load(text: str, name: str) -> Any:
    """Parse a document; a key that stands twice in one object is refused. Raises BadGraph."""
    try:
        check_shape(text, MOST_ITEMS)
        found = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, name))
        refuse_half_letters(found, text, name)
        return found
    except RecursionError as error:
        raise BadGraph(name, "", "nested too deeply; this is no task graph") from error
    except ValueError as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadGraph(name, where, f"not JSON ({getattr(error, 'msg', error)})") from error


def refuse_half_letters(found: Any, text: str, name: str) -> None:
    """Refuse half of a surrogate pair, which JSON can say but no file and no database can hold. Raises BadGraph."""
    if re.search(r"\\u[dD][89a-fA-F]", text) and _HALF_LETTER.search(dump(found)):
        raise BadGraph(name, "", "has half a letter (a lone surrogate, \\ud800 to \\udfff); write it whole")


def _object(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadGraph(name, repr(key), "stands twice in one object; give every step its own id")
        found[key] = value
    return found


def dump(value: Any) -> str:
    """Write a value on one line, key order kept: the form in which foreign keys are carried along."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Reader:
    """Typed access to a parsed document; a wrong type is one line with the place."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fail(self, place: str, why: str) -> BadGraph:
        """Make the error of a place in this file."""
        return BadGraph(self.name, " ".join(place.split())[:_LONG_PLACE], why)

    def object(self, value: Any, place: str) -> dict[str, Any]:
        """Return an object, or complain."""
        if not isinstance(value, dict):
            raise self.fail(place, "not an object")
        return value

    def array(self, value: Any, place: str) -> list[Any]:
        """Return a list, or complain."""
        if not isinstance(value, list):
            raise self.fail(place, "not a list")
        return value

    def text(self, value: Any, place: str) -> str:
        """Return a text, or complain."""
        if not isinstance(value, str):
            raise self.fail(place, "not a text")
        return value

    def whole(self, value: Any, place: str) -> int:
        """Return a whole number from 0 to 999,999,999, or complain."""
        if type(value) is not int or not 0 <= value <= 999_999_999:
            raise self.fail(place, "not a whole number of at most nine digits")
        return value

    def label(self, value: Any, place: str) -> str:
        """Return the text of a step: there, and of readable length."""
        if not isinstance(value, str) or not value.strip():
            raise self.fail(place, "has no text")
        if len(value) > MAX_LABEL:
            raise self.fail(place, f"text longer than {MAX_LABEL} characters; split the step")
        return value

    def number_of_steps(self, count: int, place: str) -> None:
        """Refuse no steps at all, and more than a recipe can have."""
        if not 1 <= count <= MAX_NODES:
            raise self.fail(place, f"{count} steps; between 1 and {MAX_NODES} are possible")

    def one_start_and_end(self, labels: Iterable[tuple[str, str]]) -> None:
        """Refuse a second START or END among (place, label)."""
        seen: set[str] = set()
        for place, label in labels:
            if label in seen:
                raise self.fail(place, f"a second {label}; keep one")
            seen |= {label} & {START, END}

    def known_keys(self, value: dict[str, Any], known: set[str], place: str) -> None:
        """Refuse keys that would be lost."""
        if extra := sorted(set(value) - known):
            raise self.fail(place, f"unknown key {extra[0]!r}; known are {', '.join(sorted(known))}")
