"""JSON from somebody who may mean harm, a device, a file, another process: bounded in size, depth and numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from kitchensync.shell.files_on_disk import read_plain

MOST_BYTES = 16 << 20
MOST_DEPTH = 64
MOST_ITEMS = 1_000_000
"""Of values in lists and objects: each takes up to a hundred bytes of memory."""
MOST_DIGITS = 25
"""Of a number: more than any clock in any unit has."""
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""To the end where it is not closed: else each quote in it would be looked at anew."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NO_BRACKET = re.compile(r"[^\[\]{}]+")


class BadJson(ValueError):
    """Text that is no JSON, or more of it than anybody needs; in words for one line."""


Hook = Callable[[list[tuple[str, Any]]], Any]
"""Makes what an object's pairs become."""


def parse_json(
    content: bytes | str,
    *,
    most_bytes: int = MOST_BYTES,
    most_items: int = MOST_ITEMS,
    pairs: Hook | None = None,
) -> Any:
    """Parse a document in UTF-8 whose numbers are finite. Raises BadJson."""
    if len(content) > most_bytes:
        raise BadJson(f"{len(content)} bytes, at most {most_bytes} are taken")
    try:
        text = content if isinstance(content, str) else content.decode()
        check_shape(text, most_items)
        numbers: Any = {"parse_constant": _no_number, "parse_float": _finite, "parse_int": _bounded}
        found = json.loads(text, object_pairs_hook=pairs, **numbers)
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()  # half a character can never be written or shown
        return found
    except UnicodeEncodeError as error:
        raise BadJson("has half a character (a lone surrogate, \\ud800 to \\udfff); complete it") from error
    except RecursionError as error:
        raise BadJson("nested too deeply") from error
    except ValueError as error:
        raise BadJson(f"no JSON ({error})") from error


def load_json(path: Path, *, most_bytes: int = MOST_BYTES, most_items: int = MOST_ITEMS) -> Any:
    """Parse a file of its own, no link. Raises BadJson; OSError, NotPlainFile where it cannot be read."""
    return parse_json(read_plain(path, most_bytes), most_bytes=most_bytes, most_items=most_items)


def parse_object(
    content: bytes | str, *, most_bytes: int = MOST_BYTES, most_items: int = MOST_ITEMS
) -> dict[str, Any]:
    """Parse a document that is one object. Raises BadJson."""
    found = parse_json(content, most_bytes=most_bytes, most_items=most_items)
    if not isinstance(found, dict):
        raise BadJson("no JSON object")
    return found


def check_shape(text: str, most_items: int) -> None:
    """Count values and depth before anything is made of them; most texts hold too few to be looked at.

    Raises BadJson.
    """
    brackets = text.count("[") + text.count("{")
    if brackets <= MOST_DEPTH and brackets + text.count(",") <= most_items:
        return
    bare = _STRING.sub("", text)
    if bare.count(",") + bare.count("[") + bare.count("{") > most_items:
        raise BadJson(f"more than {most_items} values")
    depth = 0
    for bracket in _NO_BRACKET.sub("", bare):
        depth += 1 if bracket in "[{" else -1
        if depth > MOST_DEPTH:
            raise BadJson("nested too deeply")


def _no_number(text: str) -> NoReturn:
    raise BadJson(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadJson(f"{text[:MOST_DIGITS]} is beyond all numbers")
    return number


def _bounded(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise BadJson(f"a number of {len(text)} digits")
    return int(text)
