"""Recipe steps as spoken words, a JSGF grammar of phrases about them, and the verb and noun of a phrase."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypedDict

from kitchensync.task_graphs.text.actions import ANY_VERB, action_of

BEFORE = (
    *("in", "into", "on", "onto", "with", "from", "over", "for"),
    *("to", "at", "until", "and", "under", "through"),
)
"""Words that begin an optional part of a sentence."""
STARTING = ("i", "now", "then")
"""Optional first words of a phrase."""
FILLING = ("a", "an", "the", "one", "some", "of")
"""Words that are optional anywhere."""
UNITS = {
    "ml": "milliliters",
    "l": "liters",
    "g": "grams",
    "kg": "kilograms",
    "cm": "centimeters",
    "mm": "millimeters",
    "tbsp": "tablespoons",
    "tsp": "teaspoons",
    "min": "minutes",
    "s": "seconds",
    "sec": "seconds",
    "h": "hours",
    "oz": "ounces",
    "lb": "pounds",
    "°c": "degrees",
    "°f": "degrees",
    "%": "percent",
}
FRACTIONS = {"1/2": "half", "1/4": "quarter", "3/4": "three quarters", "1/3": "third", "1/8": "eighth"}
ONES = (
    *(
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

_WORD = re.compile(r"\d+/\d+|\d+|°[cf]|%|[^\W\d_]+(?:'[^\W\d_]+)?", re.IGNORECASE)
_PREFIX = re.compile(r"^([A-Za-z]+)-(?=\1)", re.IGNORECASE)
"""Published steps repeat their action at the start: Peel-Peel."""


@dataclass(frozen=True, slots=True)
class SpokenGrammar:
    """Grammar text, empty if no step can be spoken, and the words that the recognizer does not know."""

    text: str
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """The verb and the noun of a phrase; empty if it has none."""

    verb: str
    noun: str


class FineNarration(TypedDict):
    """A narration in a release: span in seconds of the video, text, and its step."""

    start: float
    end: float
    text: str
    verb: str
    noun: str
    step: int | None
    source: str


def number_in_words(number: int) -> str:
    """Return a number from 0 to 999,999 in spoken words."""
    if number < 20:
        return ONES[number]
    if number < 100:
        return f"{TENS[number // 10]} {ONES[number % 10]}".removesuffix(" zero")
    for unit, name in ((1000, "thousand"), (100, "hundred")):
        if number >= unit:
            rest = f" {number_in_words(number % unit)}" if number % unit else ""
            return f"{number_in_words(number // unit)} {name}{rest}"
    raise ValueError(number)


def spoken_words(text: str) -> list[str]:
    """Return the spoken words of a step, in lower case, with numbers and units written out."""
    words: list[str] = []
    for token in _WORD.findall(_PREFIX.sub("", text.strip())):
        token = token.lower()
        if token.isdecimal():
            spoken = number_in_words(int(token)) if len(token) < 7 else ""
        else:
            spoken = FRACTIONS.get(token) or UNITS.get(token) or ("" if "/" in token else token)
        is_singular = words[-1:] in (["one"], ["half"]) and spoken in UNITS.values()
        words += (spoken.removesuffix("s") if is_singular else spoken).split()
    return words


def grammar_of(steps: Iterable[str], is_known: Callable[[str], bool]) -> SpokenGrammar:
    """Return the grammar of phrases about steps: their words in order, some parts optional."""
    rules: list[str] = []
    unknown: dict[str, None] = {}
    for words in dict.fromkeys(tuple(spoken_words(step)) for step in steps):
        known = [word for word in words if is_known(word)]
        unknown |= dict.fromkeys(word for word in words if word not in known)
        if set(known) - {*FILLING}:
            parts: list[list[str]] = [[]]
            for word in known:
                if parts[-1] and word in BEFORE:
                    parts.append([])
                parts[-1].append(word)
            first, *others = (" ".join(f"[ {w} ]" if w in FILLING else w for w in part) for part in parts)
            rules.append(" ".join([first, *(f"[ {part} ]" for part in others)]))
    if not rules:
        return SpokenGrammar("", tuple(unknown))
    phrases = " | ".join(dict.fromkeys(rules))
    starting = " | ".join(word for word in STARTING if is_known(word))
    start = f"[ {starting} ] " if starting else ""
    text = f"#JSGF V1.0;\ngrammar steps;\npublic <phrase> = {start}( {phrases} );\n"
    return SpokenGrammar(text, tuple(unknown))


def parse(text: str, steps: Iterable[str]) -> Parsed:
    """Return the verb and the noun of a phrase; a noun consists of words of the steps after the verb."""
    words = spoken_words(text)
    if ANY_VERB.search(" ".join(words)) is None:
        return Parsed("", "")
    verb = action_of(" ".join(words)).lower()
    if verb not in words:  # part of a longer word
        return Parsed(verb, "")
    vocabulary = {word for step in steps for word in spoken_words(step)[1:]}
    skipped = {*FILLING, *ONES, *TENS, "hundred", "thousand", *UNITS.values()}
    nouns: list[str] = []
    for word in words[words.index(verb) + 1 :]:
        if word in BEFORE:
            if nouns:
                break
            continue
        if word in vocabulary and word not in skipped:
            nouns.append(word)
    return Parsed(verb, " ".join(nouns))
