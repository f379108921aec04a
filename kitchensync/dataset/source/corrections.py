"""Apply the corrections made at the desk to published annotations; other entries stay exactly as they were.

The log holds a published recording as a tablet would have logged it, in seconds of the video; later operations are
corrections. An error with the same fields is unchanged; a changed error is written again.
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
"""The `basis` of operations that were imported from a published folder."""


def corrected(
    recording: AnnotatedRecording, ops: list[Op], error_ids: Callable[[int, int], str]
) -> AnnotatedRecording:
    """Return a recording with its corrections; without corrections, the same object.

    `error_ids` maps node (entries counted from 1) and place (from 0) of an imported error to its id in the log.
    """
    imported = [op for op in ops if op["basis"] == VIDEO]
    if len(imported) == len(ops):
        return recording
    before, now = reduce_log(imported), reduce_log(ops)
    entries = tuple(
        _entry(entry, node, before, now, error_ids) for node, entry in enumerate(recording.entries, start=1)
    )
    return recording if entries == recording.entries else replace(recording, entries=entries)


def _entry(entry: Entry, node: int, before: State, now: State, error_ids: Callable[[int, int], str]) -> Entry:
    imported = {error_ids(node, place): error for place, error in enumerate(entry.errors)}
    current = {key: error for key, error in now["errors"].items() if error["node"] == node}
    changed = {key: error for key, error in current.items() if error != before["errors"].get(key)}
    errors = tuple(_errors(imported, current, changed))
    texts = [done_instead(error, now["recording"]) for error in changed.values() if counts(error)]
    texts = [text for text in texts if text is not None]
    result = replace(entry, errors=errors, modified=texts[-1] if texts else entry.modified)
    step = now["steps"].get(str(node))
    if entry.performed and (step is None or step["state"] == "skipped" or not step["runs"]):
        result = replace(result, start_s=NOT_DONE_S, end_s=NOT_DONE_S)
    return result


def _errors(imported: Mapping[str, TaggedError], current: Errors, changed: Errors) -> Iterator[TaggedError]:
    """Yield the errors of an entry: imported errors first, in their order, then added errors."""
    for key, error in imported.items():
        if key in changed:
            yield from tagged([changed[key]] if counts(changed[key]) else [])
        elif key in current:
            yield error
    yield from tagged([error for key, error in changed.items() if key not in imported and counts(error)])
