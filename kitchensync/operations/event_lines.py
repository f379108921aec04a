"""Convert operations into lines of the event log in a recording's folder, which report and exports read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kitchensync.operations.session_state import Frozen, Op
from kitchensync.task_graphs.categories import CATEGORIES

NONE = "none"
Consent = tuple[str, list[str]]  # reference, scopes
Line = tuple[str, str, dict[str, Any]]  # op_id, kind, body


def folder_of(ops: Iterable[Op]) -> str | None:
    """Return the recording's folder: chosen at the beginning, or later started from the tablet."""
    folder: str | None = None
    for op in ops:
        if op["kind"] == "recording" and op["body"]["folder"] is not None:
            folder = op["body"]["folder"]
        if op["kind"] == "capture" and op["body"]["action"] == "start" and not op["body"]["reasons"]:
            folder = op["body"]["folder"]
    return folder


def consent_of(recording: str, answer: dict[str, Any] | None) -> Consent:
    """Return reference and scopes of an answer to the consent form; `none` and no scopes without agreement."""
    if not answer or answer.get("accepted") is not True:
        return NONE, []
    return f"{recording}/{answer['version']}", sorted(answer.get("scopes", ()))


def event_lines(op: Op, recording: Frozen, earlier: dict[str, str]) -> list[Line]:
    """Return the event lines of an operation; an undo of several operations has one line for each.

    `recording` is the frozen body of the `recording` operation; `earlier` maps operation ids to their kinds.
    """
    # `named_actor` is left out because a recording's folder must not contain names of persons.
    facts = {
        "received_host_ns": op["received_host_ns"],
        "clock": {
            "basis": op["basis"],
            **{key: value for key, value in op["clock"].items() if key != "named_actor"},
        },
    }
    if op["kind"] == "undo":
        return [
            (
                op["op_id"] if number == 0 else f"{op['op_id']}.{number}",
                "undo",
                {"undoes": target, "undone_kind": earlier.get(target, ""), **facts},
            )
            for number, target in enumerate(op["body"]["undoes"])
        ]
    if op["kind"] == "recording":
        return [(op["op_id"], "recipe", {**recording})]
    body = op["body"]
    fields = body.get("fields", {})
    node = body.get("node", fields.get("node"))
    content = dict(body)
    if node is not None and str(node) in recording["steps"]:
        content |= {"step": node, "text": recording["steps"][str(node)]["text"]}
        if node in recording["order"]:
            content["position"] = recording["order"].index(node) + 1
    if fields.get("categories"):
        names = [CATEGORIES[number].name for number in fields["categories"]]
        content |= {"category": fields["categories"][0], "category_name": " + ".join(names)}
    if fields.get("description"):
        content["note"] = fields["description"]
    return [(op["op_id"], op["kind"], {**content, **facts})]
