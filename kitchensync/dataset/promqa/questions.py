"""Examples of one recording: the questions at each moment, with answers from the graph or the annotated errors.

The moments follow the published rules. Entries are ordered by start, entries not done first, after a pseudo-step
"start cooking" (-1) that ends when the first step begins. Entries that were not done are neither asked about nor
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
"""Node of the pseudo-step before the first step, and of a step whose text is not in the graph."""
FIRST_END_S = 5.0  # the published code skips entries that end earlier
MOST_OVERLAP_S, OVERLAP_SHARE = 2.0, 0.9  # published: a later step counts from this long after its start


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """An entry with its node of the graph."""

    node: int
    entry: Entry

    @property
    def step_id(self) -> int | None:
        """The published node, None if the text is not in the graph."""
        return None if self.node == UNKNOWN else self.node

    @property
    def name(self) -> str:
        """The node in the id of an example; for an unknown node the step id of the annotations."""
        return str(self.entry.step_id if self.node == UNKNOWN else self.node)

    @property
    def was_done(self) -> bool:
        """Whether it was done, by the annotations."""
        return not self.entry.has_tag(MISSING_STEP) and self.entry.end_s >= 0

    @property
    def vanishes(self) -> bool:
        """Whether it was done and is still dropped by the published rules."""
        return self.node != BEFORE_ALL and self.was_done and self.entry.end_s < FIRST_END_S


@dataclass(frozen=True)
class StoppedFilm:
    """The steps done before the video stops at `end_s`: `history`, then `current`."""

    history: tuple[NodeEntry, ...]
    current: NodeEntry
    end_s: Seconds

    @property
    def done(self) -> frozenset[int]:
        """The nodes that were done."""
        return frozenset(step.node for step in (*self.history, self.current))


def node_entries(recording: AnnotatedRecording, graph: Graph) -> tuple[list[NodeEntry], int]:
    """Return the entries in order of time, each with its node, and the number of texts that are not in the graph.

    If several nodes have one text, the k-th entry is the k-th of them in topological order. An entry with an unknown
    text is asked about and part of the history, but does not count as done.
    """
    by_text: dict[str, list[int]] = defaultdict(list)
    for node in topological(graph):
        by_text[graph.by_node[node].label].append(node)
    steps, unknown, used = [], 0, defaultdict[str, int](int)
    for entry in sorted(recording.entries, key=lambda entry: entry.start_s):
        nodes = by_text.get(entry.description)
        if nodes is None:
            unknown += 1
            nodes = [UNKNOWN]
        steps.append(NodeEntry(nodes[min(used[entry.description], len(nodes) - 1)], entry))
        used[entry.description] += 1
    starts = [entry.start_s for entry in recording.entries if entry.performed]
    first = Entry(BEFORE_ALL, "Start-Start cooking.", 0.0, min(starts, default=0.0))
    return [NodeEntry(BEFORE_ALL, first), *steps], unknown


def prefixes(steps: list[NodeEntry], *, corrected: bool = False) -> Iterator[StoppedFilm]:
    """Yield each moment with questions: none if a later step is in progress when the video stops.

    By the published rules a step that ends in the first five seconds is dropped; `corrected`: nothing is asked that
    early, and the step is history.
    """
    history: list[NodeEntry] = []
    end_s: Seconds = 0
    counting = [step.was_done and (corrected or not step.vanishes) for step in steps]
    for place, step in enumerate(steps):
        end_s = max(end_s, step.entry.end_s)
        if not counting[place]:
            continue
        is_in_progress = False
        for other, counts in zip(steps[place + 1 :], counting[place + 1 :], strict=True):
            start_s, other_end_s = other.entry.start_s, other.entry.end_s
            length_s = other_end_s - start_s
            margin_s = MOST_OVERLAP_S if length_s >= MOST_OVERLAP_S else OVERLAP_SHARE * length_s
            is_in_progress |= counts and max(0, start_s + margin_s) < min(end_s, other_end_s)
        is_early = (end_s if corrected else step.entry.end_s) < FIRST_END_S
        if not is_early and not is_in_progress:
            yield StoppedFilm(tuple(history), step, end_s)
        if step.node != BEFORE_ALL:
            history.append(step)


TAGS = {"order": ORDER_ERROR} | {
    column: tag for column, tag in TAG_OF_COLUMN.items() if tag not in (ORDER_ERROR, MISSING_STEP)
}
KINDS = ("next", "missing", *TAGS)
UNNOTICED = {"missing": frozenset({MISSING_STEP}), "order": frozenset({ORDER_ERROR, MISSING_STEP})}
"""Kind of question -> earlier errors that do not make it noisy."""


class ExampleStep(TypedDict):
    """A step in an example: node of the graph, None if its text is not in the graph, and errors if any."""

    step_id: int | None
    description: str
    errors: NotRequired[list[ErrorText]]


class QuestionAnswers(TypedDict):
    """A question with its answers."""

    question: str
    answers: list[str]


class KeptJudgement(TypedDict):
    """One person's judgement: is the question valid, is each answer right; for assembly, is the video needed."""

    question: bool
    answers: list[bool]
    multimodal: NotRequired[bool]


