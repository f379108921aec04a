"""A recording against the graph of its recipe: what was too early, left out, done twice."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from kitchensync.operations.session_state import State
from kitchensync.recipe_app.exchange.published_graphs import CollectionGraphs
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.task_graphs.formats.graph_json import parse_graph_json
from kitchensync.task_graphs.scoring.judge import Performed, Prerequisites, by_time, judge

KEPT = 1_000
"""As many as the overview shows."""


@dataclass(frozen=True, slots=True)
class OrderJudgement:
    """Steps by their texts: pairs (what came too early, what it should have waited for), left out, done twice."""

    early: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    repeated: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Return whether the order of the graph was kept and nothing was left out or repeated."""
        return not (self.early or self.missing or self.repeated)


class Judge:
    """Judges recordings; what did not change since is not judged again."""

    def __init__(self, records: AppRecords) -> None:
        self.records = records
        self._known: OrderedDict[tuple[str, int], OrderJudgement | None] = OrderedDict()
        self._collections: dict[str, CollectionGraphs] = {}

    def against(self, recording: dict[str, Any]) -> OrderJudgement | None:
        """Judge a row of the table of recordings; None before anything was done, or without the recipe's version."""
        key = (recording["id"], recording["last_n"])
        if key not in self._known:
            self._known[key] = self._judged(recording)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return self._known[key]

    def _judged(self, recording: dict[str, Any]) -> OrderJudgement | None:
        if not recording["steps_done"]:
            return None
        version = self.records.row(tables.recipe, recording["graph_hash"])
        state = self.records.state(recording["id"])
        done, frozen = performed(state), state["recording"]
        if version is not None:
            order = Prerequisites(parse_graph_json(version["graph"], name=recording["recipe"]))
        else:
            name = frozen.get("collection", "") if not recording["graph_hash"] else ""
            graphs = self._collections.setdefault(name, CollectionGraphs(name, self.records))
            came = graphs.order(frozen["source"]) if name else None
            if came is None:
                return None
            order, done = came, graphs.steps_of_graph(came, frozen["annotated"], done)
        found = judge(order, done)
        text = {step.node: step.text for step in order.graph.numbered.steps}
        return OrderJudgement(
            tuple((text[after], text[before]) for before, after in found.late_edges),
            tuple(text[node] for node in found.missing),
            tuple(dict.fromkeys(text[node] for node in found.repeated)),
        )


def performed(state: State) -> list[Performed]:
    """The runs of all steps by time, s on the capture clock; a run whose begin was not logged begins at its end."""
    found = []
    for node, step in state["steps"].items():
        for run in step["runs"]:
            start, end = run["start"], run["end"]
            if end is not None:
                found.append(Performed(int(node), (end if start is None else start) / 1e9, end / 1e9))
    return by_time(found)
