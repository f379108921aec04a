"""Asking a model for hints of all steps of a recipe, one after the other, while people go on with other things."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recipe_app.graphs.model import Graph, Step
from recipe_app.hints.hint_server import Answered, HintTrouble, ask_model, server_of
from recipe_app.one_worker import OneWorker
from storage.shell.endpoint import Endpoint

TRIES = 3
"""How often one step is asked about where the server says that it is asked too much."""
MOST_FAILURES = 3
"""After so many steps in a row without an answer the rest is not asked."""
LAST_WAIT_S = 1.0
Keep = Callable[[Step, Answered], None]


@dataclass
class _Batch:
    recipe: str
    graph: Graph
    server: Endpoint
    keep: Keep
    done: int = 0
    kept: int = 0
    refused: int = 0
    troubles: list[str] = field(default_factory=list)
    "What went wrong, a line a step."
    is_over: bool = False

    def said(self) -> dict[str, Any]:
        return {
            "state": "done" if self.is_over else "asking",
            "done": self.done,
            "whole": len(self.graph.steps),
            "kept": self.kept,
            "refused": self.refused,
            "troubles": list(self.troubles),
        }


class HintBatches:
    """Batches by recipe, one at a time; `environment` names the server, and without it nobody is asked."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self.environment = environment
        self._batches: dict[str, _Batch] = {}
        self._worker: OneWorker[_Batch] = OneWorker("hints of a model", self._work)
        self._lock, self._end = self._worker.lock, self._worker.end

    def server(self) -> Endpoint | None:
        """Return the server that is named, or None. Raises OSError, ValueError for a key that cannot be used."""
        return server_of(self.environment, tries=TRIES)

    def state(self, recipe: str) -> dict[str, Any]:
        """Say how far a recipe's batch is: `none`, `asking` or `done`, with counts and what went wrong."""
        with self._lock:
            batch = self._batches.get(recipe)
            return {"state": "none"} if batch is None else batch.said()

    def ask(self, recipe: str, graph: Graph, server: Endpoint, keep: Keep) -> None:
        """Ask about every step of a recipe, unless that is under way; `keep` is called with each answer."""
        with self._lock:
            known = self._batches.get(recipe)
            if self._end.is_set() or (known is not None and not known.is_over):
                return
            batch = self._batches[recipe] = _Batch(recipe, graph, server, keep)
            self._worker.add(batch)

    def close(self) -> None:
        """Ask no more; what is being asked is waited for a moment and not kept."""
        self._worker.close(LAST_WAIT_S)

    def _work(self, batch: _Batch) -> None:
        try:
            self._ask_all(batch)
        finally:
            with self._lock:
                batch.is_over = True

    def _ask_all(self, batch: _Batch) -> None:
        failed = 0
        for step in batch.graph.steps:
            if failed == MOST_FAILURES or self._end.is_set():
                return
            try:
                answered = ask_model(batch.server, batch.graph, step, self.environment)
                with self._lock:
                    if self._end.is_set():
                        return
                    batch.keep(step, answered)
                    batch.kept += len(answered.hints)
                    batch.refused += sum(answered.refused.values())
                failed = 0
            except HintTrouble as trouble:
                failed += 1
                with self._lock:
                    batch.troubles.append(f"{step.text}: {trouble}")
            with self._lock:
                batch.done += 1
