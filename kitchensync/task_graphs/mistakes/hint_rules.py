"""The rules of the hints: each takes an instruction and yields changed ones. They do not check safety."""

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
"Words and the words that replace them, by table."


@dataclass(frozen=True, slots=True)
class Change:
    """A changed instruction, with the expected and the actual text."""

    instruction: str
    subtype: str
    expected: str
    actual: str


Rule = Callable[[str], Iterator[Change]]


def _replaced(text: str, start: int, end: int, new: str, subtype: str) -> Change:
    old = text[start:end]
    return Change(text[:start] + new + text[end:], subtype, old, new)


def _swapped(text: str, match: re.Match[str], new: str, subtype: str) -> Change:
    if match.group()[:1].isupper():
        new = new[:1].upper() + new[1:]
    return _replaced(text, match.start(), match.end(), new, subtype)


def _measured(text: str) -> Iterator[tuple[Span, Span]]:
    """Yield each amount with the unit, ingredient or tool that it counts."""
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
    """Double or halve an amount or a size, add or remove one, swap tsp and tbsp, or do not measure."""
    for amount, counted in _measured(text):
        number = text[amount.start : amount.end]
        if counted.kind == "unit":
            for factor in (DOUBLE, HALF):
                yield _with_number(text, amount, counted, scaled(number, factor), "amount")
            yield from _other_spoon(text, counted)
            yield from _unmeasured(text, amount, counted)
        elif len(values := values_of(number)) == 1 and values[0].denominator == 1:
            for value in sorted({values[0] + 1, values[0] - 1, values[0] * 2} - {Fraction(0)}):
                yield _with_number(text, amount, counted, write(value, like=number), "count")
        else:
            for factor in (DOUBLE, HALF):
                yield _with_number(text, amount, counted, scaled(number, factor), "amount")

    for size in re.finditer(rf"({AMOUNT})(?=[\s-]*inch(?:es)?\b)", text, re.IGNORECASE):
        yield _replaced(text, size.start(), size.end(), scaled(size.group(), DOUBLE), "size")
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
    """Replace a number, and change its noun to singular or plural."""
    old = text[amount.start : amount.end]
    noun = text[counted.start : counted.end]
    was_many, is_many = max(values_of(old)) > 1, max(values_of(number)) > 1
    new_noun = noun
    if is_many and not was_many and not _is_short(noun) and counted.kind != "tool":
        new_noun = plural(noun)
    elif was_many and not is_many and noun.endswith("s") and not _is_short(noun) and counted.kind == "unit":
        new_noun = noun[:-1]
    new = number + text[amount.end : counted.start] + new_noun
    change = _replaced(text, amount.start, counted.end, new, subtype)
    return Change(change.instruction, subtype, text[amount.start : counted.end], new)


def _is_short(unit: str) -> bool:
    """Return whether a unit has no plural."""
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
    """Halve or double a duration, or drop the check that ends the step."""
    for span in find_spans(text):
        if span.kind == "duration":
            for factor in (HALF, DOUBLE):
                new = _other_duration(text[span.start : span.end], factor)
                yield _replaced(text, span.start, span.end, new, "duration")
    if (until := _UNTIL.search(text)) and until.start() > 0:
        check = until.group().strip(" ,").removeprefix("or ")
        changed = text[: until.start()] + ", not checking" + text[until.end() :]
        yield Change(changed, "unchecked", check, "not checking")
    elif re.match(r"(?:wait|let|allow)\b", text, re.IGNORECASE) and not re.search(r"\d", text):
        yield Change(f"{text.rstrip('.')}, but stop early", "duration", "", "stopped too early")


