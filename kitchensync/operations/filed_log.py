"""The tablet's operations as they were filed into a recording's folder, read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from kitchensync.operations.entries import with_judgments
from kitchensync.operations.errors import BadOperation
from kitchensync.operations.filed_shapes import check_filed
from kitchensync.operations.reduce import reduce_log
from kitchensync.operations.step_runs import Op, State
from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.events import events_of
from kitchensync.storage.privacy import WRITERS
from kitchensync.storage.recording_files.annotation_folder import newest_judged


def read_log(recording: Path) -> tuple[list[Op], State]:
    """Return the tablet's operations, and what they add up to with what people ruled about the errors.

    Raises BadEventLog, BadAnnotations.
    """
    operations = list(filed_operations(recording))
    return operations, with_judgments(reduce_log(operations), newest_judged(recording, "errors"))


def filed_operations(recording: Path) -> Iterator[Op]:
    """Return the tablet's operations again, in the order in which they were filed; later ones knew the earlier.

    Raises BadEventLog.
    """
    filed = [event for writer in WRITERS for event in _events_of(recording, writer)]
    undone = _undone(filed)
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


def _undone(filed: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return what each undo takes back; an undo of several was filed in lines `<id>`, `<id>.1`."""
    undone: dict[str, list[str]] = {}
    for event in filed:
        if event["kind"] == "undo":
            whole = event["op_id"].partition(".")[0]
            undone.setdefault(whole if whole in undone else event["op_id"], []).append(
                event["body"]["undoes"]
            )
    return undone


def _events_of(recording: Path, writer: str) -> Iterator[dict[str, Any]]:
    for line, one in enumerate(events_of(recording, writer), start=1):
        event = cast("dict[str, Any]", one)
        try:
            check_filed(event)
        except BadOperation as error:
            raise BadEventLog(recording / "events" / f"{writer}.jsonl", line, str(error)) from error
        yield event
