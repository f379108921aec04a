"""The runs of a step: begun, waiting in the middle of one, done, left out; one step may have several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

from kitchensync.operations.session_state import HostSpan, Op, Run, State, StepState

BEGUN = ("open", "held", "stopped")
"""The states of a step with a run that was not done."""


class TimelineRow(TypedDict):
    """A step of the line of time: its number, the runs and the errors (time, id), seconds."""

    node: int
    place: int | None
    text: str
    runs: list[tuple[float, float]]
    errors: list[tuple[float, str]]


class SessionTimeline(TypedDict):
    """The line of time of a session, and how long it is."""

    whole_s: float
    rows: list[TimelineRow]


def _step(state: State, op: Op) -> StepState:
    return state["steps"].setdefault(str(op["body"]["node"]), {"state": "waiting", "runs": []})


def _add_run(step: StepState, op: Op, start: int | None, end: int | None) -> None:
    run: Run = {"start": start, "end": end}
    if "shown" in op["body"]:  # older tablets did not tell the words on the screen
        run["shown"] = op["body"]["shown"]
    step["runs"].append(run)


def start(state: State, op: Op) -> None:
    """Begin a run, or go on with one that waited."""
    step = _step(state, op)
    if step["state"] == "held":
        step["runs"][-1]["holds"][-1]["end"] = op["host_ns"]
    elif step["state"] == "stopped":
        waited: HostSpan = {"start": step["runs"][-1].pop("stopped"), "end": op["host_ns"]}
        step["runs"][-1].setdefault("holds", []).append(waited)
    elif step["state"] != "open":
        _add_run(step, op, op["host_ns"], None)
    step["state"] = "open"


def hold(state: State, op: Op) -> None:
    """Let the step wait, in the middle of its run, until it is begun again or done."""
    step = _step(state, op)
    if step["state"] == "open":
        step["state"] = "held"
        step["runs"][-1].setdefault("holds", []).append({"start": op["host_ns"], "end": None})


def done(state: State, op: Op) -> None:
    """End the run; one whose begin was not logged has no start."""
    step = _step(state, op)
    if step["state"] == "held":
        step["runs"][-1]["holds"][-1]["end"] = op["host_ns"]
    if step["state"] in BEGUN:
        step["runs"][-1].pop("stopped", None)
        step["runs"][-1]["end"] = op["host_ns"]
    elif step["state"] != "done":
        _add_run(step, op, None, op["host_ns"])
    step["state"] = "done"


def skip(state: State, op: Op) -> None:
    """Leave the step out; a run that was begun does not count."""
    step = _step(state, op)
    if step["state"] in BEGUN:
        step["runs"].pop()
    step["state"] = "skipped"


def stop(state: State, op: Op) -> None:
    """Close what is begun at the end of cooking: its run stopped then, and was not done."""
    for step in state["steps"].values():
        if step["state"] not in ("open", "held"):
            continue
        run = step["runs"][-1]
        if step["state"] == "held":
            run["holds"][-1]["end"] = op["host_ns"]
        run["stopped"] = op["host_ns"]
        step["state"] = "stopped"


CHANGES: dict[str, Callable[[State, Op], None]] = {
    "start": start,
    "done": done,
    "reopen": start,
    "skip": skip,
    "hold": hold,
}
"""What an operation of a kind does to its step."""


def began(state: State) -> int:
    """Return the first touch of a step on the capture clock; 0 when there is none."""
    runs = [run for step in state["steps"].values() for run in step["runs"]]
    return min((at for run in runs for at in (run["start"], run["end"]) if at), default=0)


def timeline(state: State, numbers: Mapping[int, int | None]) -> SessionTimeline:
    """Return what a line of time shows, seconds since the first touch of a step: runs and errors, to the last of all.

    `numbers` gives the number of each step, in the order in which they are listed.
    A run that was not done ends where it stopped; one whose begin or end is not known is as long as a moment.
    """
    first = began(state)
    errors: dict[int, list[tuple[float, str]]] = {}
    for error in state["errors"].values():
        if error["at"] and not error["removed"] and error["node"] is not None:
            since = max(0.0, (error["at"] - first) / 1e9), error["error_id"]
            errors.setdefault(error["node"], []).append(since)
    rows: list[TimelineRow] = []
    for node, number in numbers.items() if first else ():
        lasted = []
        for run in state["steps"].get(str(node), {"runs": []})["runs"]:
            known = [at for at in (run["start"], run["end"], run.get("stopped")) if at]
            lasted.append(((min(known) - first) / 1e9, (max(known) - first) / 1e9))
        text, found = state["recording"]["steps"][str(node)]["text"], errors.get(node, [])
        rows.append({"node": node, "place": number, "text": text, "runs": lasted, "errors": found})
    ends = [end for row in rows for _, end in row["runs"]] + [at for row in rows for at, _ in row["errors"]]
    return {"whole_s": max(ends, default=0.0), "rows": rows}


def spans(state: State) -> dict[int, list[tuple[float | None, float | None]]]:
    """Return when each step was begun and done, seconds since the first touch of a step; None is not known."""
    runs = {int(node): step["runs"] for node, step in state["steps"].items() if step["runs"]}
    first = began(state)

    def since(at: int | None) -> float | None:
        return None if at is None else (at - first) / 1e9

    return {node: [(since(run["start"]), since(run["end"])) for run in found] for node, found in runs.items()}
