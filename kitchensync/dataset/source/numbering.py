"""The published ids of a lab's recordings, recipes, steps, people and kitchens: given once, kept in a table.

A recording is `<activity>_<number>`: 1 to 25 where the script was meant as correct, 26 to 50 where errors were
planned, then 1001 and 1026 upwards. A second release reads the table of the first and gives the same ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kitchensync.shell.untrusted_json import parse_json
from kitchensync.task_graphs.errors import BadGraph

SCHEMA = "release-numbering/1"
KINDS = ("recordings", "activities", "steps", "persons", "environments")
_HALF, _LATER = 25, 1000


@dataclass
class Numbering:
    """The table; `recordings` goes by the recordings' UUIDs, the others by name or text."""

    recordings: dict[str, str] = field(default_factory=dict)
    activities: dict[str, int] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    persons: dict[str, int] = field(default_factory=dict)
    environments: dict[str, int] = field(default_factory=dict)

    def activity(self, name: str) -> int:
        """Return the number of a recipe."""
        return _numbered(self.activities, name)

    def step(self, text: str) -> int:
        """Return the number of a step's text, the same in all recipes."""
        return _numbered(self.steps, text)

    def person(self, pseudonym: str) -> int:
        """Return the number of a person."""
        return _numbered(self.persons, pseudonym)

    def environment(self, name: str) -> int:
        """Return the number of a kitchen."""
        return _numbered(self.environments, name)

    def recording(self, uuid: str, activity: int, *, errors_planned: bool) -> str:
        """Return the published id of a recording."""
        if uuid not in self.recordings:
            taken = set(self.recordings.values())
            numbers = (one for one in _numbers(errors_planned) if f"{activity}_{one}" not in taken)
            self.recordings[uuid] = f"{activity}_{next(numbers)}"
        return self.recordings[uuid]

    def as_text(self) -> str:
        """Return the table as it is kept."""
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
        raise BadGraph(name, "", f"is no table of published ids ({error})") from error
    return Numbering(**tables)


def _checked(table: Any, kind: type) -> dict[str, Any]:
    if not isinstance(table, dict) or not all(type(value) is kind for value in table.values()):
        raise ValueError("a table does not hold what it should")
    if len(set(table.values())) != len(table):
        raise ValueError("a number is given twice")
    return table


def _numbered(table: dict[str, int], key: str) -> int:
    return table.setdefault(key, max(table.values(), default=0) + 1)


def _numbers(errors_planned: bool) -> Any:
    first = _HALF * errors_planned + 1
    base = 0
    while True:
        yield from range(base + first, base + first + _HALF)
        base = base + _LATER if base == 0 else base + 2 * _HALF


def merged(mapping: Mapping[str, int]) -> dict[int, str]:
    """Return number -> text, by number."""
    return {number: text for text, number in sorted(mapping.items(), key=lambda one: one[1])}
