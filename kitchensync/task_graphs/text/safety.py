"""Rules for what an error must never ask a person to do, each with the reason that people see.

A rule applies to what a changed step adds to the original. In doubt the rules refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kitchensync.task_graphs.text.spans import durations, pieces

_NO_WATER = (
    r"(?:\w*juice|lemonade|soda|cola|milk|cream|oil|butter|broth|stock|soup|sauce|wine|beer|vodka|rum|whisky|vinegar|"
    r"syrup|honey|jam|sugar|salt|coffee|cocoa|chocolate|tea|tea bags?|eggs?|noodles|ramen|pasta|rice|oats|flour|"
    r"lemon|orange|tomato\w*|vegetables?|potato\w*|meat|chicken|sausages?|fish|food|dough|batter|cheese|yogh?urt)"
)
_KETTLE = r"(?:the |a |an |your )?(?:\w+ )?kettle\b"
_VESSEL = (
    r"metal\w*|foil|alumini?um|(?:stainless )?steel|tins?|iron|copper|saucepan|frying pan|pan|pot|wok|skillet|"
    r"baking (?:sheet|tray)"
)
_CUTLERY = r"cutlery|forks?|knife|knives|(?<!wooden )(?<!plastic )spoons?|spatula|whisk|skewers?"
_METAL = rf"(?:{_VESSEL}|{_CUTLERY})"
_INTO = r"(?:in|into|inside|to)\s+(?:the |a )?(?:running )?"
_HEAT = r"(?:in|into|on|onto|inside)\s+(?:the |a )?(?:hot )?(?:oven|stove|burner|hob|grill|pan|toaster)"
_MELTS = r"(?:plastic\w*|cling ?film|paper ?towels?|kitchen paper|cardboard|napkins?|styrofoam|wooden \w+)"
_DRIPS = r"(?:butter|jam|honey|cheese|oil|sauce|syrup|milk|water|eggs?|batter|wet \w+|cream|chocolate)"

_MISUSES = (
    ("no water in the kettle", rf"\bkettle\b[^.;]*?\b(?:with|of)\b[^.;]*?\b(?P<what>{_NO_WATER})\b"),
    ("no water in the kettle", rf"\b(?P<what>{_NO_WATER})\b[^.;]*?\b(?:in|into|inside|to|with|using)\s+{_KETTLE}"),
    ("an empty kettle", r"\bkettle\b[^.;]*\b(?P<what>empty|without (?:any |the )?water|no water)\b"),
    ("an empty kettle", r"\b(?P<what>empty) kettle\b"),
    ("a kettle as a pot", rf"{_KETTLE}[^.;]*\b(?:on|in|into) the (?P<what>stove|burner|hob|oven|microwave|sink)\b"),
    ("metal in the microwave", rf"\bmicrowav\w+\b[^.;]*\b(?P<what>{_METAL})\b"),
    ("metal in the microwave", rf"\b(?P<what>{_METAL})\b[^.;]*\b{_INTO}microwave\b"),
    ("closed in the microwave", r"\bmicrowav\w+\b[^.;]*\b(?P<what>sealed|tightly|closed|(?:its|the) shell)\b"),
    ("an empty microwave", r"\b(?P<what>empty) microwave\b|\bmicrowave\b[^.;]*\b(?P<with>empty)\b"),
    ("something wet in the toaster", rf"\b(?P<what>{_DRIPS})\b[^.;]*?\b{_INTO}toaster\b"),
    ("something wet in the toaster", rf"\btoaster\b[^.;]*\bwith\b[^.;]*\b(?P<what>{_DRIPS})\b"),
    ("metal in a machine", rf"\b(?P<what>{_CUTLERY})\b[^.;]*\b{_INTO}(?:blender|mixer|toaster|grinder)\b"),
    ("something hot in the blender", rf"\b(?P<what>boiling|hot|steaming)\b[^.;]*\b{_INTO}blender\b"),
    ("something that melts or burns on heat", rf"\b(?P<what>{_MELTS})\b[^.;]*\b{_HEAT}\b"),
)  # fmt: skip
_MISUSE_RULES = tuple((reason, re.compile(pattern, re.IGNORECASE)) for reason, pattern in _MISUSES)
_MICROWAVES = re.compile(r"\bmicrowav\w+\b", re.IGNORECASE)
_METAL_VESSEL = re.compile(rf"\b{_VESSEL}\b", re.IGNORECASE)


def why_misused(original: str, changed: str, later: Iterable[str] = ()) -> str | None:
    """Return how a changed step misuses equipment, or None; `later` are the texts of the following steps."""
    for reason, rule in _MISUSE_RULES:
        if _named(rule, changed) - _named(rule, original):
            return reason
    metal = {word.lower() for word in _METAL_VESSEL.findall(changed)}
    metal -= {word.lower() for word in _METAL_VESSEL.findall(original)}
    if metal and any(_MICROWAVES.search(text) for text in later):
        return "metal in the microwave"
    return None


def _named(rule: re.Pattern[str], text: str) -> set[str]:
    """Return the words that the named groups of a rule match in a text."""
    return {word.lower() for match in rule.finditer(text) for word in match.groupdict().values() if word}


_MEAT = (
    r"\b(?:meat\w*|chicken|pork|beef|turkey|lamb|fish|salmon|tuna|shrimps?|prawns?|bacon|sausages?|ham|poultry)\b"
    r"(?! slice)"
)
_RAW = r"\b(?:raw|uncooked|under-?cook\w*|half-?cooked|pink|bloody|rare)\b"
_EAT = r"\b(?:eat\w*|serve\w*|taste\w*|swallow\w*|drink\w*)\b"

_ALLERGENS = {
    "milk": r"\b(?:milk|cream|butter|cheese|cheddar|mozzarella|parmesan|yogh?urt|whey)\b(?<!nut butter)",
    "egg": r"\b(?:eggs?|mayonnaise)\b",
    "peanut": r"\bpeanuts?\b",
    "nuts": r"\b(?:nuts?|almonds?|walnuts?|cashews?|hazelnuts?|pistachios?|pecans?)\b",
    "soy": r"\b(?:soy|soya|tofu)\b",
    "wheat": r"\b(?:flour|wheat|bread|pasta|noodles|tortillas?|semolina|couscous)\b",
    "fish": r"\b(?:fish sauce|anchov\w+|salmon|tuna|cod)\b",
    "shellfish": r"\b(?:shrimps?|prawns?|crab|lobster|oyster\w*)\b",
    "sesame": r"\b(?:sesame|tahini)\b",
    "mustard": r"\bmustard\b",
    "celery": r"\bcelery\b",
}

_BY_HAND = r"(?:\bbare[- ]?hand\w*|\b(?:with|by|using) (?:your |the )?(?:bare )?(?:hands?|fingers?)\b)"
_HOT = r"\b(?:hot|boil\w*|heat\w*|pan|pot|oven|stove|microwav\w+|fry\w*|sizzl\w+|burner|toaster)\b"
_FIRE = r"\b(?:stove|flame|burner|heat|gas|oven|oil)\b"
_BLADE = r"\b(?:knife|knives|blade|cut\w*|slic\w+|chop\w*|peel\w*|scissors|stab\w*)\b"
_SELF = (
    r"\b(?:toward|towards|against|at|into|on|in|over) (?:the |your |my |one's )?(?:own )?"
    r"(?:body|hands?|palm|fingers?|thumb|chest|stomach|lap|yourself|you)\b"
)

_FORBIDDEN = (
    ("bare hands on heat", rf"{_BY_HAND}.*{_HOT}"),
    ("bare hands on heat", rf"{_HOT}.*{_BY_HAND}"),
    (
        "bare hands on heat",
        r"\bwithout (?:an? |the |any )?(?:oven )?(?:mitts?|gloves?|pot ?holders?|cloth)\b",
    ),
    (
        "a flame or heat left alone",
        r"\bunattended\b|\bwalk(?:ing)? away\b|\bleav\w+ the (?:kitchen|room|house)\b",
    ),
    ("a flame or heat left alone", rf"\bleav\w+\b.*{_FIRE}.*\b(?:on|alone|burning|running)\b"),
    ("a flame or heat left alone", rf"\bforget\w*\b.*{_FIRE}"),
    ("a blade towards the body", rf"{_BLADE}.*{_SELF}"),
    ("a blade towards the body", r"\b(?:catch|juggl|throw|swing)\w*\b.*\b(?:knife|knives|blade)\b"),
    ("a blade towards the body", rf"{_BLADE}.*\b(?:eyes closed|blindfold\w*|without looking)\b"),
    ("something that is no food", r"\b(?:soap|detergent|bleach|cleaner|disinfectant|glue|paint|medicine)\b"),
    ("spoiled food", r"\b(?:spoil\w*|rotten|mould\w*|mold\w*|expired)\b"),
    ("water in hot oil", r"\bwater\b.*\b(?:in|into|onto|to) (?:the )?(?:hot|boiling|smoking) (?:oil|fat)\b"),
    ("smoking oil", r"\b(?:oil|fat)\b.*\b(?:until|till) it (?:smokes|burns|catches fire)\b"),
    ("fire", r"\bon fire\b|\bcatch\w* fire\b"),
    (
        "fingers in a machine",
        r"\b(?:fingers?|hands?)\b.*\b(?:in|into|inside) (?:the |a )?(?:running )?(?:blender|mixer)\b",
    ),
    ("a machine without its lid", r"\b(?:blend\w*|mixer)\b.*\bwithout (?:the |a )?lid\b"),
    ("water and electricity", r"\bwet hands?\b.*\b(?:plug|socket|switch|toaster|appliance)\b"),
    (
        "scalding",
        r"\b(?:boiling|hot) \w+\b.*\b(?:on|onto|over) (?:the |your |a )?(?:hands?|skin|arm|floor|person)\b",
    ),
)
_RULES = tuple((reason, re.compile(pattern, re.IGNORECASE | re.DOTALL)) for reason, pattern in _FORBIDDEN)


def why_unsafe(original: str, changed: str, later: Iterable[str] = ()) -> str | None:
    """Return why a changed step must not be shown, or None. Words of the original step are allowed.

    `later` are the texts of the following steps, which may heat what this step fills.
    """
    for reason, rule in _RULES:
        if rule.search(changed) and not rule.search(original):
            return reason
    if why := why_misused(original, changed, later) or _raw_meat(original, changed):
        return why
    for allergen, pattern in _ALLERGENS.items():
        if re.search(pattern, changed, re.IGNORECASE) and not re.search(pattern, original, re.IGNORECASE):
            return f"a new allergen: {allergen}"
    return None


def _raw_meat(original: str, changed: str) -> str | None:
    meat = re.search(_MEAT, f"{original} {changed}", re.IGNORECASE)
    raw = re.search(_RAW, changed, re.IGNORECASE) and not re.search(_RAW, original, re.IGNORECASE)
    eaten_raw_egg = re.search(r"\beggs?\b", changed, re.IGNORECASE) and re.search(
        _EAT, changed, re.IGNORECASE
    )
    if raw and (meat or eaten_raw_egg):
        return "raw or undercooked meat or egg"
    if meat and (_heating_s(changed) < _heating_s(original) or _heat(changed) < _heat(original)):
        return "undercooked meat"
    return None


def _heating_s(text: str) -> int:
    """Return the longest duration of a text in seconds, 0 if it has none."""
    return max((duration.most_seconds for duration in durations(text)), default=0)


def _heat(text: str) -> int:
    temperatures = [temperature.lower() for temperature in pieces(text, "temperature")]
    ranks = {"low": 1, "medium": 2, "high": 3}
    return max((rank for level, rank in ranks.items() if any(level in t for t in temperatures)), default=0)


_HAZARDS = {
    "heat": r"\b(?:heat|boil|fry|saut[eé]|simmer|toast|bake|oven|stove|pan|microwave|melt|grill|roast|hot)\w*\b",
    "blade": r"\b(?:knife|chop|slice|cut|mince|dice|peel|grate|scissors|trim|blade)\w*\b",
    "machine": r"\b(?:blend|blender|mixer|grind|grinder|puree)\w*\b",
    "raw meat": _MEAT,
    "heat off": r"\b(?:(?:turn|switch)\w* (?:\w+ )*off|off the heat|from (?:the )?heat|lower the heat|let .*cool)\b",
}


def hazards_of(text: str) -> tuple[str, ...]:
    """Return the hazards of a step: heat, blade, machine, raw meat, and `heat off` for steps that end heating."""
    return tuple(name for name, pattern in _HAZARDS.items() if re.search(pattern, text, re.IGNORECASE))


def must_stay(text: str) -> bool:
    """Return whether a step keeps people safe, so that a script should neither leave it out nor move it."""
    return bool({"heat off", "raw meat"} & set(hazards_of(text)))
