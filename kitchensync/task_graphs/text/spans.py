"""Find the spans of a step: amount, unit, tool, ingredient, duration, temperature.

Rules, no model: the cup of a "ramekin cup" is not a unit, nor the slice of a "fish slice" a cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from kitchensync.task_graphs.model import Span, SpanKind
from kitchensync.task_graphs.text.written_numbers import AMOUNT, is_thousands, values_of


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


UNIT = (
    r"(?:tsp|tbsp|teaspoon(?:s|ful)?|tablespoon(?:s|ful)?|cups?|ounces?|oz\.?|grams?|g|kg|ml|litres?|liters?|l|"
    r"pinch(?:es)?|spoonfuls?|drizzle|dash|sticks?|cloves?(?=\s+of)|slices?(?=\s+of)|pieces?(?=\s+of))\b\.?"
)
SMALL_UNITS = ("g", "gram", "grams", "ml")
"""Units with amounts in the thousands."""
TIME_UNIT = r"(?:seconds?|secs?\.?|minutes?|mins?\.?|hours?|hrs?|h)\b"

_ONE_DURATION = rf"{AMOUNT}(?:\s*+-)?\s*+(?:more\s++|additional\s++)?{TIME_UNIT}"
_DURATION = re.compile(rf"{_ONE_DURATION}(?:\s++(?:and\s++)?{_ONE_DURATION})*", re.IGNORECASE)

LEVEL = r"(?:(?:low|medium|high)(?:\s*-\s*|\s+to\s+)(?:low|medium|high)|low|medium|high)"
_TEMPERATURE = re.compile(
    rf"\b{LEVEL}(?=\s+(?:heat|power|flame|setting|temperature)\b)"
    rf"|(?<=\bon )(?:{LEVEL})\b(?!\s*(?:-|quality))"
    rf"|{AMOUNT}\s*+(?:°\s*+[CF]\b|degrees?(?:\s+(?:Fahrenheit|Celsius|C|F)\b)?)"
    r"|\b(?:cold|hot|warm|boiling|lukewarm|iced?)(?=\s+(?:water|milk|oil|pan)\b)",
    re.IGNORECASE,
)

TOOLS = (
    "wooden spoon|measuring spoons?|butter knife|fish slice spatula|fish slice|frying pan|saucepan|cutting board|"
    "chopping board|ramekin cup|coffee mug|filter cone|filter insert|paper filter|mixing bowl|serving bowl|"
    "serving plate|paper towel|tea towel|zip-top bag|zip top bag|cupcake liner|paper liner|bowl|pan|pot|plate|"
    "platter|mug|knife|spoon|fork|spatula|whisk|blender|mixer|kettle|floss|scissors|toothpicks?|lid|sieve|grater|jar|dripper|"
    "spiralizer|tray|oven|toaster|colander|ladle|tongs|peeler|scale|rolling pin|basting brush|brush|container"
)
_VERB_TOO = r"(?!(?<=^)(?:whisk|brush|spoon|pan|ladle)\b)"
_TOOL = re.compile(rf"{_VERB_TOO}(?<![\w])(?:{TOOLS})(?![\w])|\b(?<!\d )(?<!/\d )cup\b", re.IGNORECASE)

INGREDIENTS = (
    "baking powder|baking soda|black pepper|bell pepper|chili powder|pepper powder|coffee beans|coffee grounds|"
    "cream cheese|cumin seeds?|english muffin|nut butter|peanut butter|olive oil|vegetable oil|sesame oil|"
    "soy sauce|garlic cloves?|tomato puree|vanilla extract|mozzarella(?: cheese)?|cheddar(?: cheese)?|"
    "parmesan(?: cheese)?|italian seasoning|egg mixture|marinara sauce|lime juice|lemon juice|apples?|bananas?|"
    "basil|batter|bread|broccoli|butter|carrots?|celery|cheese|chicken|chill?i(?:es)?|chocolate|cilantro|cinnamon|"
    "corn|cream|cucumbers?|cumin|eggs?|flour|frosting|garlic|ginger|honey|jelly|ketchup|lettuce|limes?|lemons?|"
    "meatballs?|milk|mushrooms?|mustard|noodles|oats|oil|onions?|oregano|parsley|pasta|pepper|potatoes|potato|rice|"
    "salsa|salt|sauces?|spinach|strawberr(?:y|ies)|sugar|syrup|tofu|tomatoes|tomato|tortillas?|turmeric|vanilla|"
    "vinegar|water|yogh?urt|zucchini|zoodles"
)
_INGREDIENT = re.compile(rf"\b(?:{INGREDIENTS})\b", re.IGNORECASE)

_AMOUNT = re.compile(
    rf"(?<![\w./-])(?P<amount>{AMOUNT})(?:(?P<gap>\s*+-?\s*+)(?P<unit>{UNIT}|inch(?:es)?\b)|(?=[\s-]))"
    r"|\b(?P<some>an?|generous)\s+(?P<bare>pinch|drizzle|dash)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def find_spans(text: str) -> tuple[Span, ...]:
    """Return the spans of a text, in order and without overlaps; earlier kinds take precedence."""
    kinds = (
        _durations(text),
        _matches("temperature", _TEMPERATURE, text),
        _amounts(text),
        _matches("tool", _TOOL, text),
        _matches("ingredient", _INGREDIENT, text),
    )
    spans: list[Span] = []
    claimed = bytearray(len(text))
    for span in chain.from_iterable(kinds):
        if not any(claimed[span.start : span.end]):
            claimed[span.start : span.end] = b"\1" * (span.end - span.start)
            spans.append(span)
    return tuple(sorted(spans, key=lambda span: span.start))


def _matches(kind: SpanKind, pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    for match in pattern.finditer(text):
        yield Span(kind, match.start(), match.end())


def _durations(text: str) -> Iterator[Span]:
    for match in _DURATION.finditer(text):
        if all(values_of(part.group(1)) for part in _PART.finditer(match.group())):
            yield Span("duration", match.start(), match.end())


_AMOUNT_GROUPS: tuple[tuple[SpanKind, str], ...] = (
    ("amount", "amount"),
    ("unit", "unit"),
    ("amount", "some"),
    ("unit", "bare"),
)


def _amounts(text: str) -> Iterator[Span]:
    for match in _AMOUNT.finditer(text):
        # `1,250 g` has thousands, but `1,250 kg` may have decimals.
        is_small = (match.group("unit") or "").lower().rstrip(".") in SMALL_UNITS
        amount = match.group("amount")
        if amount and not (values_of(amount) and (is_small or not is_thousands(amount))):
            continue
        for kind, group in _AMOUNT_GROUPS:
            if match.group(group) is not None:
                yield Span(kind, *match.span(group))


def pieces(text: str, kind: SpanKind) -> list[str]:
    """Return the texts of all spans of one kind."""
    return [text[span.start : span.end] for span in find_spans(text) if span.kind == kind]


LONGEST_S = 86_400
"""Longest timer of a step, seconds."""

_PART = re.compile(rf"({AMOUNT})(?:\s*+-)?\s*+(?:more\s++|additional\s++)?({TIME_UNIT})", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class StepDuration:
    """One duration of a step; a timer is set to the shorter end and shows the longer one."""

    seconds: int
    most_seconds: int
    text: str


def timers(text: str) -> list[StepDuration]:
    """Return the durations of a step from one second to one day, in the order of the text."""
    return [d for d in durations(text) if d.seconds >= 1 and d.most_seconds <= LONGEST_S]


def durations(text: str) -> list[StepDuration]:
    """Return all durations of a step, in the order of the text."""
    step_durations = []
    for duration in pieces(text, "duration"):
        least = most = 0.0
        for part in _PART.finditer(duration):
            values = [float(value) * _SECONDS[part.group(2)[0].lower()] for value in values_of(part.group(1))]
            least, most = least + min(values), most + max(values)
        step_durations.append(StepDuration(round(least), round(most), duration))
    return step_durations
