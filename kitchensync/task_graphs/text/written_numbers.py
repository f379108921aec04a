"""Numbers as recipes write them: read as exact fractions, and written in the same style.

An ambiguous number is not read: `1.500` is 1500 in one language and 1.5 in another. The tablet reads durations in the
same way: `kitchensync/recipe_app/static/core/durations.js`.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_FRACTIONS = {sign: Fraction(unicodedata.numeric(sign)).limit_denominator(10) for sign in VULGAR}

_WORD = "|".join(WORDS)
_MEASURE = r"\s++(?:cup|tsp|tbsp|teaspoon|tablespoon|lit(?:re|er)|kg|kilo|ounce|pound|stick|pinch|hour|minute|second)"
"""Units after which `half a` is an amount; it is not in `half a potato`."""


def _number(after: str) -> str:
    return (
        rf"(?:(?<!\d)(?<!\d[.,/⁄])(?<![{VULGAR}])(?>\d++\s++and\s++a\s++half\b"
        rf"|\d++\s*+[{VULGAR}]|\d++(?:\s++|-)\d++[/⁄]\d++|\d++[/⁄]\d++|[{VULGAR}]|\d++(?:[.,]\d++)*+|(?<!\w)\.\d++)"
        rf"(?![\d{VULGAR}])(?![.,/⁄]\d)"
        rf"|\b(?:(?:half|(?:(?:a\s++)?quarter|three\s++quarters)\s++of)\s++an?{after}"
        rf"|(?:{_WORD})(?:\s++and\s++a\s++half)?)\b)"
    )


NUMBER = _number(f"(?={_MEASURE})")
"""A match must begin at the first digit: a text of many digits is scanned once, not from each digit."""
AMOUNT = rf"{NUMBER}(?:\s*+(?:[-–—−]|to|bis)\s*+{NUMBER})?"
"""White space is possessive: thousands of empty lines after a number are scanned once, not from each line."""

_END = re.compile(_number(""), re.IGNORECASE)
_MIXED = re.compile(r"(\d+)[\s-]+(\d+/\d+)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+")
_UNCLEAR = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+|.*[.,].*[.,].*")


def value_of(number: str) -> Fraction | None:
    """Return a number as an exact fraction: `1 1/2`, `1½`, `1⁄8`, `1.5`, `0,25`, `1,000`, `two`, `half a`,
    `three quarters of an`.

    None if it is ambiguous or invalid.
    """
    text = number.lower().replace("⁄", "/")
    if text.endswith("half") and text != "half":
        whole = text.split()[0]
        return Fraction(WORDS.get(whole) or int(whole)) + Fraction(1, 2)
    if text.startswith("half"):
        return Fraction(1, 2)
    if "quarter" in text:
        return Fraction(3 if text.startswith("three") else 1, 4)
    if text in WORDS:
        return Fraction(WORDS[text])
    if text[-1] in _FRACTIONS:
        return Fraction(text[:-1].strip() or 0) + _FRACTIONS[text[-1]]
    if "/" in text:
        mixed = _MIXED.fullmatch(text)
        above, _, below = (mixed[2] if mixed else text).partition("/")
        return Fraction(int(above), int(below)) + int(mixed[1] if mixed else 0) if int(below) else None
    if is_thousands(text):
        return Fraction(text.replace(",", ""))
    return None if _UNCLEAR.fullmatch(text) else Fraction(text.replace(",", "."))


def is_thousands(number: str) -> bool:
    """Return whether the commas of a number may separate thousands; in some languages it may be a decimal comma."""
    return _THOUSANDS.fullmatch(number) is not None


def values_of(amount: str) -> list[Fraction]:
    """Return the ends of a range, or the single number of an amount; empty if one of them is ambiguous."""
    values = [value_of(match.group()) for match in _END.finditer(amount)]
    clear = [value for value in values if value is not None]
    return clear if len(clear) == len(values) else []


def write(value: Fraction, *, like: str) -> str:
    """Write a number in the style of another: `1/16` like `1/8`, `0.75` like `1.5`, `four` like `two`.

    It is a fraction if its decimals would be many, or ambiguous.
    """
    decimal = "." if "." in like else "," if "," in like and not is_thousands(like) else ""
    if decimal and value_of(text := f"{float(value):g}".replace(".", decimal)) == value:
        return text
    if value.denominator == 1:
        by_value = {number: word for word, number in WORDS.items()}
        if like.lower() in WORDS:
            return by_value.get(int(value), str(value))
        return f"{int(value):,}" if is_thousands(like) else str(value)
    whole, rest = divmod(value, 1)
    return f"{whole} {rest}" if whole else str(rest)


def scaled(amount: str, factor: Fraction) -> str:
    """Scale every number of an amount: `15-30` by two is `30-60`, `1/8` by a half is `1/16`."""

    def times(match: re.Match[str]) -> str:
        value = value_of(match.group())
        return match.group() if value is None else write(value * factor, like=match.group())

    return _END.sub(times, amount)
