"""What the operations of one recording add up to. `static/core/reduce.js` does the same; a test compares them.

An operation counts once, however often it is there. An undo takes back what it names and can be taken back itself.
The fields of an error are merged one by one: of the versions that nobody replaced knowingly the latest touch is
shown; where there are several that differ the field is in `conflicts`, with all of them, until somebody who saw them
chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kitchensync.operations import step_runs
from kitchensync.operations.step_runs import Op, State

PHASES = ("prepare", "checklist", "follow", "review", "done", "withdrawn")
COOKING = frozenset(("start", "done", "reopen", "skip", "hold", "error", "recovered", "mark"))
"""What *Undo* and *Redo* of the cooking screen take back: what was done on it, never a plan or a review."""

UNDOABLE = COOKING | {"plan_error", "edit_error", "add_error", "note", "voice", "hint"}

DESK = "server"
"""The device of what is done at the desk, by however many people."""

_LATER = float("inf")  # the place in the log of what has not arrived yet


def reduce_log(ops: Iterable[Op]) -> State:
    """Replay operations in the order of the log; those that have not arrived (`n` is None) stand last."""
    kept = _once(ops)
    void = _void(kept)
    state: State = {
        "recording": None,
        "instructed": None,
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
        "rest": None,
        "holder": None,
        "pauses": [],
        "withdrawn": None,
        "last": [],
        "redo": [],
        "count": 0,
    }
    versions: dict[tuple[str, str], list[Op]] = {}
    cooked = {op["op_id"] for op in kept if _is_cooking(op)}
    for op in kept:
        if op["op_id"] in void:
            continue
        if op["kind"] in _HANDLERS:
            _HANDLERS[op["kind"]](state, op)
        _remember_versions(state, versions, op)
        _remember_last(state, op)
        # What was taken back can be done again and the last one stands last; anything new ends that.
        if _is_cooking(op):
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
        "language": "",
        "before": None,
        "description": "",
        "outcome": "",
        "outcome_note": "",
        "intent": "",
        "noticed": "",
        "corrected_by": None,
        "removed": False,
        "conflicts": {},
    }


def _create(planned: bool, origin: str, timed: bool) -> Callable[[State, Op], None]:
    def create(state: State, op: Op) -> None:
        error_id = op["body"]["error_id"]
        if error_id not in state["errors"]:
            state["errors"][error_id] = _new_error(
                error_id, planned, origin, op["host_ns"] if timed else None
            )

    return create


def _phase(name: str) -> Callable[[State, Op], None]:
    def advance(state: State, op: Op) -> None:
        if PHASES.index(name) > PHASES.index(state["phase"]):
            state["phase"] = name
        if op["kind"] == "checked":
            state["checked"] = op["body"]

    return advance


def _end(state: State, op: Op) -> None:
    _phase("review")(state, op)
    step_runs.stop(state, op)
    state["rest"] = op["body"].get("rest")


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


def _capture(state: State, op: Op) -> None:
    """What the devices did last; what they refused changed nothing."""
    if not op["body"]["reasons"]:
        state["capture"] = op["body"]


def _check(state: State, op: Op) -> None:
    state["checklist"][op["body"]["item"]] = op["body"]["checked"]


def _claim(state: State, op: Op) -> None:
    """One tablet at a time: the last one that took the recording holds it."""
    state["holder"] = op["device"]


def _release(state: State, op: Op) -> None:
    state["holder"] = None


def _pause(state: State, op: Op) -> None:
    if not state["pauses"] or state["pauses"][-1]["end"] is not None:
        state["pauses"].append({"start": op["host_ns"], "end": None})


def _resume(state: State, op: Op) -> None:
    if state["pauses"] and state["pauses"][-1]["end"] is None:
        state["pauses"][-1]["end"] = op["host_ns"]


def _withdraw(state: State, op: Op) -> None:
    before = state["withdrawn"]["before"] if state["withdrawn"] else state["phase"]
    state["phase"] = "withdrawn"
    state["withdrawn"] = {"at": op["host_ns"], "before": before, "n": op["n"]}


def _close_review(state: State, op: Op) -> None:
    """Set a key that is absent before: a log without such operations adds up to what it always did."""
    state["review_closed"] = op["body"]["closed"]


def _keep(state: State, _: Op) -> None:
    if state["withdrawn"]:
        state["phase"], state["withdrawn"] = state["withdrawn"]["before"], None


_HANDLERS: dict[str, Callable[[State, Op], None]] = {
    "recording": _recording,
    "capture": _capture,
    "plan_error": _create(True, "self", False),
    "error": _create(False, "follow", True),
    "add_error": _create(False, "review", False),
    "instructed": _put("instructed"),
    "prepared": _phase("checklist"),
    "consent": _put("consent"),
    "check": _check,
    "checked": _phase("follow"),
    "start": step_runs.start,
    "done": step_runs.done,
    "reopen": step_runs.start,
    "skip": step_runs.skip,
    "hold": step_runs.hold,
    "mark": _list("marks"),
    "note": _list("notes"),
    "voice": _list("voices"),
    "timer": _timer,
    "hint": _hint,
    "awake": _put("awake"),
    "end": _end,
    "finish": _phase("done"),
    "claim": _claim,
    "release": _release,
    "pause": _pause,
    "resume": _resume,
    "withdraw": _withdraw,
    "keep": _keep,
    "close_review": _close_review,
}


def _remember_versions(state: State, versions: dict[tuple[str, str], list[Op]], op: Op) -> None:
    """Note every value that an operation gives to a field of an error that exists by now."""
    for change in _changes(op):
        if change.get("error_id") in state["errors"] and "fields" in change:
            for name, value in change["fields"].items():
                made = versions.setdefault((change["error_id"], name), [])
                made.append({**op, "value": value, "order": len(made)})


def _changes(op: Op) -> list[dict[str, Any]]:
    """Return what an operation changes: error ids, with the fields and their values."""
    if op["kind"] == "recovered":
        error_id = op["body"]["error_id"]
        done = {"corrected_by": error_id, "corrected_at": op["host_ns"]}
        return [
            {"error_id": error_id, "fields": {"corrected_by": -1} if op["body"].get("left_out") else done}
        ]
    return list(op["body"]["planned"]) if op["kind"] == "recording" else [op["body"]]


def _remember_last(state: State, op: Op) -> None:
    if _is_cooking(op):
        together = op["body"].get("with_op")
        state["last"] = (
            [*state["last"], op["op_id"]] if together in state["last"] and together else [op["op_id"]]
        )


def _is_cooking(op: Op) -> bool:
    return op["kind"] in COOKING and op["device"] != DESK


def _settle(state: State, versions: dict[tuple[str, str], list[Op]]) -> None:
    for (error_id, name), made in versions.items():
        heads = [one for one in made if not any(_knew(other, one) for other in made)]
        heads.sort(key=lambda op: (op["host_ns"] or 0, op["op_id"]))
        error = state["errors"][error_id]
        error[name] = heads[-1]["value"]
        if any(one["value"] != heads[-1]["value"] for one in heads):
            same = ("op_id", "device", "host_ns", "value")
            error["conflicts"][name] = [{key: one[key] for key in same} for one in heads]


def _knew(later: Op, earlier: Op) -> bool:
    """Return whether a change was made by somebody who had the other one before their eyes."""
    if later is earlier or _place(later) < _place(earlier):
        return False
    if later["device"] == earlier["device"] != DESK:
        return _place(later) > _place(earlier) or later["order"] > earlier["order"]
    return earlier["n"] is not None and bool(earlier["n"] <= later["seen"])


def _place(op: Op) -> float:
    return _LATER if op["n"] is None else float(op["n"])
