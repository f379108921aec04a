"""What recordings say about the edges of a graph: kept, overlapped or broken, and which edges look too strict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kitchensync.task_graphs.model import Edge
from kitchensync.task_graphs.scoring.judge import Judgement, Prerequisites, State

STATES: tuple[State, ...] = ("kept", "overlapped", "late", "hard")


@dataclass(frozen=True, slots=True)
class Observation:
    """One judged recording; `is_normal` when no error was meant or seen in it."""

    recording: str
    judgement: Judgement
    is_normal: bool


@dataclass(frozen=True)
class EdgeEvidence:
    """The recordings by what they did to one edge, and how many of the error-free ones went against it."""

    edge: Edge
    recordings: dict[State, list[str]] = field(default_factory=lambda: {state: [] for state in STATES})
    without_first: list[str] = field(default_factory=list)
    normal: list[str] = field(default_factory=list)
    broken_in_normal: list[str] = field(default_factory=list)
    overlapped_in_normal: list[str] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """In how many recordings both steps were done."""
        return sum(len(names) for names in self.recordings.values())

    @property
    def is_challenged(self) -> bool:
        """Return whether somebody who made no error broke this edge: it may ask for too much."""
        return bool(self.broken_in_normal)


def weigh_edges(order: Prerequisites, observations: Iterable[Observation]) -> list[EdgeEvidence]:
    """Return the evidence of every edge, the most challenged first, then by edge."""
    found = {edge: EdgeEvidence(edge) for edge in order.edges}
    for seen in observations:
        for edge, state in seen.judgement.edges.items():
            evidence = found[edge]
            evidence.recordings[state].append(seen.recording)
            if seen.is_normal:
                evidence.normal.append(seen.recording)
                if state in ("late", "hard"):
                    evidence.broken_in_normal.append(seen.recording)
                elif state == "overlapped":
                    evidence.overlapped_in_normal.append(seen.recording)
        for edge in seen.judgement.unmet:
            found[edge].without_first.append(seen.recording)
    return sorted(found.values(), key=lambda e: (-len(e.broken_in_normal), e.edge))
