"""The runs of a step: begun, waiting in the middle of one, done, left out; one step may have several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

State = dict[str, Any]
Op = dict[str, Any]

BEGUN = ("open", "held", "stopped")
"""The states of a step with a run that was not done."""


def _step(state: State, op: Op) -> State:
    new: State = {"state": "waiting", "runs": []}
    found: State = state["steps"].setdefault(str(op["body"]["node"]), new)
    return found


def _shown(op: Op) -> State:
    """The words of the step on the screen when its run was touched; older tablets did not tell them."""
    return {"shown": op["body"]["shown"]} if "shown" in op["body"] else {}


def start(state: State, op: Op) -> None:
    """Begin a run, or go on with one that waited."""
    step = _step(state, op)
    if step["state"] == "held":
        step["runs"][-1]["holds"][-1]["end"] = op["host_ns"]
    elif step["state"] == "stopped":
        waited = {"start": step["runs"][-1].pop("stopped"), "end": op["host_ns"]}
        step["runs"][-1].setdefault("holds", []).append(waited)
    elif step["state"] != "open":
        step["runs"].append({"start": op["host_ns"], "end": None, **_shown(op)})
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
        step["runs"].append({"start": None, "end": op["host_ns"], **_shown(op)})
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


def began(state: State) -> int:
    """Return the first touch of a step on the capture clock; 0 when there is none."""
    runs = [run for step in state["steps"].values() for run in step["runs"]]
    return min((run[end] for run in runs for end in ("start", "end") if run[end]), default=0)


def timeline(state: State, numbers: Mapping[int, int | None]) -> dict[str, Any]:
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
    rows = []
    for node, number in numbers.items() if first else ():
        runs = [_ends(run) for run in state["steps"].get(str(node), {"runs": []})["runs"]]
        lasted = [((start - first) / 1e9, (end - first) / 1e9) for start, end in runs]
        text = state["recording"]["steps"][str(node)]["text"]
        rows.append(
            {"node": node, "place": number, "text": text, "runs": lasted, "errors": errors.get(node, [])}
        )
    known = [end for row in rows for _, end in row["runs"]] + [at for row in rows for at, _ in row["errors"]]
    return {"whole_s": max(known, default=0.0), "rows": rows}


def _ends(run: dict[str, Any]) -> tuple[int, int]:
    known = [run[name] for name in ("start", "end", "stopped") if run.get(name)]
    return min(known), max(known)


def spans(state: State) -> dict[int, list[tuple[float | None, float | None]]]:
    """Return when each step was begun and done, seconds since the first touch of a step; None is not known."""
    runs = {int(node): step["runs"] for node, step in state["steps"].items() if step["runs"]}
    first = began(state)

    def since(at: int | None) -> float | None:
        return None if at is None else (at - first) / 1e9

    return {node: [(since(run["start"]), since(run["end"])) for run in found] for node, found in runs.items()}
