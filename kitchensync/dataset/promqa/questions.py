"""Examples of one recording: what is asked at each moment, with the answer that follows from graph or errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kitchensync.dataset.promqa.prefixes import BEFORE_ALL, NodeEntry, StoppedFilm, node_entries, prefixes
from kitchensync.task_graphs.categories import TAG_OF_COLUMN
from kitchensync.task_graphs.formats.annotations import MISSING_STEP, ORDER_ERROR, AnnotatedRecording
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.closure import full_closure

TAGS = {"order": ORDER_ERROR} | {
    column: tag for column, tag in TAG_OF_COLUMN.items() if tag not in (ORDER_ERROR, MISSING_STEP)
}
KINDS = ("next", "missing", *TAGS)
UNNOTICED = {"missing": frozenset({MISSING_STEP}), "order": frozenset({ORDER_ERROR, MISSING_STEP})}
"""Errors before that do not make a question of this kind harder."""

Example = dict[str, Any]


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

    def _open(self, done: frozenset[int]) -> Iterator[int]:
        return (node for node in self.named if node not in done and node != self.graph.end)

    def _has_done_descendant(self, node: int, done: frozenset[int]) -> bool:
        return any(node in self.ancestors.get(other, ()) for other in done)


class Examples(NamedTuple):
    """The examples of a recording; how many entries have a text that the graph lacks, and how many vanish."""

    rows: list[Example]
    unknown: int
    vanished: int


def examples(one: AnnotatedRecording, targets: Targets, *, corrected: bool = False) -> Examples:
    """Return the examples of a recording, each question once."""
    entries, unknown = node_entries(one, targets.graph)
    found: dict[str, Example] = {}
    for prefix in prefixes(entries, corrected=corrected):
        for example in _asked(one, prefix, targets):
            found.setdefault(example["question_id"], example)
    return Examples(list(found.values()), unknown, 0 if corrected else sum(one.vanishes for one in entries))


def _asked(one: AnnotatedRecording, prefix: StoppedFilm, targets: Targets) -> Iterator[Example]:
    current = prefix.current
    start = targets.graph.start
    done = prefix.done | ({start} if start is not None else set())
    yield _example(one, prefix, "next", {"next_steps": _steps(targets, targets.next(done))})
    if current.node != BEFORE_ALL:
        yield _example(one, prefix, "missing", {"missing_steps": _steps(targets, targets.missing(done))})
    for kind, tag in TAGS.items():
        if told := [error.description for error in current.entry.errors if error.tag == tag]:
            yield _example(one, prefix, kind, {"error_description": told[-1]})


def _example(one: AnnotatedRecording, prefix: StoppedFilm, kind: str, target: dict[str, Any]) -> Example:
    example_id = f"{one.recording_id}_{prefix.current.name}"
    return {
        "recording_id": one.recording_id,
        "example_id": example_id,
        "question_id": f"{example_id}_{kind}",
        "activity_name": one.activity_name,
        "type": kind,
        "end_time": clock(prefix.end_s),
        "previous_steps": [_told(step) for step in prefix.history],
        "current_step": _told(prefix.current),
        **target,
        "is_noisy": _is_noisy(prefix, kind),
    }


def clock(seconds: float) -> str:
    """Return hh:mm:ss, cut and not rounded."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest:02}"


def seconds_of(end_time: str) -> int:
    """Return hh:mm:ss as seconds."""
    hours, minutes, seconds = map(int, end_time.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def _is_noisy(prefix: StoppedFilm, kind: str) -> bool:
    unnoticed = UNNOTICED.get(kind, frozenset())
    return any(error.tag not in unnoticed for step in prefix.history for error in step.entry.errors)


def _told(step: NodeEntry) -> dict[str, Any]:
    entry = step.entry
    told: dict[str, Any] = {"step_id": step.step_id, "description": entry.modified or entry.description}
    if entry.errors:
        told["errors"] = [{"tag": error.tag, "description": error.description} for error in entry.errors]
    return told


def _steps(targets: Targets, nodes: list[int]) -> list[dict[str, Any]]:
    return [{"step_id": node, "description": targets.graph.by_node[node].label} for node in nodes]
