"""JSON from somebody who may mean harm, a device, a file, another process: bounded in size, depth and numbers."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MOST_BYTES = 16 << 20
MOST_DEPTH = 64
MOST_DIGITS = 25
"""Of a number: more than any clock in any unit has."""
_MARK = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]')


class BadJson(ValueError):
    """Text that is no JSON, or more of it than anybody needs; in words for one line."""


def parse_json(content: bytes | str, *, most_bytes: int = MOST_BYTES) -> Any:
    """Parse a document in UTF-8 whose numbers are finite. Raises BadJson."""
    if len(content) > most_bytes:
        raise BadJson(f"{len(content)} bytes, at most {most_bytes} are taken")
    try:
        text = content if isinstance(content, str) else content.decode()
        _check_depth(text)
        return json.loads(text, parse_constant=_no_number, parse_float=_finite, parse_int=_bounded)
    except RecursionError as error:
        raise BadJson("nested too deeply") from error
    except ValueError as error:
        raise BadJson(f"no JSON ({error})") from error


def parse_object(content: bytes | str, *, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Parse a document that is one object. Raises BadJson."""
    found = parse_json(content, most_bytes=most_bytes)
    if not isinstance(found, dict):
        raise BadJson("no JSON object")
    return found


def _check_depth(text: str) -> None:
    depth = 0
    if text.count("[") + text.count("{") <= MOST_DEPTH:
        return
    for mark in _MARK.finditer(text):
        first = mark[0][0]
        depth += (first in "[{") - (first in "]}")
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
