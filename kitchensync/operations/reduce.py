"""What the operations of one recording add up to. `static/core/reduce.js` does the same; a test compares them.

An operation counts once, however often it is there. An undo takes back what it names and can be taken back itself.
The fields of an error are merged one by one: of the versions that nobody replaced knowingly the latest touch is
shown; where there are several that differ the field is in `conflicts`, with all of them, until somebody who saw them
chooses.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, cast

from kitchensync.operations import step_runs
from kitchensync.operations.session_state import PHASES, Op, State, empty_state, new_error

COOKING = frozenset(("start", "done", "reopen", "skip", "hold", "error", "recovered", "mark"))
"""What *Undo* and *Redo* of the cooking screen take back: what was done on it, never a plan or a review."""

UNDOABLE = COOKING | {"plan_error", "edit_error", "add_error", "note", "voice", "hint"}

DESK = "server"
"""The device of what is done at the desk, by however many people."""

_PHASE_AFTER = {"prepared": "checklist", "checked": "follow", "end": "review", "finish": "done"}
_ORIGINS = {"plan_error": "self", "error": "follow", "add_error": "review"}
_LISTS: dict[str, Literal["marks", "notes", "voices"]] = {"mark": "marks", "note": "notes", "voice": "voices"}
_BODIES: dict[str, Literal["instructed", "consent", "awake"]] = {
    "instructed": "instructed",
    "consent": "consent",
    "awake": "awake",
}


class _Version(NamedTuple):
    """A value that an operation gave to a field of an error; `order` counts those of the field."""

    op: Op
    value: Any
    order: int


def reduce_log(ops: Iterable[Op]) -> State:
    """Replay operations in the order of the log; those that have not arrived (`n` is None) stand last."""
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
                made = versions[error_id, name]
                made.append(_Version(op, value, len(made)))
        # What was taken back can be done again and the last one stands last; anything new ends that.
        if _is_cooking(op):
            together = op["body"].get("with_op")
            state["last"] = [*(state["last"] if together in state["last"] else ()), op["op_id"]]
            state["redo"] = []
        elif op["kind"] == "undo" and cooked.intersection(op["body"]["undoes"]):
            state["redo"] = [*state["redo"], op["op_id"]]
    _settle(state, versions)
    state["count"] = len(kept)
    return state


def standing(ops: Iterable[Op]) -> list[Op]:
    """Return the operations that count: each once, without those that an undo took back."""
    kept = _once(ops)
    void = _void(kept)
    return [op for op in kept if op["op_id"] not in void]


def removed_sounds(ops: Iterable[Op], state: State) -> set[str]:
    """Return the hashes of the voice notes that were removed and no other note holds; `state` is that of `ops`."""
    said = {op["body"]["sha256"] for op in ops if op["kind"] == "voice"}
    return said - {voice["sha256"] for voice in state["voices"]}


def _once(ops: Iterable[Op]) -> list[Op]:
    known: dict[str, Op] = {}
    for op in ops:
        known.setdefault(op["op_id"], op)
    return list(known.values())


def _void(ops: list[Op]) -> set[str]:
    """From the last to the first: an undo that stands takes back what came before it; a withdrawal no undo does."""
    void: set[str] = set()
    before = {op["op_id"] for op in ops if op["kind"] in UNDOABLE or op["kind"] == "undo"}
    for op in reversed(ops):
        before.discard(op["op_id"])
        if op["kind"] == "undo" and op["op_id"] not in void:
            void.update(before.intersection(op["body"]["undoes"]))
    return void


def _apply(state: State, op: Op) -> None:
    """Take one operation into the state, but for the fields of errors, which are merged at the end."""
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
    """Take in an operation of a kind that sets something of its own."""
    kind, body = op["kind"], op["body"]
    if kind == "recording" and state["recording"] is None:
        state["recording"] = cast(Any, body)
        for node in body["order"]:
            state["steps"][str(node)] = {"state": "waiting", "runs": []}
        for planned in body["planned"]:
            error = new_error(planned["error_id"], planned=True, origin="script")
            state["errors"][planned["error_id"]] = error
    elif kind == "capture" and not body["reasons"]:  # what the devices refused changed nothing
        state["capture"] = body
    elif kind == "check":
        state["checklist"][body["item"]] = body["checked"]
    elif kind == "timer":
        seconds, action = body["seconds"], body["action"]
        state["timers"][str(body["node"])] = {"seconds": seconds, "action": action, "at": op["host_ns"]}
    elif kind == "hint":
        state["hints"][body["use"]] = state["hints"].get(body["use"], 0) + 1
    elif kind in ("claim", "release"):  # the last tablet that took the recording holds it
        state["holder"] = op["device"] if kind == "claim" else None
    elif kind == "close_review":
        state["review_closed"] = body["closed"]
    else:
        _pause_or_withdraw(state, op)


def _pause_or_withdraw(state: State, op: Op) -> None:
    kind, pauses, withdrawn = op["kind"], state["pauses"], state["withdrawn"]
    lasts = bool(pauses) and pauses[-1]["end"] is None
    if kind == "pause" and not lasts:
        pauses.append({"start": op["host_ns"], "end": None})
    elif kind == "resume" and lasts:
        pauses[-1]["end"] = op["host_ns"]
    elif kind == "withdraw":
        before = withdrawn["before"] if withdrawn else state["phase"]
        state["phase"] = "withdrawn"
        state["withdrawn"] = {"at": op["host_ns"], "before": before, "n": op["n"]}
    elif kind == "keep" and withdrawn:
        state["phase"], state["withdrawn"] = withdrawn["before"], None


def _changes(op: Op) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what an operation changes: error ids, with the fields and their values."""
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
    for (error_id, name), made in versions.items():
        heads = [one for one in made if not any(_knew(other, one) for other in made)]
        heads.sort(key=lambda one: (one.op["host_ns"] or 0, one.op["op_id"]))
        error = state["errors"][error_id]
        cast(Any, error)[name] = heads[-1].value
        if any(one.value != heads[-1].value for one in heads):
            error["conflicts"][name] = [
                {"op_id": op["op_id"], "device": op["device"], "host_ns": op["host_ns"], "value": value}
                for op, value, _ in heads
            ]


def _knew(later: _Version, earlier: _Version) -> bool:
    """Return whether a change was made by somebody who had the other one before their eyes."""
    after, before = (math.inf if one.op["n"] is None else one.op["n"] for one in (later, earlier))
    if later is earlier or after < before:
        return False
    if later.op["device"] == earlier.op["device"] != DESK:
        return after > before or later.order > earlier.order
    return earlier.op["n"] is not None and earlier.op["n"] <= later.op["seen"]
