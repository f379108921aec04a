"""Find the typed pieces of a step: amount, unit, tool, ingredient, duration, temperature.

Rules, no model: they must not take the cup of a "ramekin cup" for a unit nor the slice of a "fish slice" for a cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from recipe_app.graphs.model import Span, SpanKind
from recipe_app.graphs.text.amounts import AMOUNT

UNIT = (
    r"(?:tsp|tbsp|teaspoon(?:s|ful)?|tablespoon(?:s|ful)?|cups?|ounces?|oz\.?|grams?|g|kg|ml|litres?|liters?|l|"
    r"pinch(?:es)?|spoonfuls?|drizzle|dash|sticks?|cloves?(?=\s+of)|slices?(?=\s+of)|pieces?(?=\s+of))\b\.?"
)
TIME_UNIT = r"(?:seconds?|secs?\.?|minutes?|mins?\.?|hours?|hrs?)\b"

_ONE_DURATION = rf"{AMOUNT}\s+(?:more\s+|additional\s+)?{TIME_UNIT}"
_DURATION = re.compile(rf"{_ONE_DURATION}(?:\s+(?:and\s+)?{_ONE_DURATION})*", re.IGNORECASE)

LEVEL = r"(?:(?:low|medium|high)(?:\s*-\s*|\s+to\s+)(?:low|medium|high)|low|medium|high)"
_TEMPERATURE = re.compile(
    rf"\b{LEVEL}(?=\s+(?:heat|power|flame|setting|temperature)\b)"
    rf"|(?<=\bon )(?:{LEVEL})\b(?!\s*(?:-|quality))"
    rf"|{AMOUNT}\s*(?:°\s*[CF]\b|degrees?(?:\s+(?:Fahrenheit|Celsius|C|F)\b)?)"
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
    rf"(?<![\w./-])(?P<amount>{AMOUNT})(?:(?P<gap>\s*-?\s*)(?P<unit>{UNIT}|inch(?:es)?\b)|(?=[\s-]))"
    r"|\b(?P<some>an?|generous)\s+(?P<bare>pinch|drizzle|dash)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def find_spans(text: str) -> tuple[Span, ...]:
    """Return the typed pieces of a text, in order and without overlaps; the first kind to claim a place has it."""
    taken: list[Span] = []
    taken += _matches("duration", _DURATION, text)
    taken += _matches("temperature", _TEMPERATURE, text)
    for candidate in (
        *_amounts(text),
        *_matches("tool", _TOOL, text),
        *_matches("ingredient", _INGREDIENT, text),
    ):
        if all(candidate.end <= other.start or other.end <= candidate.start for other in taken):
            taken.append(candidate)
    return tuple(sorted(taken, key=lambda span: span.start))


def _matches(kind: SpanKind, pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    for found in pattern.finditer(text):
        yield Span(kind, found.start(), found.end())


def _amounts(text: str) -> Iterator[Span]:
    for found in _AMOUNT.finditer(text):
        kind: SpanKind
        groups: tuple[tuple[SpanKind, str], ...] = (
            ("amount", "amount"),
            ("unit", "unit"),
            ("amount", "some"),
            ("unit", "bare"),
        )
        for kind, group in groups:
            if found.group(group) is not None:
                yield Span(kind, *found.span(group))


def pieces(text: str, kind: SpanKind) -> list[str]:
    """Return the texts of all spans of one kind."""
    return [text[span.start : span.end] for span in find_spans(text) if span.kind == kind]
