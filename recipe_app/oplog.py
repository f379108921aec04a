"""What the tablet's operations add up to: state is a fold over the event log, never stored by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from recipe_app.categories import CATEGORIES
from recipe_app.errors import BadOperation, NotNow

Event = dict[str, Any]

CHOOSE, DONE, ERROR, UNDO = "recipe", "done", "error", "undo"


@dataclass
class Entry:
    """One `done` or `error` as logged; `undone` when a later undo names it."""

    op_id: str
    kind: str
    host_ns: int
    step: int | None
    category: int | None
    undone: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return what a client may see of it."""
        return {
            "op_id": self.op_id,
            "kind": self.kind,
            "host_ns": self.host_ns,
            "step": self.step,
            "category": self.category,
            "undone": self.undone,
        }


@dataclass
class Progress:
    """Where a session stands: the recipe shown, what was done and logged, and how many events made it."""

    count: int = 0
    recipe: dict[str, Any] | None = None
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def order(self) -> list[int]:
        """The step ids in the order shown, empty before a recipe was chosen."""
        return list(self.recipe["order"]) if self.recipe else []

    @property
    def valid(self) -> list[Entry]:
        """The entries that were not undone, as logged."""
        return [entry for entry in self.entries.values() if not entry.undone]

    @property
    def done(self) -> list[int]:
        """The steps done, as logged, each once."""
        return list(dict.fromkeys(e.step for e in self.valid if e.kind == DONE and e.step is not None))

    @property
    def current(self) -> int | None:
        """The first step of the order that is not done, or None at the end."""
        done = set(self.done)
        return next((node for node in self.order if node not in done), None)


def fold(events: Iterable[Event]) -> Progress:
    """Replay a log. An event that is there twice (same op_id) counts once."""
    progress = Progress()
    for event in events:
        progress.count += 1
        body, op_id = event["body"], str(event["op_id"])
        if event["kind"] == CHOOSE:
            progress.recipe = body
        elif event["kind"] in (DONE, ERROR):
            entry = Entry(op_id, event["kind"], event["host_ns"], body.get("step"), body.get("category"))
            progress.entries.setdefault(op_id, entry)
        elif event["kind"] == UNDO and body.get("undoes") in progress.entries:
            progress.entries[body["undoes"]].undone = True
    return progress


def done_body(progress: Progress, *, step: int | None) -> dict[str, Any]:
    """Say which step was done: the given one, else the current one. Raises NotNow, BadOperation."""
    node = progress.current if step is None else step
    if node is None:
        raise NotNow("every step is done; undo one to do it again" if progress.recipe else _NO_RECIPE)
    return _step_fields(progress, node)


def error_body(progress: Progress, *, step: int | None, category: int | None, note: str) -> dict[str, Any]:
    """Say what went wrong, at the given step, else the current or last one. Raises BadOperation."""
    if category is None or not 0 <= category < len(CATEGORIES):
        raise BadOperation(f"category {category}: an error needs one of 0 to {len(CATEGORIES) - 1}")
    node = step if step is not None else progress.current
    if node is None and progress.order:
        node = progress.order[-1]
    fields = _step_fields(progress, node) if node is not None else {"step": None}
    fields |= {"category": category, "category_name": CATEGORIES[category].name}
    return fields | ({"note": note} if note else {})


def undo_body(progress: Progress, *, undoes: str | None) -> dict[str, Any]:
    """Say what is taken back: the named operation, else the last valid one. Raises NotNow."""
    if undoes is None:
        if not progress.valid:
            raise NotNow("there is nothing to undo")
        undoes = progress.valid[-1].op_id
    if undoes not in progress.entries:
        raise NotNow(f"operation {undoes} is not in the log; there is nothing to undo")
    entry = progress.entries[undoes]
    return {"undoes": undoes, "undone_kind": entry.kind, "step": entry.step}


_NO_RECIPE = "no recipe was chosen; choose one first"


def _step_fields(progress: Progress, node: int) -> dict[str, Any]:
    if progress.recipe is None:
        raise NotNow(_NO_RECIPE)
    if node not in progress.order:
        raise BadOperation(f"step {node} is not in the order shown")
    text = progress.recipe["steps"][str(node)]["text"]
    return {"step": node, "position": progress.order.index(node) + 1, "text": text}
