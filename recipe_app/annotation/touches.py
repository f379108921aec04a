"""When steps were done as far as touches of the tablet tell: what annotators are shown to begin with."""

from __future__ import annotations

from recipe_app.annotation.forms.marked_steps import Spans
from recipe_app.annotation.labels import labels_of
from recipe_app.releases.entries import entries_of
from recipe_app.releases.own import OwnRecording


def touched_spans(own: OwnRecording) -> Spans:
    """Return label -> [from, to) in seconds of the film of every step that was touched as done."""
    labels = labels_of(own.state["recording"])
    found: Spans = {}
    for told in entries_of(own.state, own.place, lambda _: 0):
        if told.entry.end_s >= 0:
            found.setdefault(labels[told.node], []).append((told.entry.start_s, told.entry.end_s))
    return found
