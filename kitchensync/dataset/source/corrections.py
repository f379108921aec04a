"""Published annotations as the desk corrected them: entries that nobody touched stay exactly as they came.

A published recording stands in the log as what a tablet would have logged, on the film's own time; whatever was
noted later is a correction. An error is the same as long as all its fields are; a changed one is written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from kitchensync.operations.entries import NOT_DONE_S, counts, done_instead, tagged
from kitchensync.operations.reduce import reduce_log
from kitchensync.operations.session_state import ErrorState, Op, State
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry, TaggedError

Errors = Mapping[str, ErrorState]

VIDEO = "video"
"""The basis of the operations that a published folder was taken in as."""


def corrected(
    recording: AnnotatedRecording, ops: list[Op], error_ids: Callable[[int, int], str]
) -> AnnotatedRecording:
    """Return a recording with its corrections; the very same one where there are none.

    `error_ids` gives the id in the log of an error as it came, by node (entries from 1) and place (from 0).
    """
    taken_in = [op for op in ops if op["basis"] == VIDEO]
    if len(taken_in) == len(ops):
        return recording
    before, now = reduce_log(taken_in), reduce_log(ops)
    entries = tuple(
        _entry(entry, node, before, now, error_ids) for node, entry in enumerate(recording.entries, start=1)
    )
    return recording if entries == recording.entries else replace(recording, entries=entries)


def _entry(entry: Entry, node: int, before: State, now: State, error_ids: Callable[[int, int], str]) -> Entry:
    known = {error_ids(node, place): error for place, error in enumerate(entry.errors)}
    ours = {key: error for key, error in now["errors"].items() if error["node"] == node}
    changed = {key: error for key, error in ours.items() if error != before["errors"].get(key)}
    errors = tuple(_errors(known, ours, changed))
    said = (done_instead(error, now["recording"]) for error in changed.values() if counts(error))
    texts = [text for text in said if text is not None]
    made = replace(entry, errors=errors, modified=texts[-1] if texts else entry.modified)
    step = now["steps"].get(str(node))
    if entry.performed and (step is None or step["state"] == "skipped" or not step["runs"]):
        made = replace(made, start_s=NOT_DONE_S, end_s=NOT_DONE_S)
    return made


def _errors(known: Mapping[str, TaggedError], ours: Errors, changed: Errors) -> Iterator[TaggedError]:
    """Give the errors of an entry: those that came with it first, in their order, then those that were added."""
    for key, error in known.items():
        if key in changed:
            yield from tagged([changed[key]] if counts(changed[key]) else [])
        elif key in ours:
            yield error
    yield from tagged([error for key, error in changed.items() if key not in known and counts(error)])
