"""The lines of a recipe in plain text, each with its kind; none is dropped."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from kitchensync.task_graphs.text.actions import LEADING_VERB

LineKind = Literal["title", "yield", "heading", "ingredient", "step", "note"]
LINE_KINDS: tuple[LineKind, ...] = get_args(LineKind)

NUMBERED = re.compile(r"^\s*(?:(?:step\s*)?\d+\s*[.):]\s+|[-*•]\s+)", re.IGNORECASE)
_INGREDIENTS = re.compile(r"(?:ingredients?|zutaten|المكونات|المقادير)\s*:?\s*$", re.IGNORECASE)
_HEADING = re.compile(
    r"(?:directions?|instructions?|method|preparation|steps|anleitung|zubereitung|"
    r"الطريقة|طريقة التحضير|التحضير|الخطوات)\s*:?\s*$",
    re.IGNORECASE,
)
_YIELD = re.compile(
    r"(?:serves|makes|yields?|servings?|portions?|ergibt|portionen|reicht|für|for|تكفي|يكفي|الحصص|لـ)\b"
    r"(?=.*\b(?:\d|one|two|three|four|six|eight|ten|twelve|dozen))[^.!;]{0,60}$",
    re.IGNORECASE,
)
_FOR = re.compile(r"(?:for|für)\b(?!.*\b(?:people|persons?|servings?|personen|portionen)\b)", re.IGNORECASE)
_NOTE = re.compile(
    r"(?:notes?|tips?|source|(?:prep|cook|total|preparation|cooking)(?:aration)? time|hinweise?|tipps?|quelle|"
    r"ملاحظة|ملاحظات|نصيحة)\s*:|https?://",
    re.IGNORECASE,
)
_SHORT = 60


@dataclass(frozen=True, slots=True)
class RecipeLine:
    """A non-empty line; `number` counts all lines from 1, `text` is without bullet, number and `#`."""

    number: int
    kind: LineKind
    text: str


def read_lines(text: str, kinds: Sequence[LineKind] = ()) -> list[RecipeLine]:
    """Return the non-empty lines of a text with their kinds.

    `kinds`, if it has one for each of these lines, replaces the recognised kinds: a person has corrected them.
    """
    rows = re.split(r"\r\n|\r|\n", text)
    lines: list[RecipeLine] = []
    in_ingredients = False
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        line = _recognised(number, row, in_ingredients=in_ingredients)
        if line.kind == "heading":
            in_ingredients = bool(_INGREDIENTS.match(line.text))
        lines.append(line)
    if lines and _is_title(lines, rows):
        lines[0] = replace(lines[0], kind="title")
    if len(kinds) == len(lines):
        lines = [replace(line, kind=kind) for line, kind in zip(lines, kinds, strict=True)]
    return lines


def _recognised(number: int, row: str, *, in_ingredients: bool) -> RecipeLine:
    bare = row.strip().strip("#*= \t").strip() or row.strip()
    text = NUMBERED.sub("", bare).strip() or bare
    if not re.search(r"[^\W_]", text) or _NOTE.match(text):
        return RecipeLine(number, "note", text)
    if _YIELD.match(bare) and not _FOR.match(bare):
        return RecipeLine(number, "yield", bare)
    is_marked = row.lstrip().startswith("#") or _INGREDIENTS.match(bare) or _HEADING.match(bare)
    is_short = bare.endswith((":", "：")) and len(bare) <= _SHORT and not LEADING_VERB.match(bare)
    if is_marked or is_short:
        return RecipeLine(number, "heading", bare)
    return RecipeLine(number, "ingredient" if in_ingredients else "step", text)


def _is_title(lines: Sequence[RecipeLine], rows: Sequence[str]) -> bool:
    """Return whether the first line is the title; in doubt it is not, since a step must not be lost."""
    first, rest = lines[0], lines[1:]
    raw = rows[first.number - 1].lstrip()
    if raw.startswith("#") and not (_INGREDIENTS.match(first.text) or _HEADING.match(first.text)):
        return bool(rest)
    if first.kind != "step" or not rest or NUMBERED.match(raw) or re.search(r"[.!?;,:]\s*$", raw):
        return False
    if len(first.text) > _SHORT:
        return False
    if rest[0].kind in ("yield", "heading"):
        return True
    if LEADING_VERB.match(first.text) or "," in first.text:
        return False
    # An empty line after it, unless all lines are separated like that; or the next line begins a list of steps.
    gaps = [after.number - before.number for before, after in itertools.pairwise(lines)]
    is_separate = gaps[0] > 1 and gaps[1:] != [gaps[0]]
    return is_separate or bool(NUMBERED.match(rows[rest[0].number - 1]) or LEADING_VERB.match(rest[0].text))
