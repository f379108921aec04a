"""Evidence of recordings about the edges of a graph: kept, overlapped or broken, and edges that look too strict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kitchensync.task_graphs.model import Edge
from kitchensync.task_graphs.scoring.judge import Judgement, Prerequisites, State

STATES: tuple[State, ...] = ("kept", "overlapped", "late", "hard")


@dataclass(frozen=True, slots=True)
class Observation:
    """One judged recording; `is_normal` if no error was planned or tagged in it."""

    recording: str
    judgement: Judgement
    is_normal: bool


@dataclass(frozen=True)
class EdgeEvidence:
    """Recordings by their state of one edge, and error-free recordings that broke or overlapped it."""

    edge: Edge
    recordings: dict[State, list[str]] = field(default_factory=lambda: {state: [] for state in STATES})
    without_first: list[str] = field(default_factory=list)
    normal: list[str] = field(default_factory=list)
    broken_in_normal: list[str] = field(default_factory=list)
    overlapped_in_normal: list[str] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """Number of recordings in which both steps were done."""
        return sum(len(names) for names in self.recordings.values())

    @property
    def is_challenged(self) -> bool:
        """Return whether an error-free recording broke this edge, which may be too strict."""
        return bool(self.broken_in_normal)


def weigh_edges(order: Prerequisites, observations: Iterable[Observation]) -> list[EdgeEvidence]:
    """Return the evidence of every edge, the most challenged first, then by edge."""
    by_edge = {edge: EdgeEvidence(edge) for edge in order.edges}
    for observation in observations:
        recording = observation.recording
        for edge, state in observation.judgement.edges.items():
            evidence = by_edge[edge]
            evidence.recordings[state].append(recording)
            if observation.is_normal:
                evidence.normal.append(recording)
                if state in ("late", "hard"):
                    evidence.broken_in_normal.append(recording)
                elif state == "overlapped":
                    evidence.overlapped_in_normal.append(recording)
        for edge in observation.judgement.unmet:
            by_edge[edge].without_first.append(recording)
    return sorted(by_edge.values(), key=lambda e: (-len(e.broken_in_normal), e.edge))
