"""What the operations of one recording add up to. `static/core/fold.js` does the same on the tablet; a test compares.

An operation counts once, however often it is there. An undo takes back what it names and can be taken back itself.
The fields of an error are merged one by one: the latest touch wins, and when two devices changed a field without
knowing of each other the field is listed in `conflicts` and both versions stay in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Op = dict[str, Any]
State = dict[str, Any]

PHASES = ("prepare", "checklist", "follow", "review", "done")
UNDOABLE = frozenset(
    (
        "plan_error",
        "edit_error",
        "start",
        "done",
        "reopen",
        "skip",
        "error",
        "mark",
        "add_error",
        "note",
        "voice",
    )
)
_LATER = float("inf")  # the place in the log of what has not arrived yet


def fold(ops: Iterable[Op]) -> State:
    """Replay operations in the order of the log; those that have not arrived (`n` is None) stand last."""
    kept = _once(ops)
    void = _void(kept)
    state = _empty()
    versions: dict[tuple[str, str], list[Op]] = {}
    for op in kept:
        if op["op_id"] in void:
            continue
        if op["kind"] in _HANDLERS:
            _HANDLERS[op["kind"]](state, op)
        _remember_versions(state, versions, op)
        _remember_last(state, op)
    _settle(state, versions)
    state["count"] = len(kept)
    return state


def _empty() -> State:
    return {
        "recording": None,
        "phase": PHASES[0],
        "steps": {},
        "errors": {},
        "consent": None,
        "checklist": {},
        "checked": None,
        "capture": None,
        "marks": [],
        "notes": [],
        "voices": [],
        "timers": {},
        "hints": {},
        "awake": None,
        "last": [],
        "count": 0,
    }


def _once(ops: Iterable[Op]) -> list[Op]:
    known: dict[str, Op] = {}
    for op in ops:
        known.setdefault(op["op_id"], op)
    return list(known.values())


def _void(ops: list[Op]) -> set[str]:
    """From the last to the first: an undo that stands takes back what came before it."""
    void: set[str] = set()
    passed: set[str] = set()
    for op in reversed(ops):
        passed.add(op["op_id"])
        if op["kind"] == "undo" and op["op_id"] not in void:
            void.update(target for target in op["body"]["undoes"] if target not in passed)
    return void


def _recording(state: State, op: Op) -> None:
    if state["recording"] is not None:
        return
    state["recording"] = op["body"]
    for node in op["body"]["order"]:
        state["steps"][str(node)] = {"state": "waiting", "runs": []}
    for planned in op["body"]["planned"]:
        state["errors"][planned["error_id"]] = _new_error(planned["error_id"], True, "script", None)


def _new_error(error_id: str, planned: bool, origin: str, at: int | None) -> State:
    return {
        "error_id": error_id,
        "planned": planned,
        "origin": origin,
        "at": at,
        "node": None,
        "categories": [],
        "subtype": "",
        "expected": "",
        "actual": "",
        "text": "",
        "description": "",
        "outcome": "",
        "outcome_note": "",
        "removed": False,
        "conflicts": [],
    }


def _create(planned: bool, origin: str, timed: bool) -> Callable[[State, Op], None]:
    def create(state: State, op: Op) -> None:
        error_id = op["body"]["error_id"]
        if error_id not in state["errors"]:
            state["errors"][error_id] = _new_error(
                error_id, planned, origin, op["host_ns"] if timed else None
            )

    return create


def _step(state: State, op: Op) -> State:
    new: State = {"state": "waiting", "runs": []}
    found: State = state["steps"].setdefault(str(op["body"]["node"]), new)
    return found


def _start(state: State, op: Op) -> None:
    step = _step(state, op)
    if step["state"] != "open":
        step["state"] = "open"
        step["runs"].append({"start": op["host_ns"], "end": None})


def _done(state: State, op: Op) -> None:
    step = _step(state, op)
    if step["state"] == "open":
        step["runs"][-1]["end"] = op["host_ns"]
    elif step["state"] != "done":
        step["runs"].append({"start": None, "end": op["host_ns"]})
    step["state"] = "done"


def _skip(state: State, op: Op) -> None:
    step = _step(state, op)
    if step["state"] == "open":
        step["runs"].pop()
    step["state"] = "skipped"


def _phase(name: str) -> Callable[[State, Op], None]:
    def advance(state: State, op: Op) -> None:
        if PHASES.index(name) > PHASES.index(state["phase"]):
            state["phase"] = name
        if op["kind"] == "checked":
            state["checked"] = op["body"]

    return advance


def _timer(state: State, op: Op) -> None:
    body = op["body"]
    state["timers"][str(body["node"])] = {
        "seconds": body["seconds"],
        "action": body["action"],
        "at": op["host_ns"],
    }


def _hint(state: State, op: Op) -> None:
    use = op["body"]["use"]
    state["hints"][use] = state["hints"].get(use, 0) + 1


def _list(name: str) -> Callable[[State, Op], None]:
    def append(state: State, op: Op) -> None:
        state[name].append({**op["body"], "op_id": op["op_id"], "at": op["host_ns"]})

    return append


def _put(name: str) -> Callable[[State, Op], None]:
    def put(state: State, op: Op) -> None:
        state[name] = op["body"]

    return put


def _check(state: State, op: Op) -> None:
    state["checklist"][op["body"]["item"]] = op["body"]["checked"]


_HANDLERS: dict[str, Callable[[State, Op], None]] = {
    "recording": _recording,
    "capture": _put("capture"),
    "plan_error": _create(True, "self", False),
    "error": _create(False, "follow", True),
    "add_error": _create(False, "review", False),
    "prepared": _phase("checklist"),
    "consent": _put("consent"),
    "check": _check,
    "checked": _phase("follow"),
    "start": _start,
    "done": _done,
    "reopen": _start,
    "skip": _skip,
    "mark": _list("marks"),
    "note": _list("notes"),
    "voice": _list("voices"),
    "timer": _timer,
    "hint": _hint,
    "awake": _put("awake"),
    "end": _phase("review"),
    "finish": _phase("done"),
}


def _remember_versions(state: State, versions: dict[tuple[str, str], list[Op]], op: Op) -> None:
    """Note every value that an operation gives to a field of an error that exists by now."""
    given = op["body"]["planned"] if op["kind"] == "recording" else [op["body"]]
    for change in given:
        if change.get("error_id") in state["errors"] and "fields" in change:
            for name, value in change["fields"].items():
                versions.setdefault((change["error_id"], name), []).append({**op, "value": value})


def _remember_last(state: State, op: Op) -> None:
    if op["kind"] in UNDOABLE:
        together = op["body"].get("with_op")
        state["last"] = (
            [*state["last"], op["op_id"]] if together in state["last"] and together else [op["op_id"]]
        )


def _settle(state: State, versions: dict[tuple[str, str], list[Op]]) -> None:
    for (error_id, name), made in versions.items():
        winner = max(made, key=lambda op: (op["host_ns"] or 0, op["op_id"]))
        state["errors"][error_id][name] = winner["value"]
        if any(_unaware(one, other) for one in made for other in made):
            state["errors"][error_id]["conflicts"].append(name)
    for error in state["errors"].values():
        error["conflicts"].sort()


def _unaware(one: Op, other: Op) -> bool:
    """Tell whether two devices gave different values, neither knowing of the other."""
    return (
        one["device"] != other["device"]
        and one["value"] != other["value"]
        and _place(other) > one["seen"]
        and _place(one) > other["seen"]
    )


def _place(op: Op) -> float:
    return _LATER if op["n"] is None else float(op["n"])
