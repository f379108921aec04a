"""The lines of a recipe in plain text, each recognised as what it is: none is left out."""

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
    """A filled line of a text; `number` counts from 1 over all lines, `text` is without bullet, number and `#`."""

    number: int
    kind: LineKind
    text: str


def read_lines(text: str, kinds: Sequence[LineKind] = ()) -> list[RecipeLine]:
    """Recognise every filled line of a text; `kinds`, one a filled line, is what a person says of them instead."""
    rows = re.split(r"\r\n|\r|\n", text)
    filled = [number for number, row in enumerate(rows, start=1) if row.strip()]
    found: list[RecipeLine] = []
    in_ingredients = False
    for number in filled:
        line = _recognised(number, rows, in_ingredients=in_ingredients)
        if line.kind == "heading":
            in_ingredients = bool(_INGREDIENTS.match(line.text))
        found.append(line)
    if found and _is_title(found, rows):
        found[0] = replace(found[0], kind="title")
    said = kinds if len(kinds) == len(found) else [line.kind for line in found]
    return [replace(line, kind=kind) for line, kind in zip(found, said, strict=True)]


def _recognised(number: int, rows: Sequence[str], *, in_ingredients: bool) -> RecipeLine:
    bare = rows[number - 1].strip().strip("#*= \t").strip() or rows[number - 1].strip()
    said = NUMBERED.sub("", bare).strip() or bare
    if not re.search(r"[^\W_]", said) or _NOTE.match(said):
        return RecipeLine(number, "note", said)
    if _YIELD.match(bare) and not _FOR.match(bare):
        return RecipeLine(number, "yield", bare)
    if _is_heading(bare, marked=rows[number - 1].lstrip().startswith("#")):
        return RecipeLine(number, "heading", bare)
    return RecipeLine(number, "ingredient" if in_ingredients else "step", said)


def _is_heading(said: str, *, marked: bool) -> bool:
    if marked or _INGREDIENTS.match(said) or _HEADING.match(said):
        return True
    return said.endswith((":", "：")) and len(said) <= _SHORT and not LEADING_VERB.match(said)


def _is_title(found: Sequence[RecipeLine], rows: Sequence[str]) -> bool:
    """Return whether the first line is the title: only where the lines say so, for a step is never given away."""
    first, rest = found[0], found[1:]
    raw = rows[first.number - 1].lstrip()
    if raw.startswith("#") and not (_INGREDIENTS.match(first.text) or _HEADING.match(first.text)):
        return bool(rest)
    if first.kind != "step" or not rest or NUMBERED.match(raw) or re.search(r"[.!?;,:]\s*$", raw):
        return False
    if len(first.text) > _SHORT:
        return False
    if rest[0].kind in ("yield", "heading"):
        return True
    doing = LEADING_VERB.match(first.text) or "," in first.text
    return not doing and (_is_apart(found) or _begins_a_list(rest[0], rows))


def _is_apart(found: Sequence[RecipeLine]) -> bool:
    """Return whether an empty line stands after the first and none after the second."""
    gaps = [after.number - before.number for before, after in itertools.pairwise(found)]
    return gaps[0] > 1 and gaps[1:] != [gaps[0]]


def _begins_a_list(second: RecipeLine, rows: Sequence[str]) -> bool:
    return bool(NUMBERED.match(rows[second.number - 1]) or LEADING_VERB.match(second.text))
