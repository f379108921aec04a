"""Steps of an assembled toy, read from the mistake files of Assembly101: a line a step, no header.

`start,end,verb,this,that,label,remark`, start and end in pictures. Published files have lines that are otherwise:
each is counted; one that cannot be read is no step, nothing is guessed.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

FPS = 30
VERBS = {"attach": "attach {} to {}", "detach": "detach {} from {}", "interior": "detach {} from {}"}
"""Verb -> text of a step; one published verb is a slip for `detach`."""
SLIP = "interior"
KINDS = ("correct", "mistake", "correction")
REMARKS = ("", "wrong order", "wrong position", "shouldn't have happened", "previous one is a mistake")
_FIELDS = 7


@dataclass(frozen=True, slots=True)
class AssemblyStep:
    """One step, in seconds of the film."""

    start_s: float
    end_s: float
    verb: str
    this: str
    that: str
    kind: str
    remark: str = ""

    @property
    def text(self) -> str:
        """What was done, as a node of the graph says it."""
        return VERBS[self.verb].format(self.this, self.that)

    @property
    def undoes(self) -> str | None:
        """The text of the step that it takes back, if it does."""
        return None if self.verb == "attach" else VERBS["attach"].format(self.this, self.that)


def parse_steps(text: str) -> tuple[list[AssemblyStep], int]:
    """Return the steps of a file in its order, and how many lines are not as they should be."""
    steps, irregular = [], 0
    for row in csv.reader(text.splitlines()):
        fields = [field.strip() for field in row]
        if not any(fields):
            continue
        step = _step(fields)
        if step is not None:
            steps.append(step)
        irregular += step is None or step.verb == SLIP or step.remark not in REMARKS
    return steps, irregular


def _step(fields: list[str]) -> AssemblyStep | None:
    if len(fields) != _FIELDS or not all(one.isascii() and one.isdigit() for one in fields[:2]):
        return None
    start, end, (verb, this, that, kind, remark) = int(fields[0]), int(fields[1]), fields[2:]
    if verb not in VERBS or kind not in KINDS or not this or not that or end < start:
        return None
    return AssemblyStep(start / FPS, end / FPS, verb, this, that, kind, remark)
