"""Numbers as recipes write them: read as exact fractions, written again in the same manner.

What may mean two things is no number: `1.500` is a thousand and a half in one language and one and a half in another.
The tablet reads durations alike: `kitchensync/recipe_app/static/core/durations.js`.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_FRACTIONS = {one: Fraction(unicodedata.numeric(one)).limit_denominator(10) for one in VULGAR}

_WORD = "|".join(WORDS)
_MEASURE = r"\s++(?:cup|tsp|tbsp|teaspoon|tablespoon|lit(?:re|er)|kg|kilo|ounce|pound|stick|pinch|hour|minute|second)"
"""What half a thing must be, to be an amount: one cuts in half a potato, too."""


def _number(after: str) -> str:
    return (
        rf"(?:(?<!\d)(?<!\d[.,/⁄])(?<![{VULGAR}])(?>\d++\s++and\s++a\s++half\b"
        rf"|\d++\s*+[{VULGAR}]|\d++(?:\s++|-)\d++[/⁄]\d++|\d++[/⁄]\d++|[{VULGAR}]|\d++(?:[.,]\d++)*+|(?<!\w)\.\d++)"
        rf"(?![\d{VULGAR}])(?![.,/⁄]\d)"
        rf"|\b(?:(?:half|(?:(?:a\s++)?quarter|three\s++quarters)\s++of)\s++an?{after}"
        rf"|(?:{_WORD})(?:\s++and\s++a\s++half)?)\b)"
    )


NUMBER = _number(f"(?={_MEASURE})")
"""It begins where its digits do: a text of a hundred thousand digits is looked at once, not from each of them."""
AMOUNT = rf"{NUMBER}(?:\s*+(?:[-–—−]|to|bis)\s*+{NUMBER})?"
"""White space is taken whole: thousands of empty lines behind a number are read once, not from each of them."""

_END = re.compile(_number(""), re.IGNORECASE)
_MIXED = re.compile(r"(\d+)[\s-]+(\d+/\d+)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+")
_UNCLEAR = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+|.*[.,].*[.,].*")


def value_of(number: str) -> Fraction | None:
    """Return a number as an exact fraction: `1 1/2`, `1½`, `1⁄8`, `1.5`, `0,25`, `1,000`, `two`, `half a`,
    `three quarters of an`.

    None where it may mean two things, or nothing.
    """
    said = number.lower().replace("⁄", "/")
    if said.endswith("half") and said != "half":
        whole = said.split()[0]
        return Fraction(WORDS.get(whole) or int(whole)) + Fraction(1, 2)
    if said.startswith("half"):
        return Fraction(1, 2)
    if "quarter" in said:
        return Fraction(3 if said.startswith("three") else 1, 4)
    if said in WORDS:
        return Fraction(WORDS[said])
    if said[-1] in _FRACTIONS:
        return Fraction(said[:-1].strip() or 0) + _FRACTIONS[said[-1]]
    if "/" in said:
        mixed = _MIXED.fullmatch(said)
        above, _, below = (mixed[2] if mixed else said).partition("/")
        return Fraction(int(above), int(below)) + int(mixed[1] if mixed else 0) if int(below) else None
    if is_thousands(said):
        return Fraction(said.replace(",", ""))
    return None if _UNCLEAR.fullmatch(said) else Fraction(said.replace(",", "."))


def is_thousands(number: str) -> bool:
    """Return whether a comma parts the thousands of a number; elsewhere such a comma is that of a decimal."""
    return _THOUSANDS.fullmatch(number) is not None


def values_of(amount: str) -> list[Fraction]:
    """Return the ends of a range, or the one number of an amount; nothing where one of them is not clear."""
    found = [value_of(one.group()) for one in _END.finditer(amount)]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else []


def write(value: Fraction, *, like: str) -> str:
    """Write a number in the manner of another: `1/16` like `1/8`, `0.75` like `1.5`, `four` like `two`.

    As a fraction where its decimals would be many, or could be taken for thousands.
    """
    decimal = "." if "." in like else "," if "," in like and not is_thousands(like) else ""
    if decimal and value_of(said := f"{float(value):g}".replace(".", decimal)) == value:
        return said
    if value.denominator == 1:
        by_value = {number: word for word, number in WORDS.items()}
        if like.lower() in WORDS:
            return by_value.get(int(value), str(value))
        return f"{int(value):,}" if is_thousands(like) else str(value)
    whole, rest = divmod(value, 1)
    return f"{whole} {rest}" if whole else str(rest)


def scaled(amount: str, factor: Fraction) -> str:
    """Scale every number of an amount: `15-30` by two is `30-60`, `1/8` by a half is `1/16`."""

    def times(found: re.Match[str]) -> str:
        value = value_of(found.group())
        return found.group() if value is None else write(value * factor, like=found.group())

    return _END.sub(times, amount)
