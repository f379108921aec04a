"""The moments of a recording at which something is asked, and what was done until then, by the published rules.

Entries go by their start, those that were not done first, behind a step of cooking itself (-1) that ends when the
first step begins. Entries that were not done are neither asked about nor history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kitchensync.task_graphs.formats.annotations import MISSING_STEP, AnnotatedRecording, Entry, Seconds
from kitchensync.task_graphs.model import Graph
from kitchensync.task_graphs.order.closure import topological

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
