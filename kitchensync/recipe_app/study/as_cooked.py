"""In which order the steps of recordings were cooked, whatever was shown, and which kinds of errors were planned."""

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
    """Return recordings below a folder with the order that was cooked instead of the one that was shown.

    Steps count by when they were done first: as accepted, else as touched. Where none was touched the order that was
    shown stays; where the log is damaged nobody knows it. `categories` are the kinds of errors that were planned,
    `script` the hash of which at which step.
    """
    return [_as_cooked(root / one.path, one) for one in cooked]


def _as_cooked(path: Path, one: CookedRecording) -> CookedRecording:
    try:
        state = reduce_log(filed_operations(path))
        if state["recording"] is None:
            return one
        planned = [one for one in state["errors"].values() if one["planned"] and not one["removed"]]
        errors = [(one["node"], number) for one in planned for number in one["categories"]]
        categories = tuple(sorted({number for _, number in errors}))
        at_steps = ((node, number) for node, number in errors if node is not None)
        script = hash_of_errors(at_steps) if one.session.strategy == PLANNED else one.script
        accepted = accepted_steps(path)
        if accepted is not None:
            done = {one.node: accepted.spans_s(one.node)[0][1] for one in accepted.steps}
        else:
            runs = {int(node): step["runs"] for node, step in state["steps"].items()}
            ends = {node: [run["end"] for run in of if run["end"] is not None] for node, of in runs.items()}
            done = {node: min(of) for node, of in ends.items() if of}
        return replace(
            one,
            order=tuple(sorted(done, key=done.__getitem__)) or one.order,
            categories=categories,
            script=script,
        )
    except (BadEventLog, BadAnnotations) as error:
        pass_on_trouble(error)
        return replace(one, order=())