def _other_duration(duration: str, factor: Fraction) -> str:
    """Scale a duration; minutes and seconds are one time, and half a minute becomes 30 seconds."""
    parts = list(_PART.finditer(duration))
    seconds = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "h": 3600}
    if len(parts) > 1 and all(len(values_of(part.group(1))) == 1 for part in parts):
        total = sum(values_of(p.group(1))[0] * seconds[p.group(3).lower()] for p in parts) * factor
        minutes, rest = divmod(total, 60)
        return " ".join(filter(None, (_counted(minutes, "minute"), _counted(rest, "second"))))
    part = parts[0]
    unit, values = part.group(3).lower(), [value * factor for value in values_of(part.group(1))]
    if unit in ("minute", "min") and max(values) < 1:
        in_seconds = "-".join(write(value * 60, like="1") for value in values)
        return f"{in_seconds}{part.group(2)}seconds"
    number = scaled(part.group(1), factor)
    if unit in ("second", "sec") and any(value.denominator > 1 for value in values):
        number = _PART_NUMBER.sub(lambda match: str(max(1, round(values_of(match.group())[0]))), number)
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
    """Change the level of heat, swap hot and cold, halve degrees, or raise a heat instead of lowering it."""
    for span in find_spans(text):
        if span.kind != "temperature":
            continue
        old = text[span.start : span.end]
        for level in _LEVELS.get(re.sub(r"\s*(?:-|to)\s*", "-", old.lower()), ()):
            yield _replaced(text, span.start, span.end, level, "level")
        if state := _OTHER_STATE.get(old.lower(), ""):
            yield _replaced(text, span.start, span.end, state, "state")
        if degrees := _DEGREES.fullmatch(old):
            new = scaled(degrees.group(1), HALF) + degrees.group(2)
            yield _replaced(text, span.start, span.end, new, "degrees")
    if match := re.match(r"(?:lower|reduce|turn down) (?=the heat)", text, re.IGNORECASE):
        yield _swapped(text, match, "raise ", "level")
    if match := re.match(r"boil(?= the| water| \d)", text, re.IGNORECASE):
        yield _swapped(text, match, "only warm", "state")
    if re.match(r"microwave\b(?!.*\b(?:on|power|in the)\b)(?= for| the| \d)", text, re.IGNORECASE):
        yield Change(f"{text.rstrip('.')} on low power", "level", "full power", "low power")


def _from_table(
    text: str, table: dict[str, list[str]], subtype: str, *, at_start: bool = False
) -> Iterator[Change]:
    """Replace words of a table, the longest match at each place; `at_start` only the leading verb."""
    keys = "|".join(sorted(map(re.escape, table), key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w-])(?:{keys})(?![\w-])", re.IGNORECASE)
    for match in pattern.finditer(text):
        if at_start and match.start():
            break
        for other in table[match.group().lower()]:
            yield _swapped(text, match, other, subtype)


def preparation(text: str) -> Iterator[Change]:
    """Use a wrong tool, a similar ingredient, or an ingredient in a wrong state."""
    yield from _tool_swaps(text)
    states = _from_table(text, _WORDS["states"], "state")
    yield from (change for change in states if change.instruction[:1] == text[:1])
    for span in find_spans(text):
        if span.kind == "ingredient":
            for other in _WORDS["ingredient_twins"].get(text[span.start : span.end].lower(), ()):
                yield _replaced(text, span.start, span.end, other, "ingredient")


def _tool_swaps(text: str) -> Iterator[Change]:
    for tool in find_spans(text):
        if tool.kind != "tool":
            continue
        for other in _WORDS["tool_swaps"].get(text[tool.start : tool.end].lower(), ()):
            if re.search(rf"\b{other}\b", text, re.IGNORECASE):
                continue
            held = re.search(r"\bwith an?\s+(?:\w+\s+){0,2}$", text[: tool.start])
            if other == "hands" and held:
                yield _replaced(text, held.start(), tool.end, "with hands", "tool")
            elif other != "hands":
                yield _replaced(text, tool.start, tool.end, other, "tool")


def technique(text: str) -> Iterator[Change]:
    """Use another verb or the opposite of an adverb, or spill or drop something."""
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
