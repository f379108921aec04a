"""Runs of a step: started, held, done, or skipped; a step may have several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

from kitchensync.operations.session_state import HostSpan, Op, Run, State, StepState

STARTED = ("open", "held", "stopped")
"""States of a step with an unfinished run."""


class TimelineRow(TypedDict):
    """A step of a timeline: its number, runs (start, end) and errors (time, id), in seconds."""

    node: int
    place: int | None
    text: str
    runs: list[tuple[float, float]]
    errors: list[tuple[float, str]]


class SessionTimeline(TypedDict):
    """The timeline of a session and its length."""

    whole_s: float
    rows: list[TimelineRow]


def _step(state: State, op: Op) -> StepState:
    return state["steps"].setdefault(str(op["body"]["node"]), {"state": "waiting", "runs": []})


def _add_run(step: StepState, op: Op, start: int | None, end: int | None) -> None:
    run: Run = {"start": start, "end": end}
    if "shown" in op["body"]:  # older tablets did not send the text on the screen
        run["shown"] = op["body"]["shown"]
    step["runs"].append(run)


def start(state: State, op: Op) -> None:
    """Start a run, or continue one that was held or stopped."""
    step = _step(state, op)
    if step["state"] == "held":
        step["runs"][-1]["holds"][-1]["end"] = op["host_ns"]
    elif step["state"] == "stopped":
        interruption: HostSpan = {"start": step["runs"][-1].pop("stopped"), "end": op["host_ns"]}
        step["runs"][-1].setdefault("holds", []).append(interruption)
    elif step["state"] != "open":
        _add_run(step, op, op["host_ns"], None)
    step["state"] = "open"


def hold(state: State, op: Op) -> None:
    """Interrupt the run of a step until it is started again or done."""
    step = _step(state, op)
    if step["state"] == "open":
        step["state"] = "held"
        step["runs"][-1].setdefault("holds", []).append({"start": op["host_ns"], "end": None})


def done(state: State, op: Op) -> None:
    """End the run; without a logged start it has none."""
    step = _step(state, op)
    if step["state"] == "held":
        step["runs"][-1]["holds"][-1]["end"] = op["host_ns"]
    if step["state"] in STARTED:
        step["runs"][-1].pop("stopped", None)
        step["runs"][-1]["end"] = op["host_ns"]
    elif step["state"] != "done":
        _add_run(step, op, None, op["host_ns"])
    step["state"] = "done"


def skip(state: State, op: Op) -> None:
    """Skip the step; an unfinished run does not count."""
    step = _step(state, op)
    if step["state"] in STARTED:
        step["runs"].pop()
    step["state"] = "skipped"


def stop(state: State, op: Op) -> None:
    """Stop unfinished runs at the end of cooking."""
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
"""Function that applies each kind of operation to its step."""


def began(state: State) -> int:
    """Return the first touch of a step on the capture clock, 0 if there is none."""
    runs = [run for step in state["steps"].values() for run in step["runs"]]
    return min((at for run in runs for at in (run["start"], run["end"]) if at), default=0)


def timeline(state: State, numbers: Mapping[int, int | None]) -> SessionTimeline:
    """Return the timeline with runs and errors, in seconds since the first touch of a step.

    `numbers` gives the number of each step, in the order of the rows. An unfinished run ends when it was stopped; one
    with an unknown start or end has length 0.
    """
    first = began(state)
    errors: dict[int, list[tuple[float, str]]] = {}
    for error in state["errors"].values():
        if error["at"] and not error["removed"] and error["node"] is not None:
            at_s = max(0.0, (error["at"] - first) / 1e9)
            errors.setdefault(error["node"], []).append((at_s, error["error_id"]))
    rows: list[TimelineRow] = []
    for node, number in numbers.items() if first else ():
        runs = []
        for run in state["steps"].get(str(node), {"runs": []})["runs"]:
            times = [at for at in (run["start"], run["end"], run.get("stopped")) if at]
            runs.append(((min(times) - first) / 1e9, (max(times) - first) / 1e9))
        text = state["recording"]["steps"][str(node)]["text"]
        rows.append(
            {"node": node, "place": number, "text": text, "runs": runs, "errors": errors.get(node, [])}
        )
    ends = [end for row in rows for _, end in row["runs"]] + [at for row in rows for at, _ in row["errors"]]
    return {"whole_s": max(ends, default=0.0), "rows": rows}


def spans(state: State) -> dict[int, list[tuple[float | None, float | None]]]:
    """Return start and end of each step's runs, in seconds since the first touch of a step; None is unknown."""
    runs = {int(node): step["runs"] for node, step in state["steps"].items() if step["runs"]}
    first = began(state)

    def since(at: int | None) -> float | None:
        return None if at is None else (at - first) / 1e9

    return {
        node: [(since(run["start"]), since(run["end"])) for run in step_runs]
        for node, step_runs in runs.items()
    }
