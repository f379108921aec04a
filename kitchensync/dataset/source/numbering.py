"""The published ids of a lab's recordings, recipes, steps, people and kitchens, kept in a table.

A recording is `<activity>_<number>`: 1 to 25 without planned errors, 26 to 50 with planned errors, then 1001 and 1026
upwards. A second release reads the table of the first and assigns the same ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from kitchensync.shell.untrusted_json import parse_json
from kitchensync.task_graphs.errors import BadGraph

SCHEMA = "release-numbering/1"
KINDS = ("recordings", "activities", "steps", "persons", "environments")
_HALF, _LATER = 25, 1000  # in the published ids, 25 of each 50 are without planned errors


@dataclass
class Numbering:
    """The table; `recordings` is keyed by UUID, the others by name or text."""

    recordings: dict[str, str] = field(default_factory=dict)
    activities: dict[str, int] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    persons: dict[str, int] = field(default_factory=dict)
    environments: dict[str, int] = field(default_factory=dict)

    def step(self, text: str) -> int:
        """Return the number of a step text, the same in all recipes."""
        return number_of(self.steps, text)

    def recording(self, uuid: str, activity: int, *, errors_planned: bool) -> str:
        """Return the published id of a recording."""
        if uuid not in self.recordings:
            taken = set(self.recordings.values())
            # 1 to 25 and 1001 to 1025, 1051 to 1075 ...; 25 more where errors were planned.
            bases = chain([0], count(_LATER, 2 * _HALF))
            numbers = (base + _HALF * errors_planned + n for base in bases for n in range(1, _HALF + 1))
            free = (number for number in numbers if f"{activity}_{number}" not in taken)
            self.recordings[uuid] = f"{activity}_{next(free)}"
        return self.recordings[uuid]

    def as_text(self) -> str:
        """Return the table as JSON text."""
        return (
            json.dumps({"schema": SCHEMA, **{kind: getattr(self, kind) for kind in KINDS}}, indent=1) + "\n"
        )


def parse_numbering(text: str, name: str) -> Numbering:
    """Read a table. Raises BadGraph."""
    try:
        content = parse_json(text)
        if content["schema"] != SCHEMA:
            raise ValueError(f"not of schema {SCHEMA}")
        tables = {kind: _checked(content[kind], str if kind == "recordings" else int) for kind in KINDS}
    except (ValueError, KeyError, TypeError) as error:
        raise BadGraph(name, "", f"is not a table of published ids ({error})") from error
    return Numbering(**tables)


def _checked(table: Any, kind: type) -> dict[str, Any]:
    if not isinstance(table, dict) or not all(type(value) is kind for value in table.values()):
        raise ValueError("a table has values of the wrong type")
    if len(set(table.values())) != len(table):
        raise ValueError("a number is assigned twice")
    return table


def number_of(table: dict[str, int], key: str) -> int:
    """Return the number of a name in a table; a new name gets the next number."""
    return table.setdefault(key, max(table.values(), default=0) + 1)


def merged(mapping: Mapping[str, int]) -> dict[int, str]:
    """Return number -> text, sorted by number."""
    return dict(sorted((number, text) for text, number in mapping.items()))
