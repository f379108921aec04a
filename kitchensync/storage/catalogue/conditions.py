"""Parse the conditions of `kitchensync list --where` to SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kitchensync.storage.errors import BadCondition

WORDS = (
    *("site", "path", "recording", "uuid", "part_of", "life", "recipe", "strategy", "display"),
    *("person", "place", "consent", "started", "verdict", "alignment", "problem"),
)
NUMBERS = ("seconds", "bytes")
TRUTHS = ("annotated", "consented", "releasable")
COLUMNS = (*WORDS, *NUMBERS, *TRUTHS)
TRUTH = {"yes": True, "no": False}
_CONDITION = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>|~)\s*(.*?)\s*", re.DOTALL)
_MEANT = {"=": "IS", "!=": "IS NOT"}


def condition(text: str) -> tuple[str, list[Any]]:
    """Return a condition as SQL with values; an empty value means not known, `~` contains. Raises BadCondition."""
    match = _CONDITION.fullmatch(text)
    if match is None or match[1] not in COLUMNS:
        raise BadCondition(text, f"KEY is one of {', '.join(COLUMNS)}, OP one of = != < <= > >= ~")
    key, sign, value = match.groups()
    if not value and sign in _MEANT:
        return f"{key} {_MEANT[sign]} NULL", []
    if sign == "~":
        return f"instr(lower({key}), lower(?)) > 0", [value]
    if key in TRUTHS and value not in TRUTH:
        raise BadCondition(text, f"{key} is yes or no")
    try:
        meant = TRUTH[value] if key in TRUTHS else value if key in WORDS else float(value)
    except ValueError:
        raise BadCondition(text, f"{key} is a number") from None
    return f"{key} {_MEANT.get(sign, sign)} ?", [meant]


def all_of(texts: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the conjunction of conditions as SQL with values. Raises BadCondition."""
    conditions = [condition(text) for text in texts]
    values = [value for _, of_condition in conditions for value in of_condition]
    return " AND ".join(["1", *(sql for sql, _ in conditions)]), values
