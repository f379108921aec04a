"""Kitchen numbers as text: fractions stay fractions, decimals stay decimals, ranges keep both ends."""

from __future__ import annotations

import re
from fractions import Fraction

WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}

NUMBER = r"(?:\d+\s+\d+/\d+|\d+/\d+|\d+\.\d+|\d+|(?:one|two|three|four|five|six)\b)"
AMOUNT = rf"{NUMBER}(?:\s*(?:-|–|to)\s*{NUMBER})?"

_END = re.compile(NUMBER, re.IGNORECASE)


def value_of(number: str) -> Fraction:
    """Return a number as an exact fraction: `1 1/2`, `1/8`, `1.5`, `2`, `two`."""
    if number.lower() in WORDS:
        return Fraction(WORDS[number.lower()])
    return sum((Fraction(part) for part in number.split()), Fraction(0))


def values_of(amount: str) -> list[Fraction]:
    """Return the ends of a range, or the one number of an amount."""
    return [value_of(found.group()) for found in _END.finditer(amount)]


def write(value: Fraction, *, like: str) -> str:
    """Write a number in the manner of another: `1/16` like `1/8`, `0.75` like `1.5`, `four` like `two`."""
    if "." in like and value.denominator in (1, 2, 4, 5, 8, 10, 20):
        return f"{float(value):g}"
    if value.denominator == 1:
        by_value = {number: word for word, number in WORDS.items()}
        return by_value.get(int(value), str(value)) if like.lower() in WORDS else str(value)
    whole, rest = divmod(value, 1)
    return f"{whole} {rest}" if whole else str(rest)


def scaled(amount: str, factor: Fraction) -> str:
    """Scale every number of an amount: `15-30` by two is `30-60`, `1/8` by a half is `1/16`."""
    return _END.sub(lambda found: write(value_of(found.group()) * factor, like=found.group()), amount)


def plural(noun: str) -> str:
    """Return the plural of an English kitchen noun."""
    if re.search(r"(?:s|sh|ch|x)$", noun):
        return noun if noun.endswith("s") else noun + "es"
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    if noun.endswith(("tomato", "potato", "chilli", "chili")):
        return noun + "es"
    if noun.endswith(("knife", "leaf", "loaf", "half")):
        return re.sub(r"fe?$", "ves", noun)
    return noun + "s"
