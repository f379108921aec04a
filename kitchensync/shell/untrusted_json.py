"""Parse untrusted JSON of devices, files and processes, with limits on size, depth and numbers."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

from kitchensync.shell.files_on_disk import read_plain

MOST_BYTES = 16 << 20
MOST_DEPTH = 64  # the parser recurses, and Python's limit of 1000 counts the callers too
MOST_ITEMS = 1_000_000
"""Values in lists and objects; each takes up to a hundred bytes of memory."""
MOST_DIGITS = 25
"""Digits of an integer, more than any clock in any unit needs."""
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""A string; an unclosed one extends to the end, so that matching stays linear."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NO_BRACKET = re.compile(r"[^\[\]{}]+")


class BadJson(ValueError):
    """Text that is not JSON or exceeds a limit; the message fits on one line."""


def parse_json(content: bytes | str, *, most_bytes: int = MOST_BYTES, most_items: int = MOST_ITEMS) -> Any:
    """Parse a UTF-8 document with finite numbers. Raises BadJson."""
    if len(content) > most_bytes:
        raise BadJson(f"{len(content)} bytes, at most {most_bytes} are read")
    try:
        text = content if isinstance(content, str) else content.decode()
        check_shape(text, most_items)
        document = json.loads(text, parse_constant=_no_number, parse_float=_finite, parse_int=_bounded)
        if _SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode()  # raises for a lone surrogate
        return document
    except UnicodeEncodeError as error:
        raise BadJson("has half a character (a lone surrogate, \\ud800 to \\udfff); complete it") from error
    except RecursionError as error:
        raise BadJson("nested too deeply") from error
    except ValueError as error:
        raise BadJson(f"no JSON ({error})") from error


def load_json(path: Path) -> Any:
    """Parse a regular file, not a link. Raises BadJson; OSError, NotPlainFile if it cannot be read."""
    return parse_json(read_plain(path, MOST_BYTES))


def parse_object(
    content: bytes | str, *, most_bytes: int = MOST_BYTES, most_items: int = MOST_ITEMS
) -> dict[str, Any]:
    """Parse a document that is an object. Raises BadJson."""
    document = parse_json(content, most_bytes=most_bytes, most_items=most_items)
    if not isinstance(document, dict):
        raise BadJson("no JSON object")
    return document


def check_shape(text: str, most_items: int) -> None:
    """Check the number of values and the depth before parsing. Raises BadJson."""
    brackets = text.count("[") + text.count("{")
    # Most texts have too few brackets and commas to exceed a limit: skip the slow scan.
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
    raise BadJson(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadJson(f"{text[:MOST_DIGITS]} is too large for a number")
    return number


def _bounded(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise BadJson(f"a number of {len(text)} digits")
    return int(text)
