"""Judge a recording against its recipe's graph: steps too early, left out, repeated."""

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
"""Number of cached judgements, for those that the overview shows."""


@dataclass(frozen=True, slots=True)
class OrderJudgement:
    """Steps by their texts: pairs (step too early, its prerequisite), left out, repeated."""

    early: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    repeated: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Return whether the order of the graph was kept and nothing was left out or repeated."""
        return not (self.early or self.missing or self.repeated)


class Judge:
    """Judges recordings and caches the judgements of unchanged ones."""

    def __init__(self, records: AppRecords) -> None:
        self.records = records
        self._known: OrderedDict[tuple[str, int], OrderJudgement | None] = OrderedDict()
        self._collections: dict[str, CollectionGraphs] = {}

    def against(self, recording: dict[str, Any]) -> OrderJudgement | None:
        """Judge a row of the table of recordings; None before a step was done, or without the recipe's version."""
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
            graph_order = graphs.order(frozen["source"]) if name else None
            if graph_order is None:
                return None
            order, done = graph_order, graphs.steps_of_graph(graph_order, frozen["annotated"], done)
        judgement = judge(order, done)
        text = {step.node: step.text for step in order.graph.numbered.steps}
        return OrderJudgement(
            tuple((text[after], text[before]) for before, after in judgement.late_edges),
            tuple(text[node] for node in judgement.missing),
            tuple(dict.fromkeys(text[node] for node in judgement.repeated)),
        )


def performed(state: State) -> list[Performed]:
    """Return the runs of all steps by time, seconds on the capture clock; without a logged start, start = end."""
    runs = []
    for node, step in state["steps"].items():
        for run in step["runs"]:
            start, end = run["start"], run["end"]
            if end is not None:
                runs.append(Performed(int(node), (end if start is None else start) / 1e9, end / 1e9))
    return by_time(runs)
