"""Random histories of a recording, as several devices could make them."""

from __future__ import annotations

import random
from typing import Any

from kitchensync.recipe_app.store.app_records import new_id

NODES = [4, 7, 9, 12]
KINDS = (
    *("start", "done", "reopen", "skip", "hold", "undo", "undo", "error", "plan_error", "add_error"),
    *("recovered", "edit_error", "edit_error", "edit_error", "mark", "check", "timer", "hint", "prepared"),
    *("checked", "end", "claim", "release", "pause", "resume", "withdraw", "keep", "capture"),
    "close_review",
)
FIELDS = ("expected", "actual", "text", "language", "description", "outcome_note", "intent", "noticed")

TIMER = ("start", "stop", "rang", "lengthen", "pause", "resume")


def recording_body(**more: Any) -> dict[str, Any]:
    """Return the body that the server freezes when a recipe is chosen."""
    steps = {str(node): {"label": f"Stir-Stir {node}", "text": f"Stir {node}"} for node in NODES}
    return {
        "folder": None,
        "kitchen": "k1",
        "name": "soup",
        "title": "Soup",
        "graph_hash": "0" * 64,
        "strategy": "induced",
        "display": "steps",
        "order": NODES,
        "steps": steps,
        "edges": [],
        "planned": [],
        "script": None,
        "seed": 1,
        **more,
    }


def operation(
    rng: random.Random, n: int | None, kind: str, body: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """Return an operation in the form of the log."""
    return {
        "op_id": new_id(rng.getrandbits(60)),
        "n": n,
        "device": rng.choice(("tablet", "desk")),
        "seen": rng.randrange(0, n or 40),
        "kind": kind,
        "body": body,
        "host_ns": rng.randrange(1, 60) * 10**9,
        **more,
    }


def history(seed: int, length: int = 40) -> list[dict[str, Any]]:
    """Return a recording and random operations on it, some twice, the last few not yet sent."""
    rng = random.Random(seed)
    planned = [
        {"error_id": new_id(rng.getrandbits(60)), "fields": {"node": 7, "categories": [2], "text": "First"}}
    ]
    ops = [operation(rng, 1, "recording", recording_body(planned=planned), device="server", seen=0)]
    errors = [planned[0]["error_id"]]
    for number in range(2, length):
        n = number if number < length - 6 else None
        kind, body = _anything(rng, errors, ops)
        ops.append(operation(rng, n, kind, body))
        if rng.random() < 0.1:
            ops.append(rng.choice(ops))
    return ops


def _anything(rng: random.Random, errors: list[str], ops: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    kind = rng.choice(KINDS)
    node = rng.choice(NODES)
    if kind == "undo":
        return kind, {
            "undoes": rng.sample([op["op_id"] for op in ops], k=min(len(ops), rng.choice((1, 1, 2))))
        }
    if kind in ("error", "plan_error", "add_error"):
        errors.append(new_id(rng.getrandbits(60)))
        fields: dict[str, Any] = {"node": node, "categories": [rng.choice((*range(8), 2, 2))]}
        fields |= {"before": rng.choice(NODES)} if rng.random() < 0.7 else {}
        return kind, {"error_id": errors[-1], "fields": fields}
    if kind == "edit_error":
        values: dict[str, Any] = {rng.choice(FIELDS): rng.choice("abc"), "removed": rng.random() < 0.2}
        values |= {"before": rng.choice(NODES)} if rng.random() < 0.3 else {}
        values |= {"at": rng.randrange(9) * 10**9, "corrected_by": -1} if rng.random() < 0.2 else {}
        return kind, {"error_id": rng.choice(errors), "fields": values}
    bodies: dict[str, dict[str, Any]] = {
        "recovered": {"error_id": rng.choice(errors), "left_out": rng.random() < 0.3},
        "mark": {"text": "here"},
        "check": {"item": rng.choice(("watch", "phone")), "checked": rng.random() < 0.7},
        "timer": {
            "node": node,
            "seconds": 60,
            "action": rng.choice(TIMER),
        },
        "hint": {"node": node, "category": "Timing", "wording": "w", "use": rng.choice(("shown", "applied"))},
        "capture": {
            "action": rng.choice(("start", "stop", "abort")),
            "folder": "soup_1",
            "reasons": rng.choice(([], ["headset: unreachable"])),
        },
        "close_review": {"closed": rng.random() < 0.5},
        "prepared": {},
        "checked": {"version": "1", "confirmed_by": "B", "override": ""},
        "end": rng.choice(({}, {"rest": "left_out"}, {"rest": "stopped_early"})),
    }
    bodies |= {kind: {} for kind in ("claim", "release", "pause", "resume", "withdraw", "keep")}
    if kind == "start" and rng.random() < 0.5:
        return kind, {"node": node, "with_op": ops[-1]["op_id"]}
    if kind in ("start", "done", "reopen") and rng.random() < 0.5:
        return kind, {"node": node, "shown": f"Stir {node} well"}
    return kind, bodies.get(kind, {"node": node})
