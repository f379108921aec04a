"""Kitchen verbs, and patterns that find the start of a second action in a text."""

from __future__ import annotations

import re

VERBS = (
    "add|allow|arrange|bake|beat|blend|blitz|boil|break|bring|brown|brush|chill|chop|clean|close|coat|combine|continue|cook|"
    "cool|cover|crack|crush|cut|dice|dip|discard|dissolve|divide|drain|drizzle|drop|dry|fill|flip|fold|fry|garnish|"
    "grate|grease|grill|grind|heat|knead|layer|leave|let|lift|line|lower|mash|measure|melt|microwave|mince|mix|peel|"
    "place|poach|pour|preheat|press|puree|put|reduce|remove|repeat|rest|rinse|roast|roll|rub|saute|sauté|scoop|scramble|"
    "seal|season|secure|serve|set|shake|shred|simmer|slice|soak|spoon|spread|sprinkle|squeeze|steam|stir|strain|"
    "stuff|take|tear|thaw|tilt|toast|top|toss|transfer|trim|turn|unwrap|wait|wash|weigh|whisk|wipe|wrap"
)

SECOND_ACTION = re.compile(rf"(?:[;.]| and| then)\s+(?:and\s+|then\s+)*({VERBS})\b", re.IGNORECASE)
LISTED_ACTION = re.compile(rf",\s+(?:and\s+|then\s+)*({VERBS})\b", re.IGNORECASE)
_BEFORE_VERB = r"then|next|now|finally|first|meanwhile|slowly|gently|carefully|and|after that"
LEADING_VERB = re.compile(rf"^(?:(?:{_BEFORE_VERB})[\s,]+)*({VERBS})\b", re.IGNORECASE)
ANY_VERB = re.compile(rf"\b({VERBS})\b", re.IGNORECASE)


def action_of(sentence: str) -> str:
    """Return the capitalised verb of a sentence: the leading verb, else the first verb, else the first word."""
    match = LEADING_VERB.match(sentence) or ANY_VERB.search(sentence)
    verb = match.group(1) if match else (re.findall(r"\w+", sentence) or ["Do"])[0]
    return verb[:1].upper() + verb[1:].lower()