class Verification(QuestionAnswers):
    """A question with the judgements about it."""

    judges: list[KeptJudgement]


class Generation(TypedDict):
    """Prompt, reply and questions of a model; `refused` is why its reply was not used."""

    prompt: str
    response: str | None
    model_id: str
    template_type: str
    qas: list[QuestionAnswers]
    refused: NotRequired[str]


class _Target(TypedDict, total=False):
    next_steps: list[ExampleStep]
    missing_steps: list[ExampleStep]
    error_description: str


class PromqaExample(_Target):
    """A question of a kind at a moment of a recording, with its answer; keys as published.

    Keys from `generation` on exist if a model wrote a question or people verified it; keys from `clip` on if media
    were written beside the list.
    """

    recording_id: str
    example_id: str
    question_id: str
    activity_name: str
    type: str
    end_time: str
    previous_steps: list[ExampleStep]
    current_step: ExampleStep
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
    """A graph prepared for the questions `next` and `missing`; `nodes` in the order of their first edge."""

    graph: Graph
    ancestors: dict[int, set[int]]
    nodes: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph) -> Targets:
        """Prepare a graph once for all its recordings. Raises CyclicGraph."""
        nodes = tuple(dict.fromkeys(node for edge in graph.edges for node in edge))
        return cls(graph, full_closure(graph), nodes)

    def next(self, done: frozenset[int]) -> list[int]:
        """Return the steps with all direct predecessors done and no descendant done."""
        return [
            node
            for node in self._open(done)
            if all(before in done for before, after in self.graph.edges if after == node)
            and not self._has_done_descendant(node, done)
        ]

    def missing(self, done: frozenset[int]) -> list[int]:
        """Return the skipped steps: an ancestor and a descendant are done."""
        return [
            node
            for node in self._open(done)
            if self.ancestors[node] & done and self._has_done_descendant(node, done)
        ]

    def texts_of(self, nodes: list[int]) -> list[ExampleStep]:
        """Return nodes as steps of an example."""
        return [{"step_id": node, "description": self.graph.by_node[node].label} for node in nodes]

    def _open(self, done: frozenset[int]) -> Iterator[int]:
        return (node for node in self.nodes if node not in done and node != self.graph.end)

    def _has_done_descendant(self, node: int, done: frozenset[int]) -> bool:
        return any(node in self.ancestors.get(other, ()) for other in done)


class Examples(NamedTuple):
    """The examples of a recording; the numbers of entries with a text not in the graph and of dropped entries."""

    rows: list[PromqaExample]
    unknown: int
    vanished: int


def examples(recording: AnnotatedRecording, targets: Targets, *, corrected: bool = False) -> Examples:
    """Return the examples of a recording, each question once."""
    steps, unknown = node_entries(recording, targets.graph)
    rows: dict[str, PromqaExample] = {}
    for prefix in prefixes(steps, corrected=corrected):
        done = prefix.done | ({targets.graph.start} if targets.graph.start is not None else set())
        answers: dict[str, _Target] = {"next": {"next_steps": targets.texts_of(targets.next(done))}}
        if prefix.current.node != BEFORE_ALL:
            answers["missing"] = {"missing_steps": targets.texts_of(targets.missing(done))}
        for kind, tag in TAGS.items():
            if texts := [error.description for error in prefix.current.entry.errors if error.tag == tag]:
                answers[kind] = {"error_description": texts[-1]}
        example_id = f"{recording.recording_id}_{prefix.current.name}"
        earlier_errors = {error.tag for step in prefix.history for error in step.entry.errors}
        for kind, target in answers.items():
            example: PromqaExample = {
                "recording_id": recording.recording_id,
                "example_id": example_id,
                "question_id": f"{example_id}_{kind}",
                "activity_name": recording.activity_name,
                "type": kind,
                "end_time": clock(prefix.end_s),
                "previous_steps": [_example_step(step) for step in prefix.history],
                "current_step": _example_step(prefix.current),
                **target,
                "is_noisy": not earlier_errors <= UNNOTICED.get(kind, frozenset()),
            }
            rows.setdefault(example["question_id"], example)
    return Examples(list(rows.values()), unknown, 0 if corrected else sum(step.vanishes for step in steps))


def clock(seconds: float) -> str:
    """Return hh:mm:ss, truncated."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest:02}"


def seconds_of(end_time: str) -> int:
    """Return hh:mm:ss as seconds."""
    hours, minutes, seconds = map(int, end_time.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def _example_step(step: NodeEntry) -> ExampleStep:
    entry = step.entry
    row: ExampleStep = {"step_id": step.step_id, "description": entry.modified or entry.description}
    if entry.errors:
        row["errors"] = texts_of(entry)
    return row
