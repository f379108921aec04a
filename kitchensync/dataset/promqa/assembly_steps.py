"""Steps of an assembled toy, read from mistake files of Assembly101, and questions about them, drawn by a seed.

`start,end,verb,this,that,label,remark`, a line a step, no header, start and end in pictures. Published files have
lines that are otherwise: each is counted; one that cannot be read is no step, nothing is guessed.
"""

from __future__ import annotations

import csv
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from kitchensync.dataset.promqa.questions import Targets
from kitchensync.task_graphs.formats.assembly import ticks
from kitchensync.task_graphs.model import Graph

FPS = 30
VERBS = {"attach": "attach {} to {}", "detach": "detach {} from {}", "interior": "detach {} from {}"}
"""Verb -> text of a step; one published verb is a slip for `detach`."""
SLIP = "interior"
SCREWING = "screw"
"""Fine actions that begin so fasten with a screw."""
STEP_KINDS = ("correct", "mistake", "correction")
REMARKS = ("", "wrong order", "wrong position", "shouldn't have happened", "previous one is a mistake")
_FIELDS = 7
_NUMBER = re.compile(r"[0-9]{1,9}")


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
    rows = csv.reader(text.splitlines())
    while True:
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error:  # a field of a hundred thousand letters
            irregular += 1
            continue
        fields = [field.strip() for field in row]
        if not any(fields):
            continue
        step = _step(fields)
        if step is not None:
            steps.append(step)
        irregular += step is None or step.verb == SLIP or step.remark not in REMARKS
    return steps, irregular


def screwing_spans(text: str) -> dict[str, list[tuple[float, float]]]:
    """Return by video when something was screwed, in seconds, from a table of fine actions of Assembly101.

    Raises KeyError for a table that lacks video, start_frame, end_frame or action_cls; ValueError for no number.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        if row["action_cls"].startswith(SCREWING):
            span = (int(row["start_frame"]) / FPS, int(row["end_frame"]) / FPS)
            found.setdefault(row["video"].partition("/")[0], []).append(span)
    return found


def _step(fields: list[str]) -> AssemblyStep | None:
    if len(fields) != _FIELDS or not all(_NUMBER.fullmatch(one) for one in fields[:2]):
        return None
    start, end, (verb, this, that, kind, remark) = int(fields[0]), int(fields[1]), fields[2:]
    if verb not in VERBS or kind not in STEP_KINDS or not this or not that or end < start:
        return None
    return AssemblyStep(start / FPS, end / FPS, verb, this, that, kind, remark)


SHORTEST_S = 10.0
Span = tuple[float, float]
REMARKED = {
    "order": "wrong order",
    "past": "previous one is a mistake",
    "misadjustment": "shouldn't have happened",
    "location": "wrong position",
}
"""Kind of question -> the remark that answers it."""


class AssemblyRow(TypedDict):
    """A moment after a step; `end` and `free_s` in seconds. `kind` is there where rows were drawn by kind."""

    toy: str
    sequence: str
    end: float
    free_s: float | None
    history: list[str]
    current: str
    label: str
    next: list[str]
    missing: list[str]
    candidates: dict[str, list[str] | bool | None]
    w_screw: bool | None
    is_screwed: bool | None
    irregular_lines: NotRequired[int]
    kind: NotRequired[str]


def assembly_rows(
    toy: str, sequence: str, steps: list[AssemblyStep], graph: Graph, screwing: list[Span] | None = None
) -> Iterator[AssemblyRow]:
    """Yield the rows of a sequence; none in its first ten seconds, or where a later step is under way.

    `candidates` has the answer to each of eight kinds of question, None where the files do not tell it. `screwing`
    are the seconds in which something was screwed; without them `is_screwed` is None.
    """
    targets = Targets.of(graph)
    fastened = {graph.by_node[node].label: ticked for node, ticked in ticks(graph).items()}
    history: list[str] = []
    for place, step in enumerate(steps):
        if step.undoes is None:
            history.append(step.text)
        elif step.undoes in history:  # what is taken apart again takes back the latest that put it together
            del history[len(history) - 1 - history[::-1].index(step.undoes)]
        later = steps[place + 1 :]
        is_under_way = any(max(step.start_s, one.start_s) < min(step.end_s, one.end_s) for one in later)
        if step.end_s - steps[0].start_s < SHORTEST_S or is_under_way:
            continue
        texts = set(history)  # steps without edges are no part of it
        done = frozenset(one.node for one in graph.nodes if one.label in texts or one.node == graph.start)
        following, passed = (
            [graph.by_node[node].label for node in nodes]
            for nodes in (targets.next(done), targets.missing(done))
        )
        yield {
            "toy": toy,
            "sequence": sequence,
            "end": step.end_s,
            "free_s": min((one.start_s - step.end_s for one in later), default=None),
            "history": list(history),
            "current": step.text,
            "label": step.kind,
            "next": following,
            "missing": passed,
            "candidates": {
                "next": following,
                "missing": passed,
                **{kind: step.remark == remark for kind, remark in REMARKED.items()},
                "general": None,
                "current_general": None,
            },
            "w_screw": fastened.get(step.text),
            "is_screwed": None
            if screwing is None
            else any(step.start_s <= start and end <= step.end_s for start, end in screwing),
        }


KINDS = ("next", "missing", "order", "past", "misadjustment", "general", "location", "current_general")
MOST_OF_SEQUENCE, MOST_OF_KIND = 2, 100


def sample(rows: Iterable[AssemblyRow], seed: int, most: int = MOST_OF_KIND) -> list[AssemblyRow]:
    """Draw a row with its `kind` for each question: at most two of a kind and sequence, `most` of a kind.

    A mistake made in the last step itself comes first. A kind that a remark answers is asked where the remark stands.
    """
    chance = random.Random(seed)
    rows = list(rows)
    found: list[AssemblyRow] = []
    for kind in KINDS:
        by_sequence: dict[str, list[AssemblyRow]] = defaultdict(list)
        for row in rows:
            if row["candidates"][kind] is not False:
                by_sequence[row["sequence"]].append(row)
        drawn = []
        for ours in by_sequence.values():
            chance.shuffle(ours)
            drawn += sorted(ours, key=lambda row: row["label"] != "mistake")[:MOST_OF_SEQUENCE]
        chance.shuffle(drawn)
        kept = sorted(drawn[:most], key=lambda row: (row["sequence"], row["end"]))
        found += [{**row, "kind": kind} for row in kept]
    return found
