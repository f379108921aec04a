"""Examples of one recording: what is asked at each moment, with the answer that follows from graph or errors.

The moments are those of the published rules. Entries go by their start, those that were not done first, behind a step
of cooking itself (-1) that ends when the first step begins. Entries that were not done are neither asked about nor
history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NotRequired, TypedDict

from kitchensync.dataset.tables.step_rows import ErrorText, texts_of
from kitchensync.task_graphs.categories import TAG_OF_COLUMN
from kitchensync.task_graphs.formats.annotations import (
    MISSING_STEP,
    ORDER_ERROR,
    AnnotatedRecording,
    Entry,
    Seconds,
)
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.closure import full_closure, topological

BEFORE_ALL, UNKNOWN = -1, -2
"""Node of the step that stands for the time before the first one, and of one whose text the graph does not have."""
FIRST_END_S = 5.0
MOST_OVERLAP_S, OVERLAP_SHARE = 2.0, 0.9


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """An entry with the node of the graph that it is."""

    node: int
    entry: Entry

    @property
    def step_id(self) -> int | None:
        """The node as it is published, None where the graph does not know the text."""
        return None if self.node == UNKNOWN else self.node

    @property
    def name(self) -> str:
        """The node in the id of an example; of an unknown one the step id of the annotations."""
        return str(self.entry.step_id if self.node == UNKNOWN else self.node)

    @property
    def was_done(self) -> bool:
        """Return whether it was done, as the annotations have it."""
        return not self.entry.has_tag(MISSING_STEP) and self.entry.end_s >= 0

    @property
    def vanishes(self) -> bool:
        """Return whether it was done and yet, by the published rules, is neither asked about nor history."""
        return self.node != BEFORE_ALL and self.was_done and self.entry.end_s < FIRST_END_S


@dataclass(frozen=True)
class StoppedFilm:
    """What was done when the film is stopped at `end_s`: `history`, then `current`."""

    history: tuple[NodeEntry, ...]
    current: NodeEntry
    end_s: Seconds

    @property
    def done(self) -> frozenset[int]:
        """The nodes that were done."""
        return frozenset(one.node for one in (*self.history, self.current))


def node_entries(one: AnnotatedRecording, graph: Graph) -> tuple[list[NodeEntry], int]:
    """Return the entries in order of time, each with its node, and how many have a text that the graph lacks.

    Where several nodes have one text, the k-th entry is the k-th of them in topological order. An entry whose text no
    node has is asked about and history like others, but does not count as done.
    """
    nodes: dict[str, list[int]] = defaultdict(list)
    for node in topological(graph):
        nodes[graph.by_node[node].label].append(node)
    found, unknown, used = [], 0, defaultdict[str, int](int)
    for entry in sorted(one.entries, key=lambda entry: entry.start_s):
        known = nodes.get(entry.description)
        if known is None:
            unknown += 1
            known = [UNKNOWN]
        found.append(NodeEntry(known[min(used[entry.description], len(known) - 1)], entry))
        used[entry.description] += 1
    starts = [entry.start_s for entry in one.entries if entry.performed]
    first = Entry(BEFORE_ALL, "Start-Start cooking.", 0.0, min(starts, default=0.0))
    return [NodeEntry(BEFORE_ALL, first), *found], unknown


def prefixes(entries: list[NodeEntry], *, corrected: bool = False) -> Iterator[StoppedFilm]:
    """Yield each moment at which something is asked: none where a later step is under way when the film stops.

    By the published rules a step that ends in the first five seconds vanishes; `corrected`: nothing is asked so
    early, and the step is history.
    """
    history: list[NodeEntry] = []
    end_s: Seconds = 0
    counting = [one.was_done and (corrected or not one.vanishes) for one in entries]
    for place, one in enumerate(entries):
        end_s = max(end_s, one.entry.end_s)
        if not counting[place]:
            continue
        is_under_way = False
        for other, counts in zip(entries[place + 1 :], counting[place + 1 :], strict=True):
            start_s, other_end_s = other.entry.start_s, other.entry.end_s
            length_s = other_end_s - start_s
            margin_s = MOST_OVERLAP_S if length_s >= MOST_OVERLAP_S else OVERLAP_SHARE * length_s
            is_under_way |= counts and max(0, start_s + margin_s) < min(end_s, other_end_s)
        is_early = (end_s if corrected else one.entry.end_s) < FIRST_END_S
        if not is_early and not is_under_way:
            yield StoppedFilm(tuple(history), one, end_s)
        if one.node != BEFORE_ALL:
            history.append(one)


TAGS = {"order": ORDER_ERROR} | {
    column: tag for column, tag in TAG_OF_COLUMN.items() if tag not in (ORDER_ERROR, MISSING_STEP)
}
KINDS = ("next", "missing", *TAGS)
UNNOTICED = {"missing": frozenset({MISSING_STEP}), "order": frozenset({ORDER_ERROR, MISSING_STEP})}
"""Errors before that do not make a question of this kind harder."""


class ToldStep(TypedDict):
    """A step in an example: node of the graph, None where the graph lacks its text; errors where it has some."""

    step_id: int | None
    description: str
    errors: NotRequired[list[ErrorText]]


class QuestionAnswers(TypedDict):
    """A question with its answers."""

    question: str
    answers: list[str]


class KeptJudgement(TypedDict):
    """What one person says: whether a question is valid, whether each answer is right; by the criteria of assembly
    also whether it needs the video."""

    question: bool
    answers: list[bool]
    multimodal: NotRequired[bool]


class Verification(QuestionAnswers):
    """A question that people judge or judged."""

    judges: list[KeptJudgement]


class Generation(TypedDict):
    """Everything that was said when a model wrote questions; `refused`: why its answer was not taken."""

    prompt: str
    response: str | None
    model_id: str
    template_type: str
    qas: list[QuestionAnswers]
    refused: NotRequired[str]


class _Target(TypedDict, total=False):
    next_steps: list[ToldStep]
    missing_steps: list[ToldStep]
    error_description: str


class PromqaExample(_Target):
    """A question of a kind at a moment of a recording, with what answers it; keys as published.

    Those from `generation` on are there where a model wrote a question or people verified it; `clip` and what follows
    where films were written beside the list.
    """

    recording_id: str
    example_id: str
    question_id: str
    activity_name: str
    type: str
    end_time: str
    previous_steps: list[ToldStep]
    current_step: ToldStep
    is_noisy: bool
    generation: NotRequired[Generation]
    verification: NotRequired[Verification]
    adjudication: NotRequired[KeptJudgement | None]
    question: NotRequired[str]
    answers: NotRequired[list[str]]
    answer_tags: NotRequired[list[str]]
    clip: NotRequired[str]
    clip_frames: NotRequired[int]
    last_frame_s: NotRequired[float]
    frames: NotRequired[list[str]]


@dataclass(frozen=True)
class Targets:
    """What a graph asks for; nodes in the order in which its edges first name them."""

    graph: Graph
    ancestors: dict[int, set[int]]
    named: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph) -> Targets:
        """Work out a graph once for all its recordings. Raises CyclicGraph."""
        named = tuple(dict.fromkeys(node for edge in graph.edges for node in edge))
        return cls(graph, full_closure(graph), named)

    def next(self, done: frozenset[int]) -> list[int]:
        """Return the steps whose direct predecessors are all done and of whose descendants none is."""
        return [
            node
            for node in self._open(done)
            if all(before in done for before, after in self.graph.edges if after == node)
            and not self._has_done_descendant(node, done)
        ]

    def missing(self, done: frozenset[int]) -> list[int]:
        """Return the steps that were passed over: some ancestor is done and some descendant is."""
        return [
            node
            for node in self._open(done)
            if self.ancestors[node] & done and self._has_done_descendant(node, done)
        ]

    def texts_of(self, nodes: list[int]) -> list[ToldStep]:
        """Return steps as examples have them."""
        return [{"step_id": node, "description": self.graph.by_node[node].label} for node in nodes]

    def _open(self, done: frozenset[int]) -> Iterator[int]:
        return (node for node in self.named if node not in done and node != self.graph.end)

    def _has_done_descendant(self, node: int, done: frozenset[int]) -> bool:
        return any(node in self.ancestors.get(other, ()) for other in done)


class Examples(NamedTuple):
    """The examples of a recording; how many entries have a text that the graph lacks, and how many vanish."""

    rows: list[PromqaExample]
    unknown: int
    vanished: int


def examples(one: AnnotatedRecording, targets: Targets, *, corrected: bool = False) -> Examples:
    """Return the examples of a recording, each question once."""
    entries, unknown = node_entries(one, targets.graph)
    found: dict[str, PromqaExample] = {}
    for prefix in prefixes(entries, corrected=corrected):
        done = prefix.done | ({targets.graph.start} if targets.graph.start is not None else set())
        asked: dict[str, _Target] = {"next": {"next_steps": targets.texts_of(targets.next(done))}}
        if prefix.current.node != BEFORE_ALL:
            asked["missing"] = {"missing_steps": targets.texts_of(targets.missing(done))}
        for kind, tag in TAGS.items():
            if told := [error.description for error in prefix.current.entry.errors if error.tag == tag]:
                asked[kind] = {"error_description": told[-1]}
        example_id = f"{one.recording_id}_{prefix.current.name}"
        wrong = {error.tag for step in prefix.history for error in step.entry.errors}
        for kind, target in asked.items():
            example: PromqaExample = {
                "recording_id": one.recording_id,
                "example_id": example_id,
                "question_id": f"{example_id}_{kind}",
                "activity_name": one.activity_name,
                "type": kind,
                "end_time": clock(prefix.end_s),
                "previous_steps": [_told(step) for step in prefix.history],
                "current_step": _told(prefix.current),
                **target,
                "is_noisy": not wrong <= UNNOTICED.get(kind, frozenset()),
            }
            found.setdefault(example["question_id"], example)
    return Examples(list(found.values()), unknown, 0 if corrected else sum(one.vanishes for one in entries))


def clock(seconds: float) -> str:
    """Return hh:mm:ss, cut and not rounded."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest:02}"


def seconds_of(end_time: str) -> int:
    """Return hh:mm:ss as seconds."""
    hours, minutes, seconds = map(int, end_time.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def _told(step: NodeEntry) -> ToldStep:
    entry = step.entry
    told: ToldStep = {"step_id": step.step_id, "description": entry.modified or entry.description}
    if entry.errors:
        told["errors"] = texts_of(entry)
    return told
