"""Kitchen timers from the text of a step: "cook for 2-3 minutes" is a timer of 120 s whose range ends at 180 s."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recipe_app.graphs.text.amounts import AMOUNT, values_of
from recipe_app.graphs.text.spans import TIME_UNIT, pieces

LONGEST_S = 86_400

_PART = re.compile(rf"({AMOUNT})\s+(?:more\s+|additional\s+)?({TIME_UNIT})", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class StepDuration:
    """One duration of a step: the shorter end is set, the longer one is shown."""

    seconds: int
    most_seconds: int
    text: str


def timers(text: str) -> list[StepDuration]:
    """Return the durations that a step names, in the order of the text, none above a day."""
    found = []
    for said in pieces(text, "duration"):
        least = most = 0.0
        for part in _PART.finditer(said):
            values = [float(value) * _SECONDS[part.group(2)[0].lower()] for value in values_of(part.group(1))]
            least, most = least + min(values), most + max(values)
        if 1 <= least <= most <= LONGEST_S:
            found.append(StepDuration(round(least), round(most), said))
    return found
