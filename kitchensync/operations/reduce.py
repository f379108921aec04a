"""Reduce the operations of one recording to its state. `static/core/reduce.js` does the same; a test compares them.

Repeated operations count once. An undo takes back the operations that it names and can be undone itself. The fields
of an error are merged separately: of the versions that no later operation knowingly replaced, the latest is shown. If
they differ, the field is in `conflicts` with all of them, until an operation that has seen them replaces it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, cast

from kitchensync.operations import step_runs
from kitchensync.operations.session_state import PHASES, Op, State, empty_state, new_error

COOKING = frozenset(("start", "done", "reopen", "skip", "hold", "error", "recovered", "mark"))
"""Kinds of operations that *Undo* and *Redo* of the cooking screen act on."""

UNDOABLE = COOKING | {"plan_error", "edit_error", "add_error", "note", "voice", "hint"}

DESK = "server"
"""Device of all operations from the desk."""

_PHASE_AFTER = {"prepared": "checklist", "checked": "follow", "end": "review", "finish": "done"}
_ORIGINS = {"plan_error": "self", "error": "follow", "add_error": "review"}
_LISTS: dict[str, Literal["marks", "notes", "voices"]] = {"mark": "marks", "note": "notes", "voice": "voices"}
_BODIES: dict[str, Literal["instructed", "consent", "awake"]] = {
    "instructed": "instructed",
    "consent": "consent",
    "awake": "awake",
}


class _Version(NamedTuple):
    """A value that an operation gave to a field of an error; `order` is its index among those of the field."""

    op: Op
    value: Any
    order: int


def reduce_log(ops: Iterable[Op]) -> State:
    """Return the state after operations in the order of the log; those without a number `n` yet are last."""
    kept = _once(ops)
    void = _void(kept)
    state = empty_state()
    versions: defaultdict[tuple[str, str], list[_Version]] = defaultdict(list)
    cooked = {op["op_id"] for op in kept if _is_cooking(op)}
    for op in kept:
        if op["op_id"] in void:
            continue
        _apply(state, op)
        for error_id, fields in _changes(op):
            for name, value in fields.items() if error_id in state["errors"] else ():
                of_field = versions[error_id, name]
                of_field.append(_Version(op, value, len(of_field)))
        # A new operation clears the list of undone operations that can be redone.
        if _is_cooking(op):
            with_op = op["body"].get("with_op")
            state["last"] = [*(state["last"] if with_op in state["last"] else ()), op["op_id"]]
            state["redo"] = []
        elif op["kind"] == "undo" and cooked.intersection(op["body"]["undoes"]):
            state["redo"] = [*state["redo"], op["op_id"]]
    _settle(state, versions)
    state["count"] = len(kept)
    return state


def standing(ops: Iterable[Op]) -> list[Op]:
    """Return the operations without repetitions and without undone ones."""
    kept = _once(ops)
    void = _void(kept)
    return [op for op in kept if op["op_id"] not in void]


def removed_sounds(ops: Iterable[Op], state: State) -> set[str]:
    """Return the hashes of removed voice notes that no other note uses; `state` is that of `ops`."""
    hashes = {op["body"]["sha256"] for op in ops if op["kind"] == "voice"}
    return hashes - {voice["sha256"] for voice in state["voices"]}


def _once(ops: Iterable[Op]) -> list[Op]:
    by_id: dict[str, Op] = {}
    for op in ops:
        by_id.setdefault(op["op_id"], op)
    return list(by_id.values())


def _void(ops: list[Op]) -> set[str]:
    """Return the ids of undone operations."""
    # From the last to the first, because an undo that is itself undone has no effect.
    void: set[str] = set()
    before = {op["op_id"] for op in ops if op["kind"] in UNDOABLE or op["kind"] == "undo"}
    for op in reversed(ops):
        before.discard(op["op_id"])
        if op["kind"] == "undo" and op["op_id"] not in void:
            void.update(before.intersection(op["body"]["undoes"]))
    return void


def _apply(state: State, op: Op) -> None:
    """Apply one operation to the state, except the fields of errors, which are merged at the end."""
    kind, body, host_ns = op["kind"], op["body"], op["host_ns"]
    if kind in step_runs.CHANGES:
        step_runs.CHANGES[kind](state, op)
    elif kind in _ORIGINS:
        if body["error_id"] not in state["errors"]:
            at = host_ns if kind == "error" else None
            error = new_error(body["error_id"], planned=kind == "plan_error", origin=_ORIGINS[kind], at=at)
            state["errors"][body["error_id"]] = error
    elif kind in _LISTS:
        state[_LISTS[kind]].append({**body, "op_id": op["op_id"], "at": host_ns})
    elif kind in _BODIES:
        state[_BODIES[kind]] = body
    elif kind in _PHASE_AFTER:
        state["phase"] = max(state["phase"], _PHASE_AFTER[kind], key=PHASES.index)
        if kind == "checked":
            state["checked"] = body
        if kind == "end":
            step_runs.stop(state, op)
            state["rest"] = body.get("rest")
    else:
        _apply_others(state, op)


def _apply_others(state: State, op: Op) -> None:
    """Apply an operation of a kind with its own fields of the state."""
    kind, body = op["kind"], op["body"]
    if kind == "recording" and state["recording"] is None:
        state["recording"] = cast(Any, body)
        for node in body["order"]:
            state["steps"][str(node)] = {"state": "waiting", "runs": []}
        for planned in body["planned"]:
            error = new_error(planned["error_id"], planned=True, origin="script")
            state["errors"][planned["error_id"]] = error
    elif kind == "capture" and not body["reasons"]:  # a refused request has no effect
        state["capture"] = body
    elif kind == "check":
        state["checklist"][body["item"]] = body["checked"]
    elif kind == "timer":
        seconds, action = body["seconds"], body["action"]
        state["timers"][str(body["node"])] = {"seconds": seconds, "action": action, "at": op["host_ns"]}
    elif kind == "hint":
        state["hints"][body["use"]] = state["hints"].get(body["use"], 0) + 1
    elif kind in ("claim", "release"):  # the last tablet that claimed the recording holds it
        state["holder"] = op["device"] if kind == "claim" else None
    elif kind == "close_review":
        state["review_closed"] = body["closed"]
    else:
        _pause_or_withdraw(state, op)


def _pause_or_withdraw(state: State, op: Op) -> None:
    kind, pauses, withdrawn = op["kind"], state["pauses"], state["withdrawn"]
    is_paused = bool(pauses) and pauses[-1]["end"] is None
    if kind == "pause" and not is_paused:
        pauses.append({"start": op["host_ns"], "end": None})
    elif kind == "resume" and is_paused:
        pauses[-1]["end"] = op["host_ns"]
    elif kind == "withdraw":
        before = withdrawn["before"] if withdrawn else state["phase"]
        state["phase"] = "withdrawn"
        state["withdrawn"] = {"at": op["host_ns"], "before": before, "n": op["n"]}
    elif kind == "keep" and withdrawn:
        state["phase"], state["withdrawn"] = withdrawn["before"], None


def _changes(op: Op) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the error ids that an operation changes, with the new values of their fields."""
    body = op["body"]
    if op["kind"] == "recovered":
        done = {"corrected_by": body["error_id"], "corrected_at": op["host_ns"]}
        yield body["error_id"], {"corrected_by": -1} if body.get("left_out") else done
        return
    for change in body["planned"] if op["kind"] == "recording" else [body]:
        if "error_id" in change and "fields" in change:
            yield change["error_id"], change["fields"]


def _is_cooking(op: Op) -> bool:
    return op["kind"] in COOKING and op["device"] != DESK


def _settle(state: State, versions: dict[tuple[str, str], list[_Version]]) -> None:
    for (error_id, name), of_field in versions.items():
        heads = [
            version
            for version in of_field
            if not any(_replaces_knowingly(later, version) for later in of_field)
        ]
        heads.sort(key=lambda version: (version.op["host_ns"] or 0, version.op["op_id"]))
        error = state["errors"][error_id]
        cast(Any, error)[name] = heads[-1].value
        if any(version.value != heads[-1].value for version in heads):
            error["conflicts"][name] = [
                {"op_id": op["op_id"], "device": op["device"], "host_ns": op["host_ns"], "value": value}
                for op, value, _ in heads
            ]


def _replaces_knowingly(later: _Version, earlier: _Version) -> bool:
    """Return whether a change was made on a device that already showed the other change."""
    after, before = (math.inf if version.op["n"] is None else version.op["n"] for version in (later, earlier))
    if later is earlier or after < before:
        return False
    if later.op["device"] == earlier.op["device"] != DESK:
        return after > before or later.order > earlier.order
    return earlier.op["n"] is not None and earlier.op["n"] <= later.op["seen"]
