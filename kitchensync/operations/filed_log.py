"""Read the tablet's operations from the event log in a recording's folder."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from kitchensync.operations.errors import BadOperation
from kitchensync.operations.filed_shapes import check_filed
from kitchensync.operations.reduce import reduce_log
from kitchensync.operations.session_state import ErrorState, Op, State
from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.events import events_of
from kitchensync.storage.privacy import WRITERS
from kitchensync.storage.recording_files.annotation_folder import MarkedVideo, newest_judged


def read_log(recording: Path) -> tuple[list[Op], State]:
    """Return the tablet's operations, and the reduced state with the verdicts about errors.

    Raises BadEventLog, BadAnnotations.
    """
    operations = list(filed_operations(recording))
    state = reduce_log(operations)
    judged = newest_judged(recording, "errors") or {"errors": []}
    for error in judged["errors"]:
        if error["error_id"] in state["errors"]:
            verdict = {key: error[key] for key in ("judged", "moments", "ruled") if key in error}
            state["errors"][error["error_id"]].update(cast("ErrorState", verdict))
    fps = judged.get("fps")
    video = None if fps is None else MarkedVideo(Fraction(fps), judged["frames"])
    state["marked_video"] = cast("MarkedVideo", video)
    return operations, state


def filed_operations(recording: Path) -> Iterator[Op]:
    """Yield the tablet's operations in the order in which they were filed. Raises BadEventLog."""
    filed: list[dict[str, Any]] = []
    undone: dict[str, list[str]] = {}
    for writer in WRITERS:
        for line, read in enumerate(events_of(recording, writer), start=1):
            event = cast("dict[str, Any]", read)
            try:
                check_filed(event)
            except BadOperation as error:
                raise BadEventLog(recording / "events" / f"{writer}.jsonl", line, str(error)) from error
            filed.append(event)
            if event["kind"] == "undo":  # an undo of several operations has lines `<id>`, `<id>.1`, ...
                op_id = event["op_id"].partition(".")[0]
                first = op_id if op_id in undone else event["op_id"]
                undone.setdefault(first, []).append(event["body"]["undoes"])
    for number, event in enumerate(filed):
        op_id, kind, body = event["op_id"], event["kind"], event["body"]
        if kind == "undo":
            if op_id not in undone:
                continue
            body = {"undoes": undone[op_id]}
        yield {
            "op_id": op_id,
            "kind": "recording" if kind == "recipe" else kind,
            "body": body,
            "host_ns": event["host_ns"],
            "device": body.get("device", ""),
            "seen": body.get("seen", number),
            "n": number,
        }
