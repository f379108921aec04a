"""How an operation stands in the events of a recording's folder, where the report and the exports read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kitchensync.operations.session_state import Frozen, Op
from kitchensync.task_graphs.categories import CATEGORIES

NONE = "none"
Consent = tuple[str, list[str]]  # reference, scopes
Line = tuple[str, str, dict[str, Any]]  # op_id, kind, body


def folder_of(ops: Iterable[Op]) -> str | None:
    """Return the recording's folder: chosen at the beginning, or begun from the tablet later."""
    folder: str | None = None
    for op in ops:
        if op["kind"] == "recording" and op["body"]["folder"] is not None:
            folder = op["body"]["folder"]
        if op["kind"] == "capture" and op["body"]["action"] == "start" and not op["body"]["reasons"]:
            folder = op["body"]["folder"]
    return folder


def consent_of(recording: str, answer: dict[str, Any] | None) -> Consent:
    """Return the reference and the scopes that an answer to the form of consent gives; `none` without agreement."""
    if not answer or answer.get("accepted") is not True:
        return NONE, []
    return f"{recording}/{answer['version']}", sorted(answer.get("scopes", ()))


def event_lines(op: Op, recording: Frozen, earlier: dict[str, str]) -> list[Line]:
    """Return the event lines of an operation: one, but for an undo of several, which has one each.

    `recording` is the body that was frozen at the choice; `earlier` maps operation ids to their kinds.
    """
    # Whom a tablet named is left out: nobody is named in a recording's folder.
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
    said = dict(body)
    if node is not None and str(node) in recording["steps"]:
        said |= {"step": node, "text": recording["steps"][str(node)]["text"]}
        if node in recording["order"]:
            said["position"] = recording["order"].index(node) + 1
    if fields.get("categories"):
        names = [CATEGORIES[number].name for number in fields["categories"]]
        said |= {"category": fields["categories"][0], "category_name": " + ".join(names)}
    if fields.get("description"):
        said["note"] = fields["description"]
    return [(op["op_id"], op["kind"], {**said, **facts})]
