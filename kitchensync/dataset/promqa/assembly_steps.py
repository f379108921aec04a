"""Steps of an assembled toy, read from mistake files of Assembly101, and questions about them, drawn by a seed.

One step per line, no header: `start,end,verb,this,that,label,remark`, start and end in frames. Some lines of the
published files differ from this form: they are counted, and skipped if they cannot be parsed.
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

FPS = 30  # published start and end are in frames of 1/30 s
VERBS = {"attach": "attach {} to {}", "detach": "detach {} from {}", "interior": "detach {} from {}"}
"""Verb -> text of a step; the published verb `interior` is a mistake for `detach`."""
SLIP = "interior"
SCREWING = "screw"
"""Prefix of fine actions that fasten with a screw."""
STEP_KINDS = ("correct", "mistake", "correction")
REMARKS = ("", "wrong order", "wrong position", "shouldn't have happened", "previous one is a mistake")
_FIELDS = 7
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class AssemblyStep:
    """A step, in seconds of the video."""

    start_s: float
    end_s: float
    verb: str
    this: str
    that: str
    kind: str
    remark: str = ""

    @property
    def text(self) -> str:
        """The label of the node in the graph."""
        return VERBS[self.verb].format(self.this, self.that)

    @property
    def undoes(self) -> str | None:
        """The text of the step that it undoes, if any."""
        return None if self.verb == "attach" else VERBS["attach"].format(self.this, self.that)


def parse_steps(text: str) -> tuple[list[AssemblyStep], int]:
    """Return the steps of a file in its order, and the number of irregular lines."""
    steps, irregular = [], 0
    rows = csv.reader(text.splitlines())
    while True:
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error:  # a field over the limit of the csv module
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
    """Return video -> spans of screwing, seconds, from a table of fine actions of Assembly101.

    Raises KeyError without a column video, start_frame, end_frame or action_cls; ValueError for a bad number.
    """
    by_video: dict[str, list[tuple[float, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        if row["action_cls"].startswith(SCREWING):
            span = (int(row["start_frame"]) / FPS, int(row["end_frame"]) / FPS)
            by_video.setdefault(row["video"].partition("/")[0], []).append(span)
    return by_video


def _step(fields: list[str]) -> AssemblyStep | None:
    if len(fields) != _FIELDS or not all(_NUMBER.fullmatch(field) for field in fields[:2]):
        return None
    start, end, (verb, this, that, kind, remark) = int(fields[0]), int(fields[1]), fields[2:]
    if verb not in VERBS or kind not in STEP_KINDS or not this or not that or end < start:
        return None
    return AssemblyStep(start / FPS, end / FPS, verb, this, that, kind, remark)


SHORTEST_S = 10.0  # as in the published code, which asks nothing of a shorter beginning
Span = tuple[float, float]
REMARKED = {
    "order": "wrong order",
    "past": "previous one is a mistake",
    "misadjustment": "shouldn't have happened",
    "location": "wrong position",
}
"""Kind of question -> the remark that answers it."""


class AssemblyRow(TypedDict):
    """A moment after a step; `end` and `free_s` in seconds. Only rows drawn by kind have `kind`."""

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
    """Yield the rows of a sequence; none in its first ten seconds or while a later step is in progress.

    `candidates` has the answer to each of eight kinds of question, None if the files do not contain it. `screwing`
    are the spans of screwing in seconds; without them `is_screwed` is None.
    """
    targets = Targets.of(graph)
    fastened = {graph.by_node[node].label: ticked for node, ticked in ticks(graph).items()}
    history: list[str] = []
    for place, step in enumerate(steps):
        if step.undoes is None:
            history.append(step.text)
        elif step.undoes in history:  # the latest step with this text is undone
            del history[len(history) - 1 - history[::-1].index(step.undoes)]
        later = steps[place + 1 :]
        is_in_progress = any(
            max(step.start_s, other.start_s) < min(step.end_s, other.end_s) for other in later
        )
        if step.end_s - steps[0].start_s < SHORTEST_S or is_in_progress:
            continue
        texts = set(history)
        done = frozenset(node.node for node in graph.nodes if node.label in texts or node.node == graph.start)
        following, passed = (
            [graph.by_node[node].label for node in nodes]
            for nodes in (targets.next(done), targets.missing(done))
        )
        yield {
            "toy": toy,
            "sequence": sequence,
            "end": step.end_s,
            "free_s": min((other.start_s - step.end_s for other in later), default=None),
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

    Rows whose last step is a mistake come first. Kinds answered by a remark are asked only where it was made.
    """
    chance = random.Random(seed)
    rows = list(rows)
    result: list[AssemblyRow] = []
    for kind in KINDS:
        by_sequence: dict[str, list[AssemblyRow]] = defaultdict(list)
        for row in rows:
            if row["candidates"][kind] is not False:
                by_sequence[row["sequence"]].append(row)
        drawn = []
        for of_sequence in by_sequence.values():
            chance.shuffle(of_sequence)
            drawn += sorted(of_sequence, key=lambda row: row["label"] != "mistake")[:MOST_OF_SEQUENCE]
        chance.shuffle(drawn)
        kept = sorted(drawn[:most], key=lambda row: (row["sequence"], row["end"]))
        result += [{**row, "kind": kind} for row in kept]
    return result
