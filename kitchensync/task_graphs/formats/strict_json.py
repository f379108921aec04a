"""Strict parsing of JSON from users' files; errors name the file and the place."""

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
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LONG_PLACE = 120


def load(text: str, name: str) -> Any:
    """Parse a document without duplicate keys. Raises BadGraph."""
    try:
        check_shape(text, MOST_ITEMS)
        document = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, name))
        refuse_lone_surrogates(document, text, name)
        return document
    except RecursionError as error:
        raise BadGraph(name, "", "nested too deeply; this is not a task graph") from error
    except ValueError as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadGraph(name, where, f"not JSON ({getattr(error, 'msg', error)})") from error


def refuse_lone_surrogates(document: Any, text: str, name: str) -> None:
    """Refuse lone surrogates, which JSON can escape but neither UTF-8 nor databases can store. Raises BadGraph."""
    if re.search(r"\\u[dD][89a-fA-F]", text) and _LONE_SURROGATE.search(dump(document)):
        raise BadGraph(name, "", "has half a character (a lone surrogate, \\ud800 to \\udfff); complete it")


def _object(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise BadGraph(name, repr(key), "appears twice in one object; give every step its own id")
        values[key] = value
    return values


def dump(value: Any) -> str:
    """Write a value on one line with its key order, as `extra` stores data of other formats."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Reader:
    """Typed access to a parsed document; its methods raise BadGraph with the place."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fail(self, place: str, why: str) -> BadGraph:
        """Return the error for a place in this file."""
        return BadGraph(self.name, " ".join(place.split())[:_LONG_PLACE], why)

    def object(self, value: Any, place: str) -> dict[str, Any]:
        """Return a value that must be an object."""
        if not isinstance(value, dict):
            raise self.fail(place, "not an object")
        return value

    def array(self, value: Any, place: str) -> list[Any]:
        """Return a value that must be a list."""
        if not isinstance(value, list):
            raise self.fail(place, "not a list")
        return value

    def text(self, value: Any, place: str) -> str:
        """Return a value that must be a string."""
        if not isinstance(value, str):
            raise self.fail(place, "not a text")
        return value

    def whole(self, value: Any, place: str) -> int:
        """Return a value that must be a whole number from 0 to 999,999,999."""
        if type(value) is not int or not 0 <= value <= 999_999_999:
            raise self.fail(place, "not a whole number of at most nine digits")
        return value

    def label(self, value: Any, place: str) -> str:
        """Return the text of a step, which must not be empty or too long."""
        if not isinstance(value, str) or not value.strip():
            raise self.fail(place, "has no text")
        if len(value) > MAX_LABEL:
            raise self.fail(place, f"text longer than {MAX_LABEL} characters; split the step")
        return value

    def number_of_steps(self, count: int, place: str) -> None:
        """Check the number of steps, which must be 1 to `MAX_NODES`."""
        if not 1 <= count <= MAX_NODES:
            raise self.fail(place, f"{count} steps; it must have 1 to {MAX_NODES}")

    def one_start_and_end(self, labels: Iterable[tuple[str, str]]) -> None:
        """Check that (place, label) have at most one START and one END."""
        terminals: set[str] = set()
        for place, label in labels:
            if label in terminals:
                raise self.fail(place, f"a second {label}; keep one")
            terminals |= {label} & {START, END}

    def known_keys(self, value: dict[str, Any], known: set[str], place: str) -> None:
        """Check that an object has only known keys: others would be lost."""
        if extra := sorted(set(value) - known):
            raise self.fail(place, f"unknown key {extra[0]!r}; known are {', '.join(sorted(known))}")
