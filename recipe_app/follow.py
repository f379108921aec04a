"""What the app does with a request: choose an order, log an operation, say where a session stands."""

from __future__ import annotations

from typing import Any

from recipe_app.errors import NotNow
from recipe_app.graphs.orders import draw_orders
from recipe_app.oplog import (
    CHOOSE,
    DONE,
    ERROR,
    Event,
    Progress,
    done_body,
    error_body,
    fold,
    undo_body,
)
from recipe_app.requests import ChooseRecipe, ClientClock, Operation
from recipe_app.sessions import Session
from recipe_app.shelf import Recipe
from recipe_app.touch_clock import Exchange, Stamp, stamp_age, stamp_exchange, stamp_receipt


def state_of(session: Session) -> dict[str, Any]:
    """Return where a session stands; `count` grows with every event, so that a late answer is told from a new one."""
    with session.lock:
        progress = fold(session.events())
    return {
        "recording": session.name,
        "state": session.state,
        "count": progress.count,
        "recipe": _shown(progress),
        "done": progress.done,
        "current": progress.current,
        "entries": [entry.as_json() for entry in progress.entries.values()],
    }


def _shown(progress: Progress) -> dict[str, Any] | None:
    recipe = progress.recipe
    if recipe is None:
        return None
    steps = [{"node": node, **recipe["steps"][str(node)]} for node in recipe["order"]]
    keys = ("name", "title", "graph_hash", "seed", "sampler", "total")
    return {key: recipe[key] for key in keys} | {"steps": steps}


def draw_one(recipe: Recipe, seed: int) -> dict[str, Any]:
    """Draw the order of a seed; everything that is needed to show it later without the recipe's file."""
    graph = recipe.graph
    drawn = draw_orders(graph, count=1, seed=seed)
    return {
        "name": recipe.name,
        "title": recipe.title,
        "source": graph.name,
        "graph_hash": graph.content_hash,
        "seed": seed,
        "sampler": drawn.sampler,
        "total": drawn.total,
        "order": list(drawn.orders[0]),
        "steps": {str(step.node): {"label": step.label, "text": step.text} for step in graph.steps},
        "edges": [list(edge) for edge in graph.edges],
    }


def choose_recipe(session: Session, recipe: Recipe, request: ChooseRecipe, *, now_ns: int) -> dict[str, Any]:
    """Log and keep the order to follow. Raises NotNow once steps were logged or the recording has ended."""
    with session.lock:
        events = session.events()
        if not any(event["op_id"] == request.op_id for event in events):
            _refuse_late_choice(session, fold(events))
            body = draw_one(recipe, request.seed)
            session.append(CHOOSE, host_ns=now_ns, uncertainty_ns=0, op_id=request.op_id, body=body)
        shown = fold(session.events()).recipe or {}
        if session.state in ("recording", "standalone"):
            keys = ("name", "graph_hash", "order", "seed", "source")
            session.put_recipe({key: shown[key] for key in keys})
    return state_of(session)


def _refuse_late_choice(session: Session, progress: Progress) -> None:
    if session.state in ("stopped", "unknown"):
        raise NotNow(f"{session.name} is not recording; its recipe stays as it is")
    if progress.valid:
        raise NotNow(f"{session.name} has {len(progress.valid)} logged steps; undo them to change the recipe")


def log_operation(session: Session, operation: Operation, *, now_ns: int) -> dict[str, Any]:
    """Append one operation, or find it already there; return its receipt with the state after it.

    Raises NotNow, BadOperation.
    """
    with session.lock:
        events = session.events()
        stored = next((event for event in events if event["op_id"] == operation.op_id), None)
        duplicate = stored is not None
        if stored is None:
            stored = _append(session, operation, fold(events), now_ns)
        return {
            "op_id": operation.op_id,
            "host_ns": stored["host_ns"],
            "uncertainty_ns": stored["uncertainty_ns"],
            "duplicate": duplicate,
            "state": state_of(session),
        }


def _append(session: Session, operation: Operation, progress: Progress, now_ns: int) -> Event:
    stamp = _stamp(operation, now_ns)
    if operation.kind == DONE:
        body = done_body(progress, step=operation.step)
    elif operation.kind == ERROR:
        body = error_body(progress, step=operation.step, category=operation.category, note=operation.note)
    else:
        body = undo_body(progress, undoes=operation.undoes)
    body["received_host_ns"] = now_ns
    body["clock"] = {"basis": stamp.basis, **_raw_clock(operation)}
    return session.append(
        operation.kind,
        host_ns=stamp.host_ns,
        uncertainty_ns=stamp.uncertainty_ns,
        op_id=operation.op_id,
        body=body,
    )


def _stamp(operation: Operation, now_ns: int) -> Stamp:
    if operation.clock is not None:
        return stamp_exchange(_exchange(operation.clock), now_ns=now_ns)
    if operation.tapped_ms_ago is not None:
        return stamp_age(age_ms=operation.tapped_ms_ago, round_trip_ms=operation.round_trip_ms, now_ns=now_ns)
    return stamp_receipt(now_ns=now_ns)


def _exchange(clock: ClientClock) -> Exchange:
    return Exchange(**clock.model_dump())


def _raw_clock(operation: Operation) -> dict[str, Any]:
    """What the client said about time, untouched: it may be evaluated again with better mathematics."""
    raw = operation.model_dump(include={"tapped_ms_ago", "round_trip_ms"}, exclude_none=True)
    return raw | (operation.clock.model_dump(exclude={"basis"}) if operation.clock else {})
