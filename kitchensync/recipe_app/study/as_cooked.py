"""The order in which the steps of recordings were really cooked, and their planned kinds of errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kitchensync.operations.filed_log import filed_operations
from kitchensync.operations.reduce import reduce_log
from kitchensync.recipe_app.study.already_cooked import CookedRecording
from kitchensync.recipe_app.study.error_scripts import hash_of_errors
from kitchensync.recipe_app.study.wanted import PLANNED
from kitchensync.storage.errors import BadAnnotations, BadEventLog, pass_on_trouble
from kitchensync.storage.recording_files.annotation_folder import accepted_steps


def as_cooked(root: Path, cooked: Iterable[CookedRecording]) -> list[CookedRecording]:
    """Return recordings below a folder with the order that was cooked instead of the one shown.

    Steps are ordered by when they were first done: by accepted step times, else by touches. Without touches the shown
    order stays; with a damaged log it is empty. `categories` are the planned kinds of errors, `script` the hash
    of the errors and their steps.
    """
    return [_as_cooked(root / recording.path, recording) for recording in cooked]


def _as_cooked(path: Path, recording: CookedRecording) -> CookedRecording:
    try:
        state = reduce_log(filed_operations(path))
        if state["recording"] is None:
            return recording
        planned = [error for error in state["errors"].values() if error["planned"] and not error["removed"]]
        errors = [(error["node"], number) for error in planned for number in error["categories"]]
        categories = tuple(sorted({number for _, number in errors}))
        at_steps = ((node, number) for node, number in errors if node is not None)
        script = hash_of_errors(at_steps) if recording.session.strategy == PLANNED else recording.script
        accepted = accepted_steps(path)
        if accepted is not None:
            done = {step.node: accepted.spans_s(step.node)[0][1] for step in accepted.steps}
        else:
            runs = {int(node): step["runs"] for node, step in state["steps"].items()}
            ends = {node: [run["end"] for run in of if run["end"] is not None] for node, of in runs.items()}
            done = {node: min(of) for node, of in ends.items() if of}
        return replace(
            recording,
            order=tuple(sorted(done, key=done.__getitem__)) or recording.order,
            categories=categories,
            script=script,
        )
    except (BadEventLog, BadAnnotations) as error:
        pass_on_trouble(error)
        return replace(recording, order=())
