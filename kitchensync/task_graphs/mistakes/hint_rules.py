"""The rules behind the hints: an instruction in, changed instructions out. No graph, no check, no safety here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from itertools import pairwise

from kitchensync.task_graphs.model import Span
from kitchensync.task_graphs.text.spans import find_spans, plural
from kitchensync.task_graphs.text.written_numbers import AMOUNT, NUMBER, scaled, values_of, write

HALF, DOUBLE = Fraction(1, 2), Fraction(2)
_WORDS: dict[str, dict[str, list[str]]] = tomllib.loads(
    resources.files("kitchensync.task_graphs.mistakes")
    .joinpath("hint_words.toml")
    .read_text(encoding="utf-8")
)
"What stands in for what."


@dataclass(frozen=True, slots=True)
class Change:
    """A changed instruction, with what was expected and what is done instead."""

    instruction: str
    subtype: str
    expected: str
    actual: str


Rule = Callable[[str], Iterator[Change]]


def _replaced(text: str, start: int, end: int, new: str, subtype: str) -> Change:
    old = text[start:end]
    return Change(text[:start] + new + text[end:], subtype, old, new)


def _swapped(text: str, found: re.Match[str], new: str, subtype: str) -> Change:
    old = found.group()
    new = new[:1].upper() + new[1:] if old[:1].isupper() else new
    return _replaced(text, found.start(), found.end(), new, subtype)


def _measured(text: str) -> Iterator[tuple[Span, Span]]:
    """Yield each amount that measures something, with the unit, ingredient or tool that it counts."""
    for amount, counted in pairwise(find_spans(text)):
        between = text[amount.end : counted.start]
        if amount.kind != "amount" or not values_of(text[amount.start : amount.end]):
            continue
        is_measure = counted.kind == "unit" and "-" not in between and text[counted.start :][:4] != "inch"
        is_count = counted.kind in ("ingredient", "tool") and re.fullmatch(
            r"\s+(?:[A-Za-z]+\s+){0,2}", between
        )
        if is_measure or is_count:
            yield amount, counted


def measurement(text: str) -> Iterator[Change]:
    """Double or halve an amount or a size, one more or fewer, tsp for tbsp, or not measured at all."""
    for amount, counted in _measured(text):
        said = text[amount.start : amount.end]
        if counted.kind == "unit":
            for factor in (DOUBLE, HALF):
                yield _with_number(text, amount, counted, scaled(said, factor), "amount")
            yield from _other_spoon(text, counted)
            yield from _unmeasured(text, amount, counted)
        elif len(values := values_of(said)) == 1 and values[0].denominator == 1:
            for value in sorted({values[0] + 1, values[0] - 1, values[0] * 2} - {Fraction(0)}):
                yield _with_number(text, amount, counted, write(value, like=said), "count")
        else:
            for factor in (DOUBLE, HALF):
                yield _with_number(text, amount, counted, scaled(said, factor), "amount")

    for found in re.finditer(rf"({AMOUNT})(?=[\s-]*inch(?:es)?\b)", text, re.IGNORECASE):
        yield _replaced(text, found.start(), found.end(), scaled(found.group(), DOUBLE), "size")
    yield from _from_table(text, _WORDS["quantities"], "amount")
    yield from _two_for_one(text)
    if seasoned := re.match(r"season\b.*?\bwith (?=\w+$)", text, re.IGNORECASE):
        yield Change(f"{seasoned.group()}too much {text[seasoned.end() :]}", "amount", "", "too much of it")


def _two_for_one(text: str) -> Iterator[Change]:
    for span in find_spans(text):
        if span.kind == "ingredient" and (article := re.search(r"\ban? $", text[: span.start])):
            noun = text[span.start : span.end]
            old = text[article.start() : span.end]
            new = f"two {plural(noun)}"
            yield Change(text[: article.start()] + new + text[span.end :], "count", old, new)


def _with_number(text: str, amount: Span, counted: Span, number: str, subtype: str) -> Change:
    """Put another number in, and what it counts into singular or plural."""
    old = text[amount.start : amount.end]
    noun = text[counted.start : counted.end]
    was_many, is_many = (max(values_of(said)) > 1 for said in (old, number))
    new_noun = noun
    if is_many and not was_many and not _is_short(noun) and counted.kind != "tool":
        new_noun = plural(noun)
    elif was_many and not is_many and noun.endswith("s") and not _is_short(noun) and counted.kind == "unit":
        new_noun = noun[:-1]
    new = number + text[amount.end : counted.start] + new_noun
    change = _replaced(text, amount.start, counted.end, new, subtype)
    return Change(change.instruction, subtype, text[amount.start : counted.end], new)


def _is_short(unit: str) -> bool:
    """Return whether a unit has one form for one and many."""
    return unit.lower().rstrip(".") in ("tsp", "tbsp", "oz", "g", "kg", "ml", "l")


_SPOONS = {"tsp": "tbsp", "tbsp": "tsp", "teaspoon": "tablespoon", "tablespoon": "teaspoon"}
_SPOONS |= {f"{small}s": f"{large}s" for small, large in _SPOONS.items() if len(small) > 4}


def _other_spoon(text: str, unit: Span) -> Iterator[Change]:
    if other := _SPOONS.get(text[unit.start : unit.end].lower()):
        yield _replaced(text, unit.start, unit.end, other, "unit")


def _unmeasured(text: str, amount: Span, unit: Span) -> Iterator[Change]:
    old = text[amount.start : unit.end]
    rest = re.sub(r"^\s+of\b", "", text[unit.end :]).strip()
    changed = f"{text[: amount.start]}some {rest}".rstrip(".") + " by eye, without measuring"
    yield Change(changed, "unmeasured", old, "some by eye, without measuring")


_PART = re.compile(
    rf"({AMOUNT})(\s*-?\s*(?:more\s+|additional\s+)?)(second|sec|minute|min|hour|hr|h)(s?)(\.?)",
    re.IGNORECASE,
)
_PART_NUMBER = re.compile(NUMBER)
_UNTIL = re.compile(r",?\s*(?:\bor\s+|\bjust\s+)?\buntil\b[^.,()]*", re.IGNORECASE)


def timing(text: str) -> Iterator[Change]:
    """Halve or double a duration, or drop the test that tells when it is enough."""
    for span in find_spans(text):
        if span.kind == "duration":
            for factor in (HALF, DOUBLE):
                said = text[span.start : span.end]
                new = _other_duration(said, factor)
                yield _replaced(text, span.start, span.end, new, "duration")
    if (found := _UNTIL.search(text)) and found.start() > 0:
        said = found.group().strip(" ,").removeprefix("or ")
        yield Change(
            text[: found.start()] + ", not checking" + text[found.end() :], "unchecked", said, "not checking"
        )
    elif re.match(r"(?:wait|let|allow)\b", text, re.IGNORECASE) and not re.search(r"\d", text):
        yield Change(f"{text.rstrip('.')}, but stop early", "duration", "", "stopped too early")


def _other_duration(said: str, factor: Fraction) -> str:
    """Scale a duration; minutes and seconds together are one time, half a minute is 30 seconds."""
    parts = list(_PART.finditer(said))
    seconds = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "h": 3600}
    if len(parts) > 1 and all(len(values_of(part.group(1))) == 1 for part in parts):
        total = sum(values_of(p.group(1))[0] * seconds[p.group(3).lower()] for p in parts) * factor
        minutes, rest = divmod(total, 60)
        words = [_counted(minutes, "minute"), _counted(rest, "second")]
        return " ".join(word for word in words if word)
    part = parts[0]
    unit, values = part.group(3).lower(), [value * factor for value in values_of(part.group(1))]
    if unit in ("minute", "min") and max(values) < 1:
        in_seconds = "-".join(write(value * 60, like="1") for value in values)
        return f"{in_seconds}{part.group(2)}seconds"
    number = scaled(part.group(1), factor)
    if unit in ("second", "sec") and any(value.denominator > 1 for value in values):
        number = _PART_NUMBER.sub(lambda found: str(max(1, round(values_of(found.group())[0]))), number)
    whole = part.group(3) if len(part.group(3)) <= 3 else part.group(3) + ("s" if max(values) > 1 else "")
    return f"{number}{part.group(2)}{whole}{part.group(5)}"


def _counted(number: Fraction | int, noun: str) -> str:
    return f"{write(Fraction(number), like='1')} {noun}{'s' if number != 1 else ''}" if number else ""


_LEVELS: dict[str, tuple[str, ...]] = {
    "low": ("high", "medium"),
    "medium": ("high", "low"),
    "high": ("medium", "low"),
}
_LEVELS |= {
    "low-medium": ("high",),
    "medium-low": ("high",),
    "medium-high": ("low",),
    "high-medium": ("low",),
}
_OTHER_STATE = {
    "cold": "hot",
    "hot": "cold",
    "boiling": "lukewarm",
    "warm": "cold",
    "lukewarm": "cold",
    "ice": "warm",
}
_DEGREES = re.compile(rf"({AMOUNT})(.*)", re.DOTALL)


def temperature(text: str) -> Iterator[Change]:
    """Another level of heat, cold for hot, degrees half as many, a heat turned the wrong way."""
    for span in find_spans(text):
        if span.kind != "temperature":
            continue
        said = text[span.start : span.end]
        for other in _LEVELS.get(re.sub(r"\s*(?:-|to)\s*", "-", said.lower()), ()):
            yield _replaced(text, span.start, span.end, other, "level")
        if other := _OTHER_STATE.get(said.lower(), ""):
            yield _replaced(text, span.start, span.end, other, "state")
        if found := _DEGREES.fullmatch(said):
            new = scaled(found.group(1), HALF) + found.group(2)
            yield _replaced(text, span.start, span.end, new, "degrees")
    if found := re.match(r"(?:lower|reduce|turn down) (?=the heat)", text, re.IGNORECASE):
        yield _swapped(text, found, "raise ", "level")
    if found := re.match(r"boil(?= the| water| \d)", text, re.IGNORECASE):
        yield _swapped(text, found, "only warm", "state")
    if found := re.match(r"microwave\b(?!.*\b(?:on|power|in the)\b)(?= for| the| \d)", text, re.IGNORECASE):
        yield Change(f"{text.rstrip('.')} on low power", "level", "full power", "low power")


def _from_table(
    text: str, table: dict[str, list[str]], subtype: str, *, at_start: bool = False
) -> Iterator[Change]:
    """Swap words of a table, the longest that fits at a place; `at_start` only the leading verb."""
    words = "|".join(sorted(map(re.escape, table), key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)
    matches = (
        [found] if at_start and (found := pattern.match(text)) else [] if at_start else pattern.finditer(text)
    )
    for found in matches:
        for other in table[found.group().lower()]:
            yield _swapped(text, found, other, subtype)


def preparation(text: str) -> Iterator[Change]:
    """The wrong tool, a twin of the ingredient, or an ingredient in the wrong state."""
    tools = {(span.start, span.end) for span in find_spans(text) if span.kind == "tool"}
    yield from _tool_swaps(text, tools)
    states = _from_table(text, _WORDS["states"], "state")
    yield from (change for change in states if change.instruction[:1] == text[:1])
    for span in find_spans(text):
        if span.kind == "ingredient":
            for other in _WORDS["ingredient_twins"].get(text[span.start : span.end].lower(), ()):
                yield _replaced(text, span.start, span.end, other, "ingredient")


def _tool_swaps(text: str, tools: set[tuple[int, int]]) -> Iterator[Change]:
    for start, end in sorted(tools):
        for other in _WORDS["tool_swaps"].get(text[start:end].lower(), ()):
            if re.search(rf"\b{other}\b", text, re.IGNORECASE):
                continue
            held = re.search(r"\bwith an?\s+(?:\w+\s+){0,2}$", text[:start])
            if other == "hands" and held:
                yield _replaced(text, held.start(), end, "with hands", "tool")
            elif other != "hands":
                yield _replaced(text, start, end, other, "tool")


def technique(text: str) -> Iterator[Change]:
    """Another verb, the opposite of an adverb, some spilled or dropped."""
    yield from _from_table(text, _WORDS["verbs"], "motion", at_start=True)
    yield from _from_table(text, _WORDS["adverbs"], "manner")
    plain = text.rstrip(" .")
    if re.match(r"(?:slowly |gently )?(?:stir|whisk|mix|beat)\b", text, re.IGNORECASE):
        yield Change(f"{plain}, too fast", "manner", "", "too fast")
    if re.match(
        r"(?:slowly |gently )?(?:pour|sprinkle|add|scoop|spoon|transfer|season|spread|\d|a )",
        text,
        re.IGNORECASE,
    ):
        yield Change(f"{plain}, spilling some", "spill", "", "some is spilled")
    if re.match(r"(?:place|put|take|set|top|line|remove|put)\b", text, re.IGNORECASE):
        yield Change(f"{plain}, dropping it once", "drop", "", "it is dropped once")
    if re.match(r"(?:cover|seal|secure)\b", text, re.IGNORECASE):
        yield Change(f"{plain}, leaving a gap", "manner", "", "a gap is left")


TEXT_RULES: tuple[tuple[str, Rule], ...] = (
    ("Preparation", preparation),
    ("Measurement", measurement),
    ("Timing", timing),
    ("Technique", technique),
    ("Temperature", temperature),
)
